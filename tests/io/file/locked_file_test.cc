#include "io/file/locked_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;
using io::LockedFile;

BOOST_AUTO_TEST_SUITE(locked_file)

BOOST_AUTO_TEST_CASE(a_second_lock_is_refused_until_the_first_is_gone) {
  const TemporaryFolder folder;
  write_file(folder / "f", "content");
  for (const auto access : {LockedFile::Access::read, LockedFile::Access::read_write}) {
    const LockedFile first(folder / "f", access, false);
    BOOST_CHECK_EXCEPTION(LockedFile(folder / "f", access, false), IoError,
                          [&](const IoError& error) {
                            return error.errno_value() == EWOULDBLOCK &&
                                   error.context().path == (folder / "f").string() &&
                                   error.operation().find("another append") != std::string::npos;
                          });
  }
  BOOST_TEST(LockedFile(folder / "f", LockedFile::Access::read, false).is_at_path());
  BOOST_TEST(read_file(folder / "f") == "content");
}

BOOST_AUTO_TEST_CASE(whoever_waits_gets_the_file_that_replaced_the_locked_one) {
  const TemporaryFolder folder;
  write_file(folder / "f", "old");
  std::optional<LockedFile> first(std::in_place, folder / "f", LockedFile::Access::read, false);
  struct stat found {};
  auto waiting = std::async(std::launch::async, [&] {
    const LockedFile second(folder / "f", LockedFile::Access::read_write, true);
    ::fstat(second.fd(), &found);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  write_file(folder / "new", "new");
  std::filesystem::rename(folder / "new", folder / "f");
  BOOST_TEST(!first->is_at_path());
  first.reset();
  waiting.get();
  struct stat there {};
  BOOST_TEST(::stat((folder / "f").c_str(), &there) == 0);
  BOOST_TEST(found.st_ino == there.st_ino);
}

BOOST_AUTO_TEST_CASE(a_path_that_names_no_file_is_refused) {
  const TemporaryFolder folder;
  BOOST_CHECK_EXCEPTION(LockedFile(folder / "f", LockedFile::Access::read_write, true), IoError,
                        [](const IoError& error) { return error.errno_value() == ENOENT; });
  BOOST_TEST(::mkfifo((folder / "fifo").c_str(), 0666) == 0);
  BOOST_CHECK_EXCEPTION(LockedFile(folder / "fifo", LockedFile::Access::read_write, true),
                        UsageError, has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_SUITE_END()
