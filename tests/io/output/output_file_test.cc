#include "thalia/files.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "base/stop_question.h"
#include "boost_test.h"
#include "io/output/spool.h"
#include "io/output/temporary_file.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/storage.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(output_file)

namespace {

constexpr std::size_t kLarge = 3 << 20;

// Writes beyond fail with EFBIG until the next call. A soft limit: it may be raised again.
void limit_file_size(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("no limit");
}

template <typename Call>
bool fails(const Call& call) {
  try {
    call();
    return false;
  } catch (const Error&) {
    return true;
  }
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

BOOST_AUTO_TEST_CASE(pieces_of_any_size_come_together_and_appear_with_the_commit) {
  const TemporaryFolder folder;
  const std::vector<std::byte> large = random_bytes(kLarge);
  write_file(folder / "f", "old");
  for (const Durability durability : {Durability::none, Durability::data, Durability::full}) {
    OutputFile out(folder / "f", {.durability = durability});
    out.write(bytes_of("0123"));
    out.write(large);
    out.write(bytes_of("end"));
    out.overwrite(1, bytes_of("ab"));
    BOOST_TEST(out.size() == 4 + kLarge + 3);
    std::string seen(4, '?');
    out.read(0, std::as_writable_bytes(std::span(seen)));
    BOOST_TEST(seen == "0ab3");
    BOOST_TEST(read_file(folder / "f") == "old");
    BOOST_TEST(out.commit() >= 0);
    BOOST_TEST((read_file(folder / "f") == "0ab3" + text_of(large) + "end"));
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
    BOOST_CHECK_EXCEPTION(out.write({}), UsageError, has_code(ErrorCode::wrong_state));
    BOOST_CHECK_EXCEPTION(out.commit(), UsageError, has_code(ErrorCode::wrong_state));
    write_file(folder / "f", "old");
  }
}

BOOST_AUTO_TEST_CASE(after_a_write_that_failed_nothing_is_put_in_place) {
  for (int failing = 0; failing < 4; ++failing) {
    const TemporaryFolder folder;
    write_file(folder / "f", "old");
    const Outcome outcome = run_with_faults({}, [&] {
      OutputFile out(folder / "f");
      const std::vector<std::byte> large(kLarge);
      for (int call = 0; call < 4; ++call) {
        limit_file_size(call == failing ? 0 : RLIM_INFINITY);
        const bool failed = fails([&] { out.write(large); });
        require(failed == (call >= failing), "another call failed");
      }
      limit_file_size(RLIM_INFINITY);
      out.commit();
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::other_error);
    BOOST_TEST(outcome.message.find("failed before") != std::string::npos, outcome.message);
    BOOST_TEST(outcome.message.find("File too large") != std::string::npos, outcome.message);
    BOOST_TEST(read_file(folder / "f") == "old");
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_question_ends_what_its_own_thread_writes) {
  const TemporaryFolder folder;
  write_file(folder / "f", "old");
  bool wanted = false;
  const std::function<bool()> question = [&] { return wanted; };
  const std::function<bool()> never = [] { return false; };
  OutputFile out(folder / "f");
  const StopQuestion asked(question);
  out.write(bytes_of("new"));
  wanted = true;
  {
    const StopQuestion inner(never);
    out.write(bytes_of("er"));
  }
  std::thread([&] { BOOST_TEST(!StopQuestion::says_yes()); }).join();
  BOOST_CHECK_THROW(out.commit(), CancelledError);
  BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  BOOST_TEST(read_file(folder / "f") == "old");
}

BOOST_AUTO_TEST_CASE(after_a_stop_nothing_is_put_in_place) {
  const TemporaryFolder folder;
  std::stop_source stop;
  OutputFile written(folder / "written", {}, stop.get_token());
  OutputFile other(folder / "other", {}, stop.get_token());
  OutputFile changed(folder / "changed", {}, stop.get_token());
  OutputFile seen(folder / "seen", {}, stop.get_token());
  for (OutputFile* const out : {&written, &changed, &seen}) out->write(bytes_of("x"));
  stop.request_stop();
  std::byte read{};
  BOOST_CHECK_THROW(written.commit(), CancelledError);
  BOOST_CHECK_THROW(other.write(bytes_of("x")), CancelledError);
  BOOST_CHECK_THROW(changed.overwrite(0, bytes_of("y")), CancelledError);
  BOOST_CHECK_THROW(seen.read(0, {&read, 1}), CancelledError);
  BOOST_CHECK_THROW(seen.commit(), UsageError);
  BOOST_TEST(list_folder(folder.path()).empty());
}

// A producer that swallows an error must not leave an object with a gap.
BOOST_AUTO_TEST_CASE(a_storage_keeps_the_old_object_where_a_write_failed) {
  const TemporaryFolder folder;
  LocalStorage(folder.path()).put("k", bytes_of("old"));
  const Outcome outcome = run_with_faults({}, [&] {
    LocalStorage(folder.path()).put_stream("k", [](const ByteSink& sink) {
      limit_file_size(0);
      require(fails([&] { sink(std::vector<std::byte>(kLarge)); }), "no failure");
      limit_file_size(RLIM_INFINITY);
      fails([&] { sink(bytes_of("rest")); });
    });
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::other_error);
  BOOST_TEST(outcome.message.find("failed before") != std::string::npos, outcome.message);
  BOOST_TEST(read_file(folder / "k") == "old");
}

// linkat() puts it there; a temporary name is only for what replaces a file.
BOOST_AUTO_TEST_CASE(a_new_file_never_has_a_temporary_name_where_it_can_have_none) {
  const TemporaryFolder folder;
  { OutputFile probe(folder / "probe"); }
  if (bool(io::open_unnamed_file(folder.path())) && !list_folder(folder.path()).empty()) return;
  const Outcome outcome = run_with_faults({}, [&] {
    OutputFile out(folder / std::string(255, 'n'));
    require(list_folder(folder.path()).empty(), "a name");
    out.write(bytes_of("x"));
    out.commit();
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  BOOST_TEST(list_folder(folder.path()) == Names{std::string(255, 'n')}, per_element());
}

BOOST_AUTO_TEST_CASE(temporary_files_fit_the_name_limit_are_private_and_go) {
  const TemporaryFolder folder;
  for (const std::size_t length : {1u, 240u, 255u}) {
    const std::string name(length, 'n');
    {
      const io::TemporaryFile file(folder / name, {}, /*allow_unnamed=*/false);
      BOOST_REQUIRE(list_folder(folder.path()).size() == 1u);
      BOOST_TEST(file.path() == folder / list_folder(folder.path())[0]);
      struct stat status;
      BOOST_REQUIRE(::stat(file.path().c_str(), &status) == 0);
      BOOST_TEST((status.st_mode & 0777) == 0600u);
    }
    BOOST_TEST(list_folder(folder.path()).empty());
  }
}

BOOST_AUTO_TEST_CASE(temporary_files_without_a_name_are_private_and_go_too) {
  const TemporaryFolder folder;
  std::filesystem::path path;
  {
    const io::TemporaryFile file(folder / "n");
    path = file.path();
    BOOST_TEST(list_folder(folder.path()).empty());
    struct stat status;
    BOOST_REQUIRE(::stat(path.c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777) == 0600u);
    BOOST_TEST(status.st_nlink == 0u);
  }
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(a_spool_needs_no_name_in_its_folder) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "spool");
  io::Spool spool(10, folder.path());
  const std::vector<std::byte> bytes = random_bytes(3'000'000);
  spool.append(ByteSpan(bytes).first(7));
  spool.append(ByteSpan(bytes).subspan(7));
  BOOST_TEST(list_folder(folder.path()) == Names{"spool"}, per_element());
  std::string back;
  spool.take(bytes.size(), [&](ByteSpan piece) { back += text_of(piece); });
  BOOST_TEST((back == text_of(bytes)));
}

BOOST_AUTO_TEST_CASE(a_tmpdir_that_is_no_folder_is_an_io_error_with_its_path) {
  const TemporaryFolder folder;
  const Outcome outcome = run_with_faults({}, [&] {
    ::setenv("TMPDIR", (folder / "none").c_str(), 1);
    io::Spool spool(4, {});
    spool.append(bytes_of("few"));
    require(fails([&] { temporary_folder(); }), "a folder");
    spool.append(bytes_of("many"));
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
  BOOST_TEST(outcome.message.find((folder / "none").string()) == 0u, outcome.message);
}

BOOST_AUTO_TEST_CASE(paths_are_answered_for_or_an_io_error) {
  const TemporaryFolder folder;
  write_file(folder / "f", "123");
  std::filesystem::create_symlink("f", folder / "link");
  BOOST_TEST(file_bytes(folder / "link") == 3u);
  BOOST_TEST(is_file(folder / "link"));
  BOOST_TEST(!is_file(folder.path()));
  BOOST_TEST(is_same_file(folder / "f", folder / "link"));
  BOOST_TEST(!is_same_file(folder / "f", folder / "none"));
  BOOST_TEST(resolved_path(folder / "link") == resolved_path(folder / "f"));
  BOOST_TEST(resolved_path("none/of/this") == std::filesystem::current_path() / "none/of/this");
  BOOST_TEST(folder_of("f") == ".");
  BOOST_CHECK_EXCEPTION(file_bytes(folder / "none"), IoError, [&](const IoError& error) {
    return error.errno_value() == ENOENT && error.context().path == (folder / "none").string();
  });
  std::filesystem::create_symlink("loop", folder / "loop");
  BOOST_CHECK_THROW(resolved_path(folder / "loop"), IoError);
  BOOST_TEST(remove_file(folder / "f"));
  BOOST_TEST(!remove_file(folder / "f"));
}

BOOST_AUTO_TEST_SUITE_END()
