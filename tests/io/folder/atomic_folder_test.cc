// Folders that appear whole, and files that are opened below a folder.
#include "io/folder/atomic_folder.h"

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "boost_test.h"
#include "io/folder/inner_file.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using test::bytes_of;

BOOST_AUTO_TEST_SUITE(atomic_folder)

namespace {

using Names = std::vector<std::string>;

void put(io::AtomicFolder& folder, const Names& names, const std::string& text) {
  folder.write_file(names, [&](const ByteSink& sink) {
    sink(bytes_of(text).first(text.size() / 2));
    sink(bytes_of(text).subspan(text.size() / 2));
  });
}

std::string read(const std::filesystem::path& folder, const Names& names,
                 Access access = Access::mapped) {
  const auto file = io::open_inner_file(io::Folder(folder), names, access);
  file->touch_whole({});
  return test::text_of(file->bytes());
}

}  // namespace

BOOST_AUTO_TEST_CASE(appears_whole_with_all_its_files) {
  const test::TemporaryFolder folder;
  const std::string large(3 << 20, 'x');
  for (const Durability durability : {Durability::none, Durability::full}) {
    const std::filesystem::path target =
        folder / (durability == Durability::full ? "full" : "none");
    // With a slash after it, too.
    io::AtomicFolder made(target / "", {.durability = durability}, {});
    put(made, {"a"}, "one");
    put(made, {"b", "c", "d"}, large);
    put(made, {"b", "c", "e"}, "");
    BOOST_TEST(!std::filesystem::exists(target));
    made.commit();
    BOOST_TEST(made.bytes() == 3u + large.size());
    BOOST_TEST(read(target, {"a"}) == "one");
    BOOST_TEST((read(target, {"b", "c", "d"}, Access::copied) == large));
    BOOST_TEST(read(target, {"b", "c", "e"}).empty());
  }
  BOOST_TEST(test::list_folder(folder.path()).size() == 2u);
}

BOOST_AUTO_TEST_CASE(leaves_nothing_where_it_was_not_finished) {
  const test::TemporaryFolder folder;
  {
    io::AtomicFolder made(folder / "x", {}, {});
    put(made, {"b", "c", "d"}, "text");
    BOOST_CHECK_THROW(made.write_file(Names{"b", "c", "e"},
                                      [](const ByteSink&) { throw std::runtime_error("no more"); }),
                      std::runtime_error);
    BOOST_CHECK_THROW(put(made, {"b", "c", "d"}, "again"), IoError);
    BOOST_CHECK_THROW(put(made, {"b", "c"}, "a folder"), IoError);
    BOOST_CHECK_THROW(put(made, {"b", "c", "d", "f"}, "below a file"), IoError);
  }
  std::stop_source stop;
  {
    io::AtomicFolder made(folder / "x", {}, stop.get_token());
    put(made, {"a"}, "text");
    stop.request_stop();
    BOOST_CHECK_THROW(put(made, {"b"}, "text"), CancelledError);
    BOOST_CHECK_THROW(made.commit(), CancelledError);
  }
  BOOST_TEST(test::list_folder(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(replaces_an_empty_folder_and_nothing_else) {
  const test::TemporaryFolder folder;
  const auto exists = test::has_code(ErrorCode::exists);
  const auto full = test::has_code(ErrorCode::bad_argument);
  std::filesystem::create_directory(folder / "empty");
  BOOST_CHECK_EXCEPTION(io::AtomicFolder(folder / "empty", {.replace = false}, {}), UsageError,
                        exists);
  io::AtomicFolder made(folder / "empty", {}, {});
  put(made, {"a"}, "text");
  made.commit();
  BOOST_CHECK_EXCEPTION(io::AtomicFolder(folder / "empty", {}, {}), UsageError, full);
  BOOST_CHECK_EXCEPTION(io::AtomicFolder(folder / "empty", {.replace = false}, {}), UsageError,
                        full);
  test::write_file(folder / "file", "text");
  BOOST_CHECK_EXCEPTION(io::AtomicFolder(folder / "file", {}, {}), UsageError,
                        test::has_code(ErrorCode::bad_argument));
  // Something appears meanwhile.
  io::AtomicFolder late(folder / "late", {}, {});
  put(late, {"a"}, "text");
  std::filesystem::create_directory(folder / "late");
  test::write_file(folder / "late/other", "text");
  BOOST_CHECK_EXCEPTION(late.commit(), UsageError, full);
  BOOST_TEST(read(folder / "late", {"other"}) == "text");
  BOOST_CHECK_THROW(io::AtomicFolder(folder / "none/x", {}, {}), IoError);
}

BOOST_AUTO_TEST_CASE(no_name_and_no_link_leads_out_of_a_folder) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "in/side");
  test::write_file(folder / "secret", "secret");
  test::write_file(folder / "in/file", "text");
  std::filesystem::create_symlink("../secret", folder / "in/link");
  std::filesystem::create_directory_symlink("..", folder / "in/up");
  BOOST_TEST(read(folder / "in", {"file"}) == "text");
  const auto bad = test::has_code(ErrorCode::bad_argument);
  for (const Names& names :
       {Names{"..", "secret"}, Names{"../secret"}, Names{"/etc/hostname"}, Names{""}, Names{"."},
        Names{"side", ".."}, Names{std::string("fi\0le", 5)}, Names{std::string(256, 'n')},
        Names{"link"}, Names{"up", "secret"}, Names{"side"}, Names{"file", "x"}}) {
    BOOST_TEST_CONTEXT(names.front())
    BOOST_CHECK_EXCEPTION(read(folder / "in", names), UsageError, bad);
  }
  BOOST_CHECK_THROW(read(folder / "in", {"none"}), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
