#include "io/folder/watch.h"

#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>

#include "boost_test.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/files.h"

using namespace thalia;
using namespace thalia::io;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(io_folder_watch)

namespace {

constexpr std::chrono::milliseconds kNow{0}, kLong{60'000};

Woken look(FolderWatch& watch, std::chrono::milliseconds patience = kNow) {
  return watch.wait(patience, {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_comes_into_a_folder_is_reported) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  FolderWatch watch(false);
  BOOST_TEST(!watch.is_polling());
  watch.add(folder / "none");
  watch.add(folder / "a");
  watch.add(folder / "a");
  BOOST_TEST(!watch.is_polling());
  BOOST_TEST((look(watch) == Woken::late));
  test::write_file(folder / "a" / "file", "text");
  BOOST_TEST((look(watch, kLong) == Woken::changed));
  while (look(watch) == Woken::changed) continue;
  test::write_file(folder / "elsewhere", "text");
  BOOST_TEST((look(watch) == Woken::late));
  std::filesystem::rename(folder / "elsewhere", folder / "a" / "moved");
  BOOST_TEST((look(watch) == Woken::changed));
  std::filesystem::create_symlink("moved", folder / "a" / "latest");
  BOOST_TEST((look(watch) == Woken::changed));
  // A save that is not done has a temporary name.
  {
    OutputFile output(folder / "a" / "file", {.durability = Durability::none});
    output.write(test::bytes_of("a longer text"));
    BOOST_TEST((look(watch) == Woken::late));
    output.commit();
  }
  BOOST_TEST((look(watch) == Woken::changed));
}

BOOST_AUTO_TEST_CASE(names_that_do_not_count_are_not_reported) {
  const test::TemporaryFolder folder;
  FolderWatch watch(false, [](std::string_view name) { return name != "journal"; });
  watch.add(folder.path());
  test::write_file(folder / "journal", "text");
  BOOST_TEST((look(watch) == Woken::late));
  test::write_file(folder / "file", "text");
  BOOST_TEST((look(watch) == Woken::changed));
}

BOOST_AUTO_TEST_CASE(a_folder_that_was_made_again_can_be_watched_again) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  FolderWatch watch(false);
  watch.add(folder / "a");
  std::filesystem::remove(folder / "a");
  std::filesystem::create_directory(folder / "a");
  while (look(watch) == Woken::changed) continue;
  watch.add(folder / "a");
  test::write_file(folder / "a" / "file", "text");
  BOOST_TEST((look(watch, kLong) == Woken::changed));
}

BOOST_AUTO_TEST_CASE(without_reports_only_time_and_calls_end_a_wait) {
  const test::TemporaryFolder folder;
  FolderWatch watch(true);
  watch.add(folder.path());
  BOOST_TEST(watch.is_polling());
  test::write_file(folder / "file", "text");
  BOOST_TEST((look(watch, 2ms) == Woken::late));
  watch.wake();
  watch.wake();
  BOOST_TEST((look(watch, kLong) == Woken::called));
  BOOST_TEST((look(watch) == Woken::late));
  const std::jthread caller([&] { watch.wake(); });
  BOOST_TEST((look(watch, kLong) == Woken::called));
}

BOOST_AUTO_TEST_CASE(a_stop_ends_a_wait_and_leaves_no_call) {
  FolderWatch watch(true);
  std::stop_source stop;
  const std::jthread stopper([&] { stop.request_stop(); });
  BOOST_CHECK_THROW(watch.wait(kLong, stop.get_token()), CancelledError);
  BOOST_CHECK_THROW(watch.wait(kLong, stop.get_token()), CancelledError);
}

BOOST_AUTO_TEST_SUITE_END()
