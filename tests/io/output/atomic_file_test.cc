#include "io/output/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "io/file/posix_file.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using boost::test_tools::per_element;
using io::AtomicFile;
using io::AtomicFileOptions;
using test::bytes_of;
using test::list_folder;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(atomic_file)

namespace {

// Both ways to a new file must behave alike, so most cases run over both.
const AtomicFileOptions kWays[] = {{.allow_unnamed = true}, {.allow_unnamed = false}};

void save(const std::filesystem::path& path, AtomicFileOptions options, std::string_view text) {
  AtomicFile file(path, options);
  io::pwrite_all(file.fd(), 0, bytes_of(text), file.path());
  file.commit();
}

struct stat status_of(const std::filesystem::path& path) {
  struct stat status;
  BOOST_REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

unsigned mode_of(const std::filesystem::path& path) {
  return status_of(path).st_mode & 07777;
}

void set_mode(const std::filesystem::path& path, unsigned mode) {
  BOOST_REQUIRE(::chmod(path.c_str(), mode) == 0);
}

unsigned current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_target_appears_only_with_the_commit) {
  for (const Durability durability : {Durability::none, Durability::data, Durability::full}) {
    for (AtomicFileOptions options : kWays) {
      options.output.durability = durability;
      const TemporaryFolder folder;
      AtomicFile file(folder / "f", options);
      io::pwrite_all(file.fd(), 0, bytes_of("new"), file.path());
      BOOST_TEST(!std::filesystem::exists(folder / "f"));
      BOOST_TEST(file.commit() >= 0.0);
      BOOST_TEST(read_file(folder / "f") == "new");
      BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
      BOOST_TEST(file.fd() == -1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_to_be_replaced_stays) {
  const auto refused = [](const UsageError& error) {
    return error.code() == ErrorCode::exists && error.context().path.ends_with("target");
  };
  for (AtomicFileOptions options : kWays) {
    const TemporaryFolder folder;
    const auto target = folder / "target";
    options.output.replace = false;
    save(target, options, "first");
    BOOST_CHECK_EXCEPTION(AtomicFile(target, options), UsageError, refused);
    // One that appears while the new one is written.
    std::filesystem::remove(target);
    AtomicFile late(target, options);
    io::pwrite_all(late.fd(), 0, bytes_of("late"), late.path());
    write_file(target, "second");
    BOOST_CHECK_EXCEPTION(late.commit(), UsageError, refused);
    BOOST_TEST(read_file(target) == "second");
    BOOST_TEST(list_folder(folder.path()) == Names{"target"}, per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_reader_of_the_old_file_keeps_it) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    write_file(folder / "f", "old");
    const io::UniqueFd reader = io::open_for_reading(folder / "f");
    save(folder / "f", options, "new");
    std::string seen(3, '?');
    io::pread_all(reader.get(), 0, std::as_writable_bytes(std::span(seen)), "f");
    BOOST_TEST(seen == "old");
    BOOST_TEST(read_file(folder / "f") == "new");
  }
}

BOOST_AUTO_TEST_CASE(without_commit_nothing_is_left) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    write_file(folder / "f", "old");
    { const AtomicFile file(folder / "f", options); }
    AtomicFile discarded(folder / "f", options);
    discarded.discard();
    BOOST_TEST(read_file(folder / "f") == "old");
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
    BOOST_CHECK_EXCEPTION(discarded.commit(), UsageError, [](const UsageError& error) {
      return error.code() == ErrorCode::wrong_state;
    });
  }
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_file_to_its_parent) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    AtomicFile file(folder / "f", options);
    io::pwrite_all(file.fd(), 0, bytes_of("whole"), file.path());
    const Names before = list_folder(folder.path());
    const test::Outcome refused = test::run_with_faults({}, [&] { file.commit(); });
    BOOST_TEST(
        refused.message.find("f: the file that is written belongs to process") != std::string::npos,
        refused.message);
    const test::Outcome gone = test::run_with_faults({}, [&] {
      AtomicFile(std::move(file)).discard();
      const AtomicFile own(folder / "own", options);
    });
    BOOST_TEST(gone.kind == test::Outcome::Kind::returned, gone.message);
    BOOST_TEST(list_folder(folder.path()) == before, per_element());
    file.commit();
    BOOST_TEST(read_file(folder / "f") == "whole");
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  }
}

BOOST_AUTO_TEST_CASE(moving_moves_the_duty_to_clean_up) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    AtomicFile first(folder / "first", options);
    AtomicFile second(folder / "second", options);
    second = std::move(first);
    BOOST_TEST(list_folder(folder.path()).size() <= 1u);
    AtomicFile third(std::move(second));
    io::pwrite_all(third.fd(), 0, bytes_of("x"), third.path());
    third.commit();
    BOOST_TEST(list_folder(folder.path()) == Names{"first"}, per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_new_file_has_the_mode_that_the_umask_leaves) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    save(folder / "f", options, "new");
    BOOST_TEST(mode_of(folder / "f") == (0666 & ~current_umask()));
  }
}

