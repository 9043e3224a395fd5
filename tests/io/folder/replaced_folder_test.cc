#include "io/folder/replaced_folder.h"

#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::io;
using std::filesystem::path;
using test::list_folder;
using test::read_file;
using test::write_file;

BOOST_AUTO_TEST_SUITE(replaced_folder)

namespace {

FolderContent content(bool exchanges = true) {
  return {.is_own =
              [](const std::string& name) {
                return name == "whole" || name == "failed" || name.starts_with("part-");
              },
          .whole = "whole",
          .failed = "failed",
          .exchanges = exchanges};
}

// A save, whole.
std::shared_ptr<FolderUse> put(const path& folder, const std::string& text, bool replace = true,
                               bool exchanges = true) {
  const auto use = begin_folder(folder, replace, content());
  write_file(saving_folder(folder) / "part-0", text);
  write_file(saving_folder(folder) / "whole", text);
  publish_folder(folder, Durability::none, content(exchanges));
  return use;
}

std::string found(const path& folder) {
  return read_file(readable_folder(folder) / "whole");
}

std::vector<std::string> names(const path& folder) {
  std::vector<std::string> all = list_folder(folder);
  std::sort(all.begin(), all.end());
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_folder_is_replaced_and_nothing_else) {
  const test::TemporaryFolder in;
  const path folder = in / "run" / "step";
  for (const bool exchanges : {true, false}) {
    put(folder, "1", true, exchanges);
    put(folder, "2", true, exchanges);
    BOOST_TEST(found(folder) == "2");
    BOOST_TEST(names(in / "run") == Names{"step"});
  }
  const auto refused = [](const path& at, bool replace, const char* said) {
    BOOST_CHECK_EXCEPTION(put(at, "3", replace), UsageError, test::says(ErrorCode::exists, said));
  };
  refused(folder, false, "replace=False");
  std::filesystem::create_directory(in / "empty");
  put(in / "empty", "1", false);
  write_file(folder / "notes.txt", "mine");
  refused(folder, true, "notes.txt");
  write_file(in / "file", "mine");
  refused(in / "file", true, "'file'");
  BOOST_TEST(found(folder) == "2");
  BOOST_TEST(read_file(in / "file") == "mine");
  // A link stays, and what it leads to is replaced.
  std::filesystem::create_directory_symlink(in / "empty", in / "link");
  put(in / "link", "4");
  BOOST_TEST(std::filesystem::is_symlink(in / "link"));
  BOOST_TEST(found(in / "empty") == "4");
  // Something that appeared at the target meanwhile stays.
  begin_folder(in / "late", true, content());
  write_file(in / "late", "mine");
  BOOST_CHECK_THROW(publish_folder(in / "late", Durability::none, content()), IoError);
  BOOST_TEST(read_file(in / "late") == "mine");
}

BOOST_AUTO_TEST_CASE(files_of_others_stay_and_so_does_their_folder) {
  const test::TemporaryFolder in;
  put(in / "a", "1");
  const auto use = begin_folder(in / "a", true, content());
  write_file(in / "a" / "notes.txt", "mine");
  publish_folder(in / "a", Durability::full, content());
  BOOST_TEST(names(in / ".a.saving") == Names{"notes.txt"});
  write_file(in / "a" / "part-1", "");
  write_file(in / "a" / "x", "");
  clear_folder(in / "a", content(), [](const std::string& name) { return name == "part-1"; });
  BOOST_TEST(names(in / "a") == (Names{"part-1", "x"}));
}

BOOST_AUTO_TEST_CASE(a_save_that_another_process_does_is_left_alone) {
  const test::TemporaryFolder in;
  const path mine = in / "mine", other = in / ".other.saving";
  put(mine, "1");
  std::filesystem::create_directory(in / ".mine.saving");
  auto held = FolderUse::take(in / ".mine.saving", false);
  BOOST_REQUIRE(held != nullptr);
  BOOST_TEST(FolderUse::take(in / ".mine.saving", false) == nullptr);
  BOOST_CHECK_EXCEPTION(put(mine, "2"), UsageError,
                        test::says(ErrorCode::wrong_state, "another process saves to it"));
  held.reset();
  std::filesystem::create_directory(other);
  put(mine, "2");
  BOOST_TEST(std::filesystem::exists(other));  // made a moment ago, and not locked yet
  held = FolderUse::take(other, false);
  write_file(other / "part-0", "");
  put(mine, "2");
  BOOST_TEST(std::filesystem::exists(other / "part-0"));
  held.reset();
  std::filesystem::create_directory(in / ".foreign.saving");
  write_file(in / ".foreign.saving" / "notes.txt", "mine");
  std::filesystem::create_directory_symlink(in / "mine", in / ".link.saving");
  put(mine, "3");
  BOOST_TEST(found(mine) == "3");
  BOOST_TEST(!std::filesystem::exists(other));
  BOOST_TEST(std::filesystem::exists(in / ".foreign.saving" / "notes.txt"));
  BOOST_TEST(std::filesystem::is_symlink(in / ".link.saving"));
}

BOOST_AUTO_TEST_CASE(a_save_that_failed_blocks_no_other) {
  const test::TemporaryFolder in;
  const auto kept = begin_folder(in / "other", true, content());
  put(in / "mine", "1");
  BOOST_TEST(!std::filesystem::exists(in / ".other.saving" / "failed"));
  give_up_folder(in / "other", content());
  put(in / "mine", "2");
  BOOST_TEST(!std::filesystem::exists(in / ".other.saving"));
  BOOST_TEST(kept->is_at(in / ".other.saving") == false);
  const auto failed = begin_folder(in / "mine", true, content());
  put(in / "mine", "4");  // of the same process
  BOOST_TEST(found(in / "mine") == "4");
  give_up_folder(in / "nothing" / "there", content());
}

BOOST_AUTO_TEST_CASE(what_goes_stays_while_a_save_puts_the_new_one_in_its_place) {
  const test::TemporaryFolder in;
  put(in / "a", "1");
  auto use = begin_folder(in / "a", true, content());
  write_file(in / ".a.saving" / "whole", "2");
  std::filesystem::rename(in / "a", in / ".a.old");  // if there is no exchange
  put(in / "b", "1");
  BOOST_TEST(!std::filesystem::exists(in / "a"));
  BOOST_TEST(found(in / "a") == "1");
  use.reset();  // that save was killed
  put(in / "b", "2");
  BOOST_TEST(names(in.path()) == (Names{"a", "b"}));
  BOOST_TEST(found(in / "a") == "1");
}

BOOST_AUTO_TEST_CASE(a_kill_at_any_call_leaves_the_old_or_the_new) {
  for (const bool exchanges : {true, false}) {
    const test::TemporaryFolder in;
    const path folder = in / "step";
    std::set<std::string> seen;
    for (unsigned number = 0;; ++number) {
      put(folder, "old");
      const test::End end =
          test::run_killed_at(number, [&] { put(folder, "new", true, exchanges); });
      BOOST_REQUIRE((end == test::End::killed || end == test::End::returned));
      const std::string left = found(folder);
      BOOST_REQUIRE((left == "old" || left == "new"));
      seen.insert(left);
      const auto use = begin_folder(folder, true, content());
      BOOST_TEST(found(folder) == left);
      BOOST_REQUIRE(use != nullptr);
      put(folder, "next");
      BOOST_REQUIRE(found(folder) == "next");
      std::string there;
      for (const std::string& name : names(in.path())) there += name + " ";
      BOOST_REQUIRE_MESSAGE(there == "step ", "killed at " << number << ": " << there);
      if (end == test::End::returned) {
        BOOST_TEST(number > 10u);
        break;
      }
    }
    BOOST_TEST(seen == (std::set<std::string>{"new", "old"}));
  }
}

BOOST_AUTO_TEST_CASE(a_file_gets_its_name_after_those_that_go) {
  const test::TemporaryFolder in;
  for (unsigned number = 0;; ++number) {
    write_file(in / "1", "old");
    write_file(in / "2", "later");
    write_file(in / "3", "later");
    write_file(in / "new", "new");
    const test::End end = test::run_killed_at(number, [&] {
      publish_file(Folder(in.path()), "new", "1", {"3", "2", "none"});
    });
    const Names left = names(in.path());
    const bool possible = left == Names{"1"} || left == Names{"1", "new"} ||
                          left == Names{"1", "2", "new"} || left == Names{"1", "2", "3", "new"};
    BOOST_REQUIRE(possible);
    BOOST_REQUIRE((read_file(in / "1") == "new") == (left == Names{"1"}));
    if (end == test::End::returned) break;
  }
  BOOST_CHECK_THROW(publish_file(Folder(in.path()), "none", "1", {}), IoError);
}

BOOST_AUTO_TEST_CASE(saves_side_by_side_do_not_clear_each_other_away) {
  for (const bool exchanges : {true, false}) {
    const test::TemporaryFolder in;
    std::vector<pid_t> children;
    for (const char* const name : {"a", "b"}) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      int failed = 1;
      try {
        for (int turn = 0; turn < 200; ++turn)
          put(in / name, std::to_string(turn), true, exchanges);
        failed = 0;
      } catch (const std::exception& error) {
        static_cast<void>(std::fprintf(stderr, "%s\n", error.what()));
      }
      ::_exit(failed);
    }
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      BOOST_TEST(status == 0);
    }
    BOOST_TEST(found(in / "a") == "199");
    BOOST_TEST(found(in / "b") == "199");
    BOOST_TEST(names(in.path()) == (Names{"a", "b"}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
