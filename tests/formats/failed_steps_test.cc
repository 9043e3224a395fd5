// Whatever is written by several calls: call n fails, the caller goes on, and the last call is an
// error or the file is whole.
#include <signal.h>
#include <sys/resource.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "boost_test.h"
#include "format/v01.h"
#include "formats/v01/binary.h"
#include "support/bytes.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/error.h"
#include "thalia/formats/mckp.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;
using std::filesystem::path;

BOOST_AUTO_TEST_SUITE(failed_steps)

namespace {

constexpr unsigned kCalls = 8;
constexpr std::size_t kBytes = 3 << 20;

const std::vector<std::byte>& payload() {
  static const std::vector<std::byte> bytes = random_bytes(kBytes);
  return bytes;
}
Tensor tensor() {
  return Tensor::borrow(DType::f32, {kBytes / 4}, payload());
}

// A soft limit, which may be raised again. Beyond it writes fail with EFBIG.
void let_writes_fail(bool fail) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = fail ? 100'000 : RLIM_INFINITY;
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("no limit");
}

struct Calls {
  std::function<void(unsigned)> call;  ///< one of kCalls
  std::function<void()> last;
};

// In a child: all calls, of which `failing` and the following `count` cannot write.
void run(const Calls& work, unsigned failing, unsigned count) {
  const auto guarded = [&](unsigned number, const auto& call) {
    let_writes_fail(number >= failing && number < failing + count);
    try {
      call();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (unsigned i = 0; i < kCalls; ++i) guarded(i, [&] { work.call(i); });
  // A caller may even try the last one again.
  if (!guarded(kCalls, work.last)) guarded(kCalls + 1, work.last);
  let_writes_fail(false);
}

// @param make a writer of the path. @param check throws where the file is not whole.
template <typename Make, typename Check>
void check_writer(const Make& make, const Check& check, const std::string& old = {}) {
  unsigned failures = 0;
  for (unsigned failing = 0; failing <= kCalls + 1; ++failing) {
    for (const unsigned count : {1u, 2u}) {
      BOOST_TEST_CONTEXT("call " << failing << ", " << count) {
        const TemporaryFolder folder;
        if (!old.empty()) write_file(folder / "f", old);
        const Outcome outcome =
            run_with_faults({}, [&] { run(make(folder / "f"), failing, count); });
        BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
        const std::vector<std::string> names = list_folder(folder.path());
        if (names.empty() || (!old.empty() && read_file(folder / "f") == old)) {
          ++failures;
          continue;
        }
        BOOST_TEST(names == std::vector<std::string>{"f"}, boost::test_tools::per_element());
        BOOST_CHECK_NO_THROW(check(folder / "f"));
      }
    }
  }
  if (old.empty()) BOOST_TEST(failures > 2u);  // the limit struck
}

void check_thalia(const path& file) {
  const VerifyReport report = verify(file);
  if (!report.ok()) throw std::runtime_error(report.findings[0].message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_an_mckp_writer) {
  for (const unsigned threads : {1u, 2u}) {
    check_writer(
        [&](const path& file) {
          auto writer = std::make_shared<MckpWriter>(
              file, MckpWriteOptions{.compression = {.codec = Codec::none},
                                     .work = {.threads = threads, .memory_bytes = 0}});
          return Calls{[=](unsigned i) { writer->add("t" + std::to_string(i), tensor()); },
                       [=] { writer->commit(); }};
        },
        [](const path& file) { MckpFile::open(file, {.verify = true}); });
  }
}

BOOST_AUTO_TEST_CASE(of_a_binary_writer) {
  check_writer(
      [](const path& file) {
        auto writer = std::make_shared<BinaryWriter>(file);
        return Calls{[=](unsigned i) {
                       writer->write_header(format::V01FileHeader{});
                       if (i % 2 == 0) {
                         writer->write_tensor(tensor());
                       } else {
                         Value data = Value::object();
                         data["t"] = tensor();
                         writer->write_json(data);
                       }
                     },
                     [=] { writer->finalize(); }};
      },
      [](const path& file) {
        if (!BinaryReader(file).validate_checksum()) throw std::runtime_error("damaged");
      });
}

BOOST_AUTO_TEST_CASE(of_a_writer) {
  // Each codec and each way out once.
  for (const auto& [codec, io] :
       {std::pair{Codec::none, IoMode::direct}, std::pair{Codec::lz4, IoMode::buffered}}) {
    check_writer(
        [codec = codec, io = io](const path& file) {
          auto writer = std::make_shared<Writer>(
              file, SaveOptions{.compression = {.codec = codec}, .io = io, .work = {.threads = 2}});
          const RegionId region = writer->add_region({.name = "r"});
          auto ids = std::make_shared<std::vector<TensorId>>();
          for (unsigned i = 0; i < kCalls; ++i)
            ids->push_back(writer->add_tensor(
                region, {.name = "t" + std::to_string(i), .dtype = DType::u8, .shape = {kBytes}}));
          return Calls{[=](unsigned i) { writer->write((*ids)[i], payload()); },
                       [=] { writer->commit(); }};
        },
        check_thalia);
  }
}

BOOST_AUTO_TEST_CASE(of_an_appender) {
  const TemporaryFolder folder;
  Writer writer(folder / "old");
  writer.add_region({.name = "r"});
  writer.commit();
  check_writer(
      [](const path& file) {
        auto appender = std::make_shared<Appender>(file);
        return Calls{[=](unsigned i) {
                       const RegionId region =
                           appender->add_region({.name = "n" + std::to_string(i)});
                       appender->add_tensor(
                           region, {.name = "t", .dtype = DType::u8, .shape = {kBytes}}, payload());
                     },
                     [=] { appender->commit(); }};
      },
      check_thalia, read_file(folder / "old"));
}

BOOST_AUTO_TEST_CASE(an_mckp_writer_works_beside_a_folder_called_spool) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "spool");
  MckpWriter writer(folder / "f",
                    {.compression = {.codec = Codec::none}, .work = {.memory_bytes = 0}});
  writer.add("t", tensor());
  writer.commit();
  BOOST_TEST((MckpFile::open(folder / "f", {.verify = true}).read("t") == tensor()));
}

BOOST_AUTO_TEST_SUITE_END()
