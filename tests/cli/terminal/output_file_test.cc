#include "cli/terminal/output_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::cli;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(output_file)

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

struct Stopped {};

void print_text(const fs::path& path, std::string_view text, std::stop_token stop = {}) {
  Output unused(-1);
  print_into(path, {.out = unused, .stop = std::move(stop)}, [&](Output& out) { out.write(text); });
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(appears_when_all_is_printed) {
  const Folder folder;
  const fs::path path = folder.path / "out";
  Output unused(-1);
  print_into(path, {.out = unused, .stop = {}}, [&](Output& out) {
    out.write("text");
    out.flush();
    BOOST_TEST(!fs::exists(path));
  });
  BOOST_TEST(content(path) == "text");
  BOOST_TEST(folder.files() == 1u);
}

BOOST_AUTO_TEST_CASE(error_while_printing_leaves_the_old_file_and_nothing_else) {
  const Folder folder;
  const fs::path path = folder.path / "out";
  std::ofstream(path) << "old";
  Output unused(-1);
  BOOST_CHECK_THROW(print_into(path, {.out = unused, .stop = {}},
                               [](Output& out) {
                                 out.write(std::string(1 << 20, 'n'));
                                 throw Stopped();
                               }),
                    Stopped);
  BOOST_TEST(content(path) == "old");
  BOOST_TEST(folder.files() == 1u);
}

BOOST_AUTO_TEST_CASE(stop_leaves_the_old_file_and_nothing_else) {
  const Folder folder;
  const fs::path path = folder.path / "out";
  std::ofstream(path) << "old";
  std::stop_source stop;
  stop.request_stop();
  BOOST_CHECK_THROW(print_text(path, "new", stop.get_token()), CancelledError);
  BOOST_TEST(content(path) == "old");
  BOOST_TEST(folder.files() == 1u);
}

BOOST_AUTO_TEST_CASE(replaces_what_a_link_points_at_and_keeps_its_mode) {
  const Folder folder;
  const fs::path target = folder.path / "target";
  std::ofstream(target) << "old";
  BOOST_TEST_REQUIRE(::chmod(target.c_str(), 0600) == 0);
  fs::create_symlink("target", folder.path / "link");
  print_text(folder.path / "link", "new");
  BOOST_TEST(content(target) == "new");
  BOOST_TEST(fs::is_symlink(folder.path / "link"));
  BOOST_TEST(
      (fs::status(target).permissions() == (fs::perms::owner_read | fs::perms::owner_write)));
}

BOOST_AUTO_TEST_CASE(device_is_written_to_directly) {
  print_text("/dev/null", "text");
  BOOST_TEST(fs::is_character_file("/dev/null"));
  BOOST_CHECK_THROW(print_text("/dev/full", "text"), IoError);
}

BOOST_AUTO_TEST_CASE(folder_that_is_not_there_is_named) {
  BOOST_CHECK_EXCEPTION(print_text("/nonexistent/out", "text"), IoError, [](const IoError& error) {
    return error.context().path.starts_with("/nonexistent");
  });
}

BOOST_AUTO_TEST_SUITE_END()
