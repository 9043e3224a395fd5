#include "io/folder/folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "boost_test.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"

#include <sys/syscall.h>

using namespace thalia;
using namespace thalia::test;
using io::EntryKind;
using io::Folder;

BOOST_AUTO_TEST_SUITE(folder)

BOOST_AUTO_TEST_CASE(tells_what_is_in_it_without_following_links) {
  const TemporaryFolder place;
  write_file(place / "f", "content");
  std::filesystem::create_directory(place / "d");
  std::filesystem::create_symlink("f", place / "l");
  const Folder there(place.path());
  std::vector<std::pair<std::string, EntryKind>> found;
  for (const io::FolderEntry& entry : there.entries()) found.emplace_back(entry.name, entry.kind);
  std::ranges::sort(found);
  BOOST_TEST(
      (found ==
       decltype(found){{"d", EntryKind::folder}, {"f", EntryKind::file}, {"l", EntryKind::link}}));
  BOOST_TEST(there.facts("f")->bytes == 7);
  BOOST_TEST((there.facts("l")->kind == EntryKind::link));
  BOOST_TEST(!there.facts("nothing"));
  BOOST_TEST(there.link_target("l").value() == "f");
  BOOST_TEST(!there.link_target("f"));
  BOOST_TEST(!there.link_target("nothing"));
}

BOOST_AUTO_TEST_CASE(a_link_takes_the_place_of_what_is_there) {
  const TemporaryFolder place;
  const Folder there(place.path());
  BOOST_TEST(there.replace_link("latest", "a"));
  BOOST_TEST(there.replace_link("latest", "b"));
  BOOST_TEST(there.link_target("latest").value() == "b");
  write_file(place / "file", "old");
  BOOST_TEST(there.replace_link("file", "c"));
  BOOST_TEST(there.link_target("file").value() == "c");
  BOOST_TEST(list_folder(place.path()).size() == 2);
  std::filesystem::create_directory(place / "d");
  BOOST_CHECK_THROW(there.replace_link("d", "a"), IoError);
  BOOST_TEST(list_folder(place.path()).size() == 3);
}

BOOST_AUTO_TEST_CASE(a_file_system_without_links_is_told_of) {
  const TemporaryFolder place;
  const Outcome outcome = run_with_faults({{SYS_symlinkat, EPERM}}, [&] {
    if (Folder(place.path()).replace_link("latest", "a")) throw std::runtime_error("linked");
  });
  BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
  BOOST_TEST(list_folder(place.path()).empty());
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_no_error_to_remove_or_find) {
  const TemporaryFolder place;
  const Folder there(place.path());
  write_file(place / "f", "");
  BOOST_TEST(there.remove("f"));
  BOOST_TEST(!there.remove("f"));
  BOOST_TEST(!Folder::find(place / "nowhere"));
  write_file(place / "f", "");
  BOOST_TEST(!Folder::find(place / "f"));
  BOOST_CHECK_THROW(Folder(place / "nowhere"), IoError);
}

BOOST_AUTO_TEST_CASE(a_folder_that_was_moved_stays_itself) {
  const TemporaryFolder place;
  std::filesystem::create_directory(place / "old");
  const Folder there(place / "old");
  std::filesystem::rename(place / "old", place / "new");
  there.replace_link("l", "x");
  BOOST_TEST(list_folder(place / "new").size() == 1);
  there.sync();
}

BOOST_AUTO_TEST_CASE(folders_are_made_with_those_above_them) {
  const TemporaryFolder place;
  io::make_folders(place / "a/b/c", Durability::full);
  io::make_folders(place / "a/b/c", Durability::full);
  BOOST_TEST(std::filesystem::is_directory(place / "a/b/c"));
  write_file(place / "f", "");
  BOOST_CHECK_THROW(io::make_folders(place / "f/g", Durability::none), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
