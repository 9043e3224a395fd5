#include "io/file/posix_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using test::bytes_of;

BOOST_AUTO_TEST_SUITE(posix_file)

namespace {

io::UniqueFd create(const std::filesystem::path& path) {
  return io::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

MutableByteSpan bytes_in(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_back_what_was_written_at_an_offset) {
  const test::TemporaryFolder folder;
  const io::UniqueFd fd = create(folder / "f");
  io::pwrite_all(fd.get(), 5, bytes_of("hello"), "f");
  BOOST_TEST(io::file_size(fd.get(), "f") == 10u);
  std::string got(7, '?');
  io::pread_all(fd.get(), 3, bytes_in(got), "f");
  BOOST_TEST(got == std::string("\0\0hello", 7));
}

BOOST_AUTO_TEST_CASE(vectors_longer_than_the_kernel_takes_are_written_whole) {
  const test::TemporaryFolder folder;
  const io::UniqueFd fd = create(folder / "f");
  std::vector<std::string> texts;
  std::string expected = "ab";
  for (int i = 0; i < 3000; ++i) texts.push_back(i % 7 == 0 ? "" : std::to_string(i));
  for (const std::string& text : texts) expected += text;
  std::vector<ByteSpan> pieces;
  for (const std::string& text : texts) pieces.push_back(bytes_of(text));
  io::pwrite_all(fd.get(), 0, bytes_of("ab"), "f");
  io::pwritev_all(fd.get(), 2, pieces, "f");
  BOOST_TEST(test::read_file(folder / "f") == expected);
}

BOOST_AUTO_TEST_CASE(an_empty_vector_writes_nothing) {
  const test::TemporaryFolder folder;
  const io::UniqueFd fd = create(folder / "f");
  io::pwritev_all(fd.get(), 9, {}, "f");
  const ByteSpan empty[2] = {};
  io::pwritev_all(fd.get(), 9, empty, "f");
  BOOST_TEST(io::file_size(fd.get(), "f") == 0u);
}

// A file size limit cuts the write that crosses it short; the next one fails.
BOOST_AUTO_TEST_CASE(short_writes_are_continued_at_the_right_byte) {
  const test::TemporaryFolder folder;
  const auto limited = [&](auto write) {
    return test::run_with_faults({}, [&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const io::UniqueFd fd = create(folder / "f");
      const rlimit limit = {10, 10};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("setrlimit");
      write(fd.get());
    });
  };
  const auto one = limited([](int fd) { io::pwrite_all(fd, 3, bytes_of("0123456789"), "f"); });
  BOOST_TEST(one.errno_value == EFBIG);
  BOOST_TEST(one.message.find("f: at offset 10: pwrite failed") == 0u, one.message);
  BOOST_TEST(test::read_file(folder / "f").substr(3) == "0123456");

  const ByteSpan pieces[] = {bytes_of("abcd"), bytes_of("efgh"), bytes_of("ijkl")};
  const auto several = limited([&](int fd) { io::pwritev_all(fd, 1, pieces, "f"); });
  BOOST_TEST(several.errno_value == EFBIG);
  BOOST_TEST(several.message.find("f: at offset 10: pwritev failed") == 0u, several.message);
  BOOST_TEST(test::read_file(folder / "f").substr(1) == "abcdefghi");
}

BOOST_AUTO_TEST_CASE(a_file_that_ends_too_early_is_truncated) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "f", "12345");
  const io::UniqueFd fd = io::open_for_reading(folder / "f");
  std::string got(4, '?');
  BOOST_CHECK_EXCEPTION(
      io::pread_all(fd.get(), 3, bytes_in(got), "f"), FormatError, [](const FormatError& error) {
        return error.code() == ErrorCode::truncated && error.context().offset == 5 &&
               error.context().bound == "bytes up to 7";
      });
}

BOOST_AUTO_TEST_CASE(offsets_beyond_the_kernels_range_are_io_errors) {
  const test::TemporaryFolder folder;
  const io::UniqueFd fd = create(folder / "f");
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  std::string got(1, '?');
  BOOST_CHECK_THROW(io::pwrite_all(fd.get(), kLast, bytes_of("x"), "f"), IoError);
  BOOST_CHECK_THROW(io::pread_all(fd.get(), kLast, bytes_in(got), "f"), IoError);
}

BOOST_AUTO_TEST_CASE(only_regular_files_are_opened_and_a_fifo_does_not_block) {
  const test::TemporaryFolder folder;
  BOOST_REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const auto& path : {folder / "fifo", folder.path(), std::filesystem::path("/dev/null")})
    BOOST_CHECK_EXCEPTION(io::open_for_reading(path), UsageError, [&](const UsageError& error) {
      return error.code() == ErrorCode::bad_argument && error.context().path == path.string();
    });
  BOOST_CHECK_EXCEPTION(io::open_for_reading(folder / "none"), IoError, [](const IoError& error) {
    return error.errno_value() == ENOENT && error.operation() == "open";
  });
}

BOOST_AUTO_TEST_CASE(failing_reads_keep_errno_path_and_offset) {
  const test::TemporaryFolder folder;
  const auto path = folder / "f";
  test::write_file(path, "12345");
  const auto read = test::run_with_faults({{SYS_pread64, EIO}}, [&] {
    const io::UniqueFd fd = io::open_for_reading(path);
    std::string got(4, '?');
    io::pread_all(fd.get(), 1, bytes_in(got), path);
  });
  BOOST_TEST(read.kind == test::Outcome::Kind::io_error);
  BOOST_TEST(read.errno_value == EIO);
  BOOST_TEST(read.message.find(path.string() + ": at offset 1: pread failed") == 0u, read.message);
}

BOOST_AUTO_TEST_SUITE_END()
