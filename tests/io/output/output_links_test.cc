// Links in the way of an output, and outputs without a name.
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "io/file/posix_file.h"
#include "io/output/atomic_file.h"
#include "io/output/temporary_file.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using io::AtomicFile;
using io::AtomicFileOptions;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(output_links)

namespace {

const AtomicFileOptions kWays[] = {{.allow_unnamed = true}, {.allow_unnamed = false}};

void save(const std::filesystem::path& path, const AtomicFileOptions& options,
          std::string_view text) {
  AtomicFile file(path, options);
  io::pwrite_all(file.fd(), 0, bytes_of(text), file.path());
  file.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(symbolic_links_are_refused_unless_they_are_to_be_followed) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    write_file(folder / "f", "old");
    std::filesystem::create_symlink("f", folder / "link");
    std::filesystem::create_symlink("none", folder / "dangling");
    for (const char* const name : {"link", "dangling"}) {
      const auto refused = [&](const UsageError& error) {
        return error.code() == ErrorCode::bad_argument &&
               error.context().path == (folder / name).string();
      };
      BOOST_CHECK_EXCEPTION(AtomicFile(folder / name, options), UsageError, refused);
      BOOST_CHECK_EXCEPTION(io::check_output_name(folder / name, options.output), UsageError,
                            refused);
    }
    // One that comes while the file is written is replaced itself, and not what it leads to.
    AtomicFile file(folder / "new", options);
    std::filesystem::create_symlink("f", folder / "new");
    BOOST_CHECK_THROW(file.commit(), UsageError);
    BOOST_TEST(read_file(folder / "f") == "old");
    const Names expected = {"dangling", "f", "link", "new"};
    BOOST_TEST(list_folder(folder.path()) == expected, per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_link_that_is_to_be_replaced_goes_and_what_it_leads_to_stays) {
  for (AtomicFileOptions options : kWays) {
    options.output.link = OutputLink::replaced;
    const TemporaryFolder folder;
    write_file(folder / "f", "old");
    for (const auto& [name, to] : {std::pair("link", "f"), {"dangling", "none"}}) {
      std::filesystem::create_symlink(to, folder / name);
      io::check_output_name(folder / name, options.output);
      save(folder / name, options, "new");
      BOOST_TEST(!std::filesystem::is_symlink(folder / name));
      BOOST_TEST(read_file(folder / name) == "new");
    }
    BOOST_TEST(read_file(folder / "f") == "old");
    // A name that is taken is taken.
    options.output.replace = false;
    std::filesystem::create_symlink("none", folder / "kept");
    BOOST_CHECK_EXCEPTION(
        save(folder / "kept", options, "new"), UsageError,
        [](const UsageError& error) { return error.code() == ErrorCode::exists; });
    BOOST_TEST(std::filesystem::is_symlink(folder / "kept"));
    // What has its name from the output is replaced like it.
    BOOST_TEST((options.output.beside().link == OutputLink::replaced));
    const Names expected = {"dangling", "f", "kept", "link"};
    BOOST_TEST(list_folder(folder.path()) == expected, per_element());
  }
}

BOOST_AUTO_TEST_CASE(below_a_folder_no_link_is_followed_whatever_is_asked_for) {
  for (AtomicFileOptions options : kWays) {
    const TemporaryFolder place, other;
    std::filesystem::create_directories(place / "real/inner");
    std::filesystem::create_symlink("real", place / "run");
    std::filesystem::create_symlink(other.path(), place / "real/out");
    std::filesystem::create_symlink(other / "f", place / "real/inner/file");
    options.output.link = OutputLink::followed;
    options.output.within = place / "run";
    save(place / "run/inner/new", options, "new");
    BOOST_TEST(read_file(place / "real/inner/new") == "new");
    for (const char* const name :
         {"run/out/f", "run/inner/file", "run/../f", "elsewhere", "run/.."})
      BOOST_CHECK_THROW(AtomicFile(place / name, options), UsageError);
    BOOST_TEST(list_folder(other.path()).empty());
  }
}

BOOST_AUTO_TEST_CASE(a_temporary_file_without_a_name_is_written_to_by_its_path) {
  const TemporaryFolder folder;
  const io::TemporaryFile file(folder / "target");
  BOOST_TEST(list_folder(folder.path()).empty());
  save(file.path(), {.output = file.output()}, "much longer");
  BOOST_TEST(read_file(file.path()) == "much longer");
  save(file.path(), {.output = file.output()}, "short");
  BOOST_TEST(read_file(file.path()) == "short");
  BOOST_TEST(list_folder(folder.path()).empty());
  // With a name, it is a file like any other.
  write_file(folder / "named", "old");
  const io::UniqueFd named = io::open_for_reading(folder / "named");
  BOOST_CHECK_THROW(save(io::descriptor_path(named.get()), {}, "new"), UsageError);
  BOOST_TEST(read_file(folder / "named") == "old");
}

BOOST_AUTO_TEST_SUITE_END()