BOOST_AUTO_TEST_CASE(a_replaced_file_passes_its_mode_on) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    for (const unsigned mode : {0600u, 0666u, 0400u, 0751u, 0u, 06755u}) {
      write_file(folder / "f", "old");
      set_mode(folder / "f", mode);
      save(folder / "f", options, "new");
      BOOST_TEST(mode_of(folder / "f") == mode);
      std::filesystem::remove(folder / "f");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_private_file_is_private_while_it_is_written) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    write_file(folder / "f", "old");
    set_mode(folder / "f", 0600);
    const AtomicFile file(folder / "f", options);
    struct stat status;
    BOOST_REQUIRE(::fstat(file.fd(), &status) == 0);
    BOOST_TEST((status.st_mode & 0077) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(ownership_is_kept_where_it_may_be_and_else_gives_nobody_more) {
  if (::geteuid() != 0) {
    BOOST_TEST_MESSAGE("only root can give files away: nothing tested");
    return;
  }
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    const auto path = folder / "f";
    write_file(path, "old");
    BOOST_REQUIRE(::chown(path.c_str(), 12345, 23456) == 0);
    set_mode(path, 06764);
    save(path, options, "new");
    BOOST_TEST(status_of(path).st_uid == 12345u);
    BOOST_TEST(status_of(path).st_gid == 23456u);
    BOOST_TEST(mode_of(path) == 06764u);

    // As a user who is neither the owner nor in the group, but may write the folder.
    set_mode(folder.path(), 0777);
    const test::Outcome outcome = test::run_with_faults({}, [&] {
      if (::setgid(777) != 0 || ::setuid(777) != 0) throw std::runtime_error("setuid");
      save(path, options, "newer");
    });
    BOOST_TEST(outcome.kind == test::Outcome::Kind::returned, outcome.message);
    BOOST_TEST(status_of(path).st_uid == 777u);
    BOOST_TEST(mode_of(path) == 0744u);
    BOOST_TEST(read_file(path) == "newer");
  }
}

BOOST_AUTO_TEST_CASE(symbolic_links_that_are_to_be_followed_stay) {
  for (AtomicFileOptions options : kWays) {
    options.output.link = OutputLink::followed;
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "real");
    write_file(folder / "real/f", "old");
    std::filesystem::create_symlink("real/f", folder / "relative");
    std::filesystem::create_symlink(folder / "relative", folder / "absolute");
    std::filesystem::create_symlink("real/made", folder / "dangling");
    save(folder / "absolute", options, "new");
    save(folder / "dangling", options, "made");
    BOOST_TEST(std::filesystem::is_symlink(folder / "absolute"));
    BOOST_TEST(std::filesystem::is_symlink(folder / "dangling"));
    BOOST_TEST(read_file(folder / "real/f") == "new");
    BOOST_TEST(read_file(folder / "real/made") == "made");
    const Names expected = {"f", "made"};
    BOOST_TEST(list_folder(folder / "real") == expected, per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_circle_of_links_is_an_error) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder / "a");
  std::filesystem::create_symlink("a", folder / "b");
  const AtomicFileOptions following{.output = {.link = OutputLink::followed}};
  BOOST_CHECK_EXCEPTION(AtomicFile(folder / "a", following), IoError, [&](const IoError& error) {
    return error.errno_value() == ELOOP && error.context().path == (folder / "a").string();
  });
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_refused_and_stays) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  BOOST_REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const auto& path : {folder / "d", folder / "fifo", folder / "d/", folder / "d/..",
                           std::filesystem::path("/dev/null"), std::filesystem::path("")})
    BOOST_CHECK_EXCEPTION(AtomicFile{path}, UsageError, [](const UsageError& error) {
      return error.code() == ErrorCode::bad_argument;
    });
  // Also where it comes in between.
  AtomicFile file(folder / "f");
  std::filesystem::create_directory(folder / "f");
  BOOST_CHECK_THROW(file.commit(), UsageError);
  const Names expected = {"d", "f", "fifo"};
  BOOST_TEST(list_folder(folder.path()) == expected, per_element());
}

BOOST_AUTO_TEST_CASE(a_missing_folder_is_an_error_with_its_path) {
  const TemporaryFolder folder;
  BOOST_CHECK_EXCEPTION(AtomicFile(folder / "none/f"), IoError, [&](const IoError& error) {
    return error.errno_value() == ENOENT && error.context().path == (folder / "none").string();
  });
}

BOOST_AUTO_TEST_CASE(temporaries_say_whose_they_are_and_fit_the_name_limit) {
  std::string umlauts = "x";
  for (int i = 0; i < 127; ++i) umlauts += "\xc3\xa4";
  const TemporaryFolder folder;
  for (const std::string& name : {std::string("model.thalia"), std::string(255, 'n'), umlauts}) {
    const AtomicFile file(folder / name, {.allow_unnamed = false});
    const Names names = list_folder(folder.path());
    BOOST_REQUIRE(names.size() == 1u);
    const std::string& temporary = names[0];
    BOOST_TEST(temporary.size() <= 255u);
    BOOST_TEST(temporary.ends_with(".thalia-tmp"));
    const std::size_t pid = temporary.find("." + std::to_string(::getpid()) + "-");
    BOOST_REQUIRE(pid != std::string::npos);
    const std::string kept = temporary.substr(1, pid - 1);
    BOOST_TEST(name.starts_with(kept));
    BOOST_TEST((kept == name || kept.size() > 200));
    BOOST_TEST((name != umlauts || kept.size() % 2 == 1));  // no character in halves
  }
}

BOOST_AUTO_TEST_CASE(a_long_name_is_committed) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    const std::string name(255, 'n');
    save(folder / name, options, "new");
    BOOST_TEST(read_file(folder / name) == "new");
  }
}

BOOST_AUTO_TEST_CASE(a_change_of_the_working_directory_does_not_matter) {
  for (const AtomicFileOptions& options : kWays) {
    const TemporaryFolder folder;
    const test::Outcome outcome = test::run_with_faults({}, [&] {
      std::filesystem::current_path(folder.path());
      AtomicFile file("f", options);
      std::filesystem::current_path("/");
      io::pwrite_all(file.fd(), 0, bytes_of("new"), file.path());
      file.commit();
    });
    BOOST_TEST(outcome.kind == test::Outcome::Kind::returned, outcome.message);
    BOOST_TEST(read_file(folder / "f") == "new");
  }
}

BOOST_AUTO_TEST_SUITE_END()
