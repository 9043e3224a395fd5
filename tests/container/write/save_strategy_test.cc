// A save takes the direct way if it is open and the buffered one if it is not: the test
// programs run once each way, and this tells whether they did.
#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <stdexcept>

#include "boost_test.h"
#include "io/direct/direct_file.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/io_uring.h"
#include "support/sample.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(save_strategy)

namespace {

// Whether the folder's file system opens files for direct I/O and is a disk's.
bool has_direct_files(const TemporaryFolder& folder) {
  write_file(folder / "probe", "");
  const io::UniqueFd fd(::open((folder / "probe").c_str(), O_RDWR | O_CLOEXEC));
  return io::open_direct(fd.get(), io::DirectAccess::write) && !io::is_in_memory(fd.get());
}

SaveResult save_directly(const std::filesystem::path& path) {
  Sample sample = varied_sample();
  sample.regions[0].tensors.push_back(dense_tensor("large", DType::u8, {9'000'000}));
  SaveOptions options = steady_options();
  options.io = IoMode::direct;
  return save(path, sample, options);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_direct_save_is_direct_unless_io_uring_is_denied) {
  const TemporaryFolder folder;
  const IoUring ring = io_uring_here();
  if (ring == IoUring::missing || !has_direct_files(folder)) {
    BOOST_TEST_MESSAGE(
        "no io_uring or no direct I/O here, and nobody was asked to deny it: skipped");
    return;
  }
  const SaveResult result = save_directly(folder / "f.thalia");
  BOOST_TEST((result.io == (ring == IoUring::usable ? IoMode::direct : IoMode::buffered)));
  BOOST_TEST(result.io_fallback.empty() == (ring == IoUring::usable));
  if (ring == IoUring::denied)
    BOOST_TEST(result.io_fallback.find("io_uring") != std::string::npos, result.io_fallback);
  BOOST_TEST(verify(folder / "f.thalia").ok());
}

// As where the memory for rings is used up while the save runs.
BOOST_AUTO_TEST_CASE(a_save_that_gets_no_ring_for_its_last_write_ends_through_the_page_cache) {
  const TemporaryFolder folder;
  if (io_uring_here() != IoUring::usable || !has_direct_files(folder)) {
    BOOST_TEST_MESSAGE("no io_uring or no direct I/O here: skipped");
    return;
  }
  for (const std::uint64_t size : {9'000'000u, 8'388'608u}) {
    const Outcome outcome = run_with_faults({}, [&] {
      SaveOptions options = steady_options();
      options.io = IoMode::direct;
      options.work.threads = 1;
      options.work.progress = [](std::uint64_t done, std::uint64_t total) {
        if (done == total) install_faults({{SYS_io_uring_setup, ENOMEM}});
      };
      Sample sample = varied_sample();
      sample.regions[0].tensors.push_back(dense_tensor("large", DType::u8, {size}));
      const SaveResult result = save(folder / "f.thalia", sample, options);
      if (result.io != IoMode::buffered || result.io_fallback.find("last") == std::string::npos)
        throw std::runtime_error("not the fallback: " + result.io_fallback);
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
    BOOST_TEST(verify(folder / "f.thalia").ok());
  }
}

BOOST_AUTO_TEST_SUITE_END()
