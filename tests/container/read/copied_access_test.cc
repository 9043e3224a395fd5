// Files that shrink or fail under a reader that asked for safety: an error of the call that needed
// the bytes, and what was handed out before stays.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(copied_access)

namespace {

constexpr std::uint64_t kLarge = 2'000'000;

// Three large tensors, one after the other: a, b, c.
struct LargeFile {
  explicit LargeFile(SaveOptions options = steady_options())
      : sample{.regions = {{{.name = "r"},
                            {dense_tensor("a", DType::u8, {kLarge}),
                             dense_tensor("b", DType::u8, {kLarge}, Role::weights, 2),
                             dense_tensor("c", DType::u8, {kLarge}, Role::weights, 3)}}},
               .connections = {}},
        path(folder / "f.thalia") {
    save(path, sample, options);
  }
  const std::vector<std::byte>& payload(std::size_t i) const {
    return sample.regions[0].tensors[i].payload;
  }
  TemporaryFolder folder;
  Sample sample;
  std::filesystem::path path;
};

Reader open_copied(const std::filesystem::path& path,
                   Verification verification = Verification::on_first_touch) {
  return Reader::open(path, {.input = {.access = Access::copied}, .verification = verification});
}

SaveOptions with_checksum(ChecksumType checksum) {
  SaveOptions options = steady_options();
  options.checksum = checksum;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_cut_while_it_is_open_is_an_error_and_no_signal) {
  for (const ChecksumType checksum : {ChecksumType::block_tree, ChecksumType::crc32}) {
    for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
      const LargeFile file(with_checksum(checksum));
      const Reader reader = open_copied(file.path, verification);
      const TensorView a = reader.tensor("a"), b = reader.tensor("b"), c = reader.tensor("c");
      const ByteSpan before = a.bytes();
      c.rows(0, 10);
      std::filesystem::resize_file(file.path, b.stored_offset() + kLarge / 2);
      const auto cut = says(ErrorCode::truncated, file.path.string(), "'r'", "'b'",
                            std::to_string(b.stored_offset() + kLarge / 2));
      std::vector<std::byte> out(kLarge);
      for (int round = 0; round < 2; ++round) {
        BOOST_CHECK_EXCEPTION(b.bytes(), FormatError, cut);
        BOOST_CHECK_EXCEPTION(b.read(out), FormatError, has_code(ErrorCode::truncated));
        BOOST_CHECK_EXCEPTION(b.rows(kLarge / 4 * 3, kLarge / 4 * 3 + 1), FormatError,
                              has_code(ErrorCode::truncated));
        BOOST_CHECK_EXCEPTION(reader.verify_all(), FormatError, has_code(ErrorCode::truncated));
      }
      BOOST_TEST(same_bytes(before, file.payload(0)));
      BOOST_TEST(same_bytes(a.bytes(), file.payload(0)));
      a.read(out);
      BOOST_TEST(same_bytes(out, file.payload(0)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_cut_while_it_is_mapped_ends_the_process) {
  const LargeFile file;
  const Outcome outcome = run_with_faults({}, [&] {
    ::signal(SIGBUS, SIG_DFL);  // not the test framework's
    const Reader reader = Reader::open(file.path, {.verification = Verification::off});
    const TensorView b = reader.tensor("b");
    std::filesystem::resize_file(file.path, b.stored_offset() + 5000);
    volatile std::byte last = b.bytes().back();
    static_cast<void>(last);
  });
  // What docs/contribute/security.md warns of; were it otherwise, Access::copied would be without a
  // purpose.
  BOOST_TEST(outcome.message == "killed by signal " + std::to_string(SIGBUS));
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails_is_an_error_with_errno_offset_and_tensor) {
  const LargeFile file;
  const std::uint64_t from = Reader::open(file.path).tensor("b").stored_offset() + kLarge / 2;
  for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
    for (const bool in_place : {true, false}) {
      const Outcome outcome = run_with_faults({}, [&] {
        const Reader reader = open_copied(file.path, verification);
        const TensorView a = reader.tensor("a"), b = reader.tensor("b");
        if (!install_faults({{SYS_pread64, EIO, ArgumentCondition::at_least(3, from)}}))
          throw std::runtime_error("no filter");
        std::vector<std::byte> out(kLarge);
        a.read(out);
        if (!same_bytes(out, file.payload(0))) throw std::runtime_error("other bytes");
        in_place ? static_cast<void>(b.bytes()) : b.read(out);
      });
      BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
      BOOST_TEST(outcome.errno_value == EIO);
      BOOST_TEST(outcome.message.find(file.path.string()) == 0u, outcome.message);
      for (const char* part : {"pread", "'b'", "at "})
        BOOST_TEST(outcome.message.find(part) != std::string::npos, outcome.message);
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_of_the_file_is_mapped) {
  const LargeFile file;
  const Outcome outcome =
      run_with_faults({{SYS_mmap, EACCES, ArgumentCondition::equals(3, MAP_SHARED)}}, [&] {
        if (walk_file(file.path, Verification::at_open, Access::copied).errors != 0)
          throw std::runtime_error("a sound file");
        const Reader reader = open_copied(file.path);
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
          if (line.find("f.thalia") != std::string::npos) throw std::runtime_error(line);
      });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_CASE(verify_reports_what_it_cannot_read) {
  const LargeFile file;
  const std::uint64_t begin = Reader::open(file.path).tensor("b").stored_offset();
  const std::uint64_t from = begin + kLarge / 2;
  const Outcome outcome = run_with_faults({}, [&] {
    // The tables, after the payloads, can be read. What is near the damage is read once more, a
    // tensor at a time.
    const ArgumentCondition there = ArgumentCondition::equals(3, from / (1 << 20) * (1 << 20));
    const ArgumentCondition again = ArgumentCondition::equals(3, begin);
    if (!install_faults({{SYS_pread64, EIO, there},
                         {SYS_pread64, EIO, again},
                         {SYS_mmap, EACCES, ArgumentCondition::equals(3, MAP_SHARED)}}))
      throw std::runtime_error("no filter");
    const VerifyReport report =
        verify(file.path, {.input = {.access = Access::copied}, .work = {.threads = 2}});
    if (report.ok()) throw std::runtime_error("nothing found");
    bool found = false;
    for (const Finding& finding : report.findings) {
      if (finding.tensor == "b" && finding.message.find("pread") != std::string::npos) found = true;
      if (finding.tensor == "a" || finding.tensor == "c")
        throw std::runtime_error(describe(report));
    }
    if (!found) throw std::runtime_error(describe(report));
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_CASE(only_what_is_viewed_stays_in_memory) {
  for (const unsigned block_log2 : {12u, 16u}) {
    SaveOptions options = steady_options();
    options.block_log2 = block_log2;
    const LargeFile file(options);
    for (const Verification verification : {Verification::off, Verification::on_first_touch}) {
      const Reader reader = open_copied(file.path, verification);
      const TensorView b = reader.tensor("b");
      const std::uint64_t opened = reader.resident_bytes();
      BOOST_TEST(opened <= 4u * (64 << 10));
      std::vector<std::byte> out(kLarge);
      b.read(out);  // straight into `out`, but for blocks that it shares with others
      BOOST_TEST(same_bytes(out, file.payload(1)));
      BOOST_TEST(reader.resident_bytes() <= opened + 2 * (64 << 10));
      b.rows(1'000'000, 1'000'001);
      BOOST_TEST(reader.resident_bytes() <= opened + 3 * (64 << 10));
      BOOST_TEST(same_bytes(b.bytes(), file.payload(1)));
      BOOST_TEST(reader.resident_bytes() >= kLarge);
      b.read(out);  // from memory if it is there
      BOOST_TEST(same_bytes(out, file.payload(1)));
    }
  }
}

BOOST_AUTO_TEST_CASE(damage_is_found_on_the_way_into_the_callers_memory) {
  const LargeFile file;
  const std::uint64_t at = Reader::open(file.path).tensor("b").stored_offset() + kLarge / 2;
  std::string bytes = read_file(file.path);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  write_file(file.path, bytes);
  std::vector<std::byte> out(kLarge);
  const Reader reader = open_copied(file.path);
  for (int round = 0; round < 2; ++round) {
    BOOST_CHECK_EXCEPTION(reader.tensor("b").read(out), IntegrityError,
                          says(ErrorCode::checksum_mismatch, file.path.string(), "'b'"));
  }
  reader.tensor("a").read(out);
  BOOST_TEST(same_bytes(out, file.payload(0)));
  BOOST_CHECK_THROW(open_copied(file.path, Verification::at_open), IntegrityError);
}

BOOST_AUTO_TEST_SUITE_END()
