// Every system call of a save fails once: the error has its errno, the old file its bytes, the
// folder nothing more.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "boost_test.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(writer_fault)

namespace {

struct Step {
  const char* name;
  std::vector<long> calls;
  Durability durability = Durability::full;
};

// fchmod is called where the replaced file has a mode that a new one does not get by itself.
const std::vector<Step> kSteps = {
    {"write", {SYS_pwrite64, SYS_pwritev, SYS_pwritev2}},
    {"pwrite", {SYS_pwrite64}},
    {"ftruncate", {SYS_ftruncate}},
    {"fchmod", {SYS_fchmod}},
    {"fsync", {SYS_fsync}},
    {"fdatasync", {SYS_fdatasync}, Durability::data},
    {"rename", {SYS_rename, SYS_renameat, SYS_renameat2}},
    {"linkat", {SYS_linkat}},
};

struct Replaced {
  Replaced() : path(folder / "f.thalia") {
    save(path, small_sample());
    BOOST_TEST_REQUIRE(::chmod(path.c_str(), 0777) == 0);
    old = read_file(path);
  }
  // The file is the old one, whole, and alone.
  void check_untouched() const {
    BOOST_TEST(bool(read_file(path) == old));
    BOOST_TEST(list_folder(folder.path()) == Names{"f.thalia"}, per_element());
  }
  TemporaryFolder folder;
  std::filesystem::path path;
  std::string old;
};

SaveOptions options_of(Durability durability, Codec codec) {
  SaveOptions options = steady_options();
  options.output.durability = durability;
  options.compression.codec = codec;
  options.compression.chunk_bytes = 4096;
  return options;
}

// Half of the large tensor is streamed, the rest is borrowed.
void save_streamed(const std::filesystem::path& path, const SaveOptions& options) {
  const Sample sample = varied_sample();
  const std::vector<std::byte> large(100'000);
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "streamed"});
  const TensorId tensor =
      writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {large.size()}});
  declare(writer, sample);
  for (std::size_t at = 0; at < large.size(); at += 25'000)
    writer.write(tensor, ByteSpan(large).subspan(at, 25'000));
  writer.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_fault_the_new_file_is_there) {
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    const Replaced file;
    const Outcome outcome =
        run_with_faults({}, [&] { save_streamed(file.path, options_of(Durability::full, codec)); });
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
    BOOST_TEST(verify(file.path).ok());
    BOOST_TEST(Reader::open(file.path).region_count() == 4u);
  }
}

BOOST_AUTO_TEST_CASE(a_failing_call_is_reported_with_its_errno_and_nothing_has_changed) {
  for (const Step& step : kSteps) {
    for (const Codec codec : {Codec::none, Codec::zstd}) {
      for (const int errno_value : {EIO, ENOSPC, EDQUOT}) {
        BOOST_TEST_CONTEXT(step.name << ", codec " << int(codec) << ", errno " << errno_value) {
          const Replaced file;
          std::vector<Fault> faults;
          for (const long call : step.calls) faults.push_back({call, errno_value});
          const Outcome outcome = run_with_faults(
              faults, [&] { save_streamed(file.path, options_of(step.durability, codec)); });
          BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
          BOOST_TEST(outcome.errno_value == errno_value);
          BOOST_TEST(outcome.message.find(file.folder.path().string()) == 0u, outcome.message);
          BOOST_TEST(outcome.message.find(step.name) != std::string::npos, outcome.message);
          file.check_untouched();
        }
      }
    }
  }
}

// Writes up to an offset succeed: the failure comes in the middle of the payloads.
BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_half_way_leaves_the_old_file) {
  for (const std::uint64_t from : {1u, 4096u, 50'000u, 100'000u, 125'000u}) {
    BOOST_TEST_CONTEXT("from " << from) {
      const Replaced file;
      const ArgumentCondition beyond{3, ArgumentCondition::Kind::at_least, from};
      const Outcome outcome = run_with_faults(
          {{SYS_pwrite64, ENOSPC, beyond}, {SYS_pwritev, ENOSPC, beyond}},
          [&] { save_streamed(file.path, options_of(Durability::none, Codec::none)); });
      BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
      BOOST_TEST(outcome.errno_value == ENOSPC);
      file.check_untouched();
    }
  }
}

BOOST_AUTO_TEST_CASE(a_limit_on_file_sizes_is_reported_as_efbig) {
  for (const rlim_t limit : {300u, 60'000u, 110'000u}) {
    const Replaced file;
    const Outcome outcome = run_with_faults({}, [&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit most = {limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &most) != 0) throw std::runtime_error("no RLIMIT_FSIZE");
      save_streamed(file.path, options_of(Durability::none, Codec::none));
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == EFBIG);
    file.check_untouched();
  }
}

BOOST_AUTO_TEST_CASE(a_folder_that_may_not_be_written_is_reported) {
  if (::geteuid() == 0) {
    // Root may write anywhere; a file system that says no does as well.
    const TemporaryFolder folder;
    const Outcome outcome =
        run_with_faults({{SYS_openat, EROFS, ArgumentCondition::has_bits(2, O_RDWR)}},
                        [&] { save(folder / "f", small_sample()); });
    BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
    BOOST_TEST(outcome.errno_value == EROFS);
    BOOST_TEST(list_folder(folder.path()).empty());
    return;
  }
  const TemporaryFolder folder;
  BOOST_TEST(::chmod(folder.path().c_str(), 0555) == 0);
  BOOST_CHECK_EXCEPTION(Writer(folder / "f"), IoError,
                        [](const IoError& error) { return error.errno_value() == EACCES; });
  BOOST_TEST(::chmod(folder.path().c_str(), 0755) == 0);
}

BOOST_AUTO_TEST_CASE(a_reader_that_cannot_map_copies_or_says_so) {
  const Replaced file;
  const auto shared = ArgumentCondition::equals(3, MAP_SHARED);
  const Outcome copied =
      run_with_faults({{SYS_mmap, ENOMEM, shared}}, [&] { Reader::open(file.path); });
  BOOST_TEST(copied.kind == Outcome::Kind::returned, copied.message);
  const Outcome denied =
      run_with_faults({{SYS_mmap, EPERM, shared}}, [&] { Reader::open(file.path); });
  BOOST_TEST(denied.kind == Outcome::Kind::io_error, denied.message);
  BOOST_TEST(denied.errno_value == EPERM);
  BOOST_TEST(denied.message.find(file.path.string()) == 0u, denied.message);
}

BOOST_AUTO_TEST_SUITE_END()
