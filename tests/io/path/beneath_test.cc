#include "io/path/beneath.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include "boost_test.h"
#include "io/folder/folder.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(beneath)

namespace {

namespace fs = std::filesystem;

// real/a/f, and links that lead to and out of it.
struct Place {
  Place() {
    fs::create_directories(folder / "real/a");
    write_file(folder / "real/a/f", "text");
    write_file(folder / "outside", "text");
    fs::create_symlink("real", folder / "run");
    fs::create_symlink("a", folder / "real/inner");
    fs::create_symlink("f", folder / "real/a/beside");
    fs::create_symlink("../../outside", folder / "real/a/out");
    fs::create_symlink("none", folder / "real/a/dangling");
  }
  TemporaryFolder folder;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_lies_below_is_opened_whichever_way_the_paths_are_spelled) {
  const Place place;
  for (const char* const within : {"run", "run/", "run/.", "real", "./real", "real/../run"})
    for (const char* const name : {"a/f", "./a/f", "a/./f", "a//f", "a/../a/f"})
      BOOST_TEST(
          bool(io::open_beneath(place.folder / within, place.folder / within / name, O_RDONLY)));
  BOOST_TEST(
      bool(io::open_beneath(place.folder / "run", place.folder / "run", O_RDONLY | O_DIRECTORY)));
  // Without a folder, links are followed as ever.
  BOOST_TEST(bool(io::open_beneath({}, place.folder / "run/a/out", O_RDONLY)));
}

BOOST_AUTO_TEST_CASE(no_link_below_is_followed_and_nothing_leads_out) {
  const Place place;
  const fs::path run = place.folder / "run";
  for (const char* const name : {"inner/f", "inner", "a/beside", "a/out", "a/dangling"})
    for (const int flags : {O_RDONLY, O_RDONLY | O_DIRECTORY, O_RDWR | O_CREAT})
      BOOST_CHECK_THROW(io::open_beneath(run, run / name, flags, 0600), UsageError);
  for (const fs::path& path :
       {run / "../outside", run / "a/../../outside", place.folder / "outside",
        place.folder / "running", fs::path("/"), fs::path()})
    BOOST_CHECK_THROW(io::open_beneath(run, path, O_RDONLY), UsageError);
  BOOST_TEST(!fs::exists(place.folder / "real/a/none"));
}

BOOST_AUTO_TEST_CASE(what_is_not_there_says_so) {
  const Place place;
  const fs::path run = place.folder / "run";
  BOOST_TEST(!io::open_beneath(run, run / "none/f", O_RDONLY));
  BOOST_TEST(errno == ENOENT);
  BOOST_TEST(!io::open_beneath(run, run / "a/f/g", O_RDONLY));
  BOOST_TEST(errno == ENOTDIR);
  BOOST_TEST(!io::Folder::find(run / "none", run));
  BOOST_TEST(!io::Folder::find(run / "a/f", run));
  BOOST_CHECK_THROW(io::Folder(run / "none", run), IoError);
  BOOST_CHECK_THROW(io::Folder::find(run / "inner", run), UsageError);
}

BOOST_AUTO_TEST_CASE(folders_are_made_below_and_never_through_a_link) {
  const Place place;
  const fs::path run = place.folder / "run";
  io::make_folders_beneath(run, run / "b/c/d", Durability::full);
  io::make_folders_beneath(run, run / "b/c/d", Durability::none);
  BOOST_TEST(fs::is_directory(place.folder / "real/b/c/d"));
  BOOST_CHECK_THROW(io::make_folders_beneath(run, run / "inner/x", Durability::none), UsageError);
  BOOST_CHECK_THROW(io::make_folders_beneath(run, run / "a/dangling", Durability::none),
                    UsageError);
  BOOST_CHECK_THROW(io::make_folders_beneath(run, run / "a/f/x", Durability::none), IoError);
  BOOST_CHECK_THROW(io::make_folders_beneath(run, place.folder / "x", Durability::none),
                    UsageError);
  BOOST_TEST(!fs::exists(place.folder / "real/a/x"));
  BOOST_TEST(!fs::exists(place.folder / "x"));
}

BOOST_AUTO_TEST_SUITE_END()
