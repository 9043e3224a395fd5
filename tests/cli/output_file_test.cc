#include "cli/output_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::cli;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "thalia-output-XXXXXX").string();
    BOOST_TEST_REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(output_file)

BOOST_AUTO_TEST_CASE(appears_when_finished) {
  const Folder folder;
  const fs::path path = folder.path / "out";
  OutputFile file(path);
  file.out().write("text");
  BOOST_TEST(!fs::exists(path));
  file.finish();
  BOOST_TEST(content(path) == "text");
  BOOST_TEST(folder.files() == 1u);
}

BOOST_AUTO_TEST_CASE(unfinished_leaves_the_old_file_and_nothing_else) {
  const Folder folder;
  const fs::path path = folder.path / "out";
  std::ofstream(path) << "old";
  {
    OutputFile file(path);
    file.out().write("new");
  }
  BOOST_TEST(content(path) == "old");
  BOOST_TEST(folder.files() == 1u);
}

BOOST_AUTO_TEST_CASE(replaces_what_a_link_points_at_and_keeps_its_mode) {
  const Folder folder;
  const fs::path target = folder.path / "target";
  std::ofstream(target) << "old";
  BOOST_TEST_REQUIRE(::chmod(target.c_str(), 0600) == 0);
  fs::create_symlink("target", folder.path / "link");
  OutputFile file(folder.path / "link");
  file.out().write("new");
  file.finish();
  BOOST_TEST(content(target) == "new");
  BOOST_TEST(fs::is_symlink(folder.path / "link"));
  BOOST_TEST(
      (fs::status(target).permissions() == (fs::perms::owner_read | fs::perms::owner_write)));
}

BOOST_AUTO_TEST_CASE(device_is_written_to_directly) {
  OutputFile file("/dev/null");
  file.out().write("text");
  file.finish();
  BOOST_TEST(fs::is_character_file("/dev/null"));
  OutputFile full("/dev/full");
  full.out().write("text");
  BOOST_CHECK_THROW(full.finish(), IoError);
}

BOOST_AUTO_TEST_CASE(folder_that_is_not_there_is_named) {
  BOOST_CHECK_EXCEPTION(OutputFile("/nonexistent/out"), IoError, [](const IoError& error) {
    return error.context().path.starts_with("/nonexistent/out");
  });
}

BOOST_AUTO_TEST_SUITE_END()
