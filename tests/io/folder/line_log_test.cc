#include "io/folder/line_log.h"

#include <filesystem>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(line_log)

BOOST_AUTO_TEST_CASE(lines_are_added_and_a_torn_one_is_ended) {
  const TemporaryFolder place;
  const auto path = place / "log";
  const io::Folder folder(place.path());
  io::append_lines(folder, "log", "one\n", Durability::full);
  io::append_lines(folder, "log", "two\nthree\n", Durability::none);
  BOOST_TEST(read_file(path) == "one\ntwo\nthree\n");
  write_file(path, "one\ntw");
  io::append_lines(folder, "log", "three\n", Durability::data);
  BOOST_TEST(read_file(path) == "one\ntw\nthree\n");
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_refused) {
  const TemporaryFolder place;
  std::filesystem::create_symlink("elsewhere", place / "link");
  std::filesystem::create_directory(place / "folder");
  const io::Folder folder(place.path());
  BOOST_CHECK_THROW(io::append_lines(folder, "link", "x\n", Durability::none), UsageError);
  BOOST_CHECK_THROW(io::append_lines(folder, "folder", "x\n", Durability::none), IoError);
  BOOST_TEST(!std::filesystem::exists(place / "elsewhere"));
}

BOOST_AUTO_TEST_SUITE_END()
