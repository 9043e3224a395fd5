// A save takes the direct way where it is open and the buffered one where it is not: the test
// programs run once each way, and this tells whether they did.
#include <fcntl.h>

#include "boost_test.h"
#include "io/direct_file.h"
#include "support/files.h"
#include "support/io_uring.h"
#include "support/sample.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

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

BOOST_AUTO_TEST_SUITE(save_way)

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

BOOST_AUTO_TEST_SUITE_END()
