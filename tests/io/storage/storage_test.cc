#include "thalia/storage.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"

#include <sys/syscall.h>

using namespace thalia;
using test::bytes_of;
using test::text_of;

BOOST_AUTO_TEST_SUITE(storage)

namespace {

using Keys = std::vector<std::string>;

// The same for every storage.
void check_storage(StorageBackend& storage) {
  BOOST_TEST(storage.list().empty());
  BOOST_TEST(!storage.exists("a"));
  BOOST_TEST(!storage.erase("a"));

  storage.put("run/step_2", bytes_of("two"));
  storage.put("run/step_1", bytes_of("one"));
  storage.put("runs", bytes_of(""));
  BOOST_TEST(storage.list() == (Keys{"run/step_1", "run/step_2", "runs"}),
             boost::test_tools::per_element());
  BOOST_TEST(storage.list("run/") == (Keys{"run/step_1", "run/step_2"}),
             boost::test_tools::per_element());
  BOOST_TEST(storage.list("x").empty());
  BOOST_TEST(storage.exists("run/step_2"));
  BOOST_TEST(!storage.exists("run"));
  BOOST_TEST(storage.size("run/step_2") == 3u);
  BOOST_TEST(storage.size("runs") == 0u);
  BOOST_TEST(text_of(storage.get("run/step_2")) == "two");
  BOOST_TEST(text_of(storage.get("runs")) == "");

  std::string part(2, '\0');
  storage.get_range("run/step_1", 1, std::as_writable_bytes(std::span(part)));
  BOOST_TEST(part == "ne");
  BOOST_CHECK_EXCEPTION(storage.get_range("run/step_1", 2, std::as_writable_bytes(std::span(part))),
                        UsageError, test::has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(
      storage.get_range("run/step_1", ~0ull, std::as_writable_bytes(std::span(part))), UsageError,
      test::has_code(ErrorCode::bad_argument));

  // A view stays as it is when the object is replaced and erased.
  const StoredBytes before = storage.view("run/step_1");
  storage.put("run/step_1", bytes_of("another one"));
  BOOST_TEST(text_of(before.bytes) == "one");
  BOOST_TEST(text_of(storage.get("run/step_1")) == "another one");
  BOOST_TEST(storage.erase("run/step_1"));
  BOOST_TEST(!storage.erase("run/step_1"));
  BOOST_TEST(text_of(before.bytes) == "one");

  for (const auto& call : std::vector<std::function<void()>>{
           [&] { storage.get("run/step_1"); }, [&] { storage.size("run/step_1"); },
           [&] { storage.view("run/step_1"); }, [&] { storage.get_range("run/step_1", 0, {}); }}) {
    const auto error = test::expect<StorageError>(call, ErrorCode::storage);
    BOOST_TEST(error.key() == "run/step_1");
    BOOST_TEST(error.errno_value() == ENOENT);
  }

  // A producer that fails leaves the old object, and its own error.
  storage.put("kept", bytes_of("old"));
  BOOST_CHECK_THROW(storage.put_stream("kept",
                                       [](const ByteSink& sink) {
                                         sink(bytes_of("new"));
                                         throw std::runtime_error("no more");
                                       }),
                    std::runtime_error);
  BOOST_TEST(text_of(storage.get("kept")) == "old");
  BOOST_CHECK_THROW(
      storage.put_stream("kept", [](const ByteSink&) { throw MissingBaseError("base"); }),
      MissingBaseError);

  const std::string large(3'000'000, 'x');
  storage.put_stream("large", [&](const ByteSink& sink) {
    for (std::size_t i = 0; i < large.size(); i += 700'000)
      sink(bytes_of(large).subspan(i, std::min<std::size_t>(700'000, large.size() - i)));
    sink(bytes_of("end"));
  });
  BOOST_TEST((text_of(storage.get("large")) == large + "end"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(memory_storage_keeps_objects_under_keys) {
  MemoryStorage storage;
  check_storage(storage);
}

BOOST_AUTO_TEST_CASE(local_storage_keeps_objects_under_keys) {
  const test::TemporaryFolder folder;
  LocalStorage storage(folder / "made" / "later", {.durability = Durability::none});
  check_storage(storage);
  BOOST_TEST(test::read_file(folder / "made" / "later" / "run" / "step_2") == "two");
  // No temporary is left of the puts that failed.
  BOOST_TEST(test::list_folder(folder / "made" / "later") == (Keys{"kept", "large", "run", "runs"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_backend_of_ones_own_gets_copies_and_views) {
  // What others implement: only the pure functions.
  class Other final : public StorageBackend {
   public:
    void put_stream(std::string_view key, const ByteProducer& produce) override {
      inner_.put_stream(key, produce);
    }
    std::uint64_t size(std::string_view key) const override { return inner_.size(key); }
    void get_range(std::string_view key, std::uint64_t offset, MutableByteSpan out) const override {
      inner_.get_range(key, offset, out);
    }
    bool erase(std::string_view key) override { return inner_.erase(key); }
    bool exists(std::string_view key) const override { return inner_.exists(key); }
    std::vector<std::string> list(std::string_view prefix) const override {
      return inner_.list(prefix);
    }

   private:
    MemoryStorage inner_;
  };
  Other storage;
  check_storage(storage);
}

BOOST_AUTO_TEST_CASE(keys_lead_nowhere_else) {
  MemoryStorage memory;
  const test::TemporaryFolder folder;
  LocalStorage local(folder.path(), {.durability = Durability::none});
  const std::string nul("a\0b", 3);
  for (const std::string& key :
       {std::string(), std::string("/etc/passwd"), std::string(".."), std::string("../x"),
        std::string("a/../b"), std::string("a/.."), std::string("."), std::string("a//b"),
        std::string("a/"), std::string(".hidden"), std::string("a/.b"), nul, std::string(256, 'n'),
        std::string(512, 'a') + "/" + std::string(512, 'b')}) {
    BOOST_CHECK_EXCEPTION(check_storage_key(key), UsageError,
                          test::says(ErrorCode::bad_argument, "key"));
    for (StorageBackend* storage :
         {static_cast<StorageBackend*>(&memory), static_cast<StorageBackend*>(&local)}) {
      BOOST_CHECK_THROW(storage->put(key, {}), UsageError);
      BOOST_CHECK_THROW(storage->get(key), UsageError);
      BOOST_CHECK_THROW(storage->view(key), UsageError);
      BOOST_CHECK_THROW(storage->exists(key), UsageError);
      BOOST_CHECK_THROW(storage->erase(key), UsageError);
    }
  }
  check_storage_key(std::string(255, 'n') + "/step 1000 ü..x");
}

BOOST_AUTO_TEST_CASE(links_that_lead_out_of_the_folder_are_not_followed) {
  const test::TemporaryFolder folder;
  const auto root = folder / "root", out = folder / "out";
  LocalStorage storage(root, {.durability = Durability::none});
  storage.put("in/a", bytes_of("mine"));
  std::filesystem::create_directories(out / "sub");
  test::write_file(out / "secret", "theirs");
  // To a file, to a folder, to what is not there yet, through another link, and relative.
  std::filesystem::create_symlink(out / "secret", root / "file");
  std::filesystem::create_directory_symlink(out, root / "folder");
  std::filesystem::create_symlink(out / "new", root / "dangling");
  std::filesystem::create_symlink("folder/secret", root / "twice");
  std::filesystem::create_symlink("../../out/secret", root / "in" / "up");
  const auto refused = test::says(ErrorCode::bad_argument, "no link out of the storage's folder");
  std::string part(1, ' ');
  for (const std::string key :
       {"file", "folder/secret", "folder/new", "folder/sub/new", "dangling", "twice", "in/up"}) {
    BOOST_TEST_CONTEXT(key) {
      BOOST_CHECK_EXCEPTION(storage.put(key, bytes_of("x")), UsageError, refused);
      BOOST_CHECK_EXCEPTION(storage.get(key), UsageError, refused);
      BOOST_CHECK_EXCEPTION(storage.view(key), UsageError, refused);
      BOOST_CHECK_EXCEPTION(storage.size(key), UsageError, refused);
      BOOST_CHECK_EXCEPTION(storage.exists(key), UsageError, refused);
      BOOST_CHECK_EXCEPTION(storage.get_range(key, 0, std::as_writable_bytes(std::span(part))),
                            UsageError, refused);
    }
  }
  BOOST_CHECK_EXCEPTION(storage.put("folder/made/a", {}), UsageError, refused);
  BOOST_CHECK_EXCEPTION(storage.erase("folder/secret"), UsageError, refused);
  BOOST_TEST(test::list_folder(out) == (Keys{"secret", "sub"}), boost::test_tools::per_element());
  BOOST_TEST(test::read_file(out / "secret") == "theirs");
  BOOST_TEST(storage.list() == Keys{"in/a"}, boost::test_tools::per_element());
  // Erasing a link takes the link away, wherever it leads.
  BOOST_TEST(storage.erase("file"));
  BOOST_TEST(test::read_file(out / "secret") == "theirs");

  // Links that stay in the folder lead on, and so does one that the folder itself is.
  std::filesystem::create_symlink("in/a", root / "latest");
  std::filesystem::create_directory_symlink(root / "in", root / "same");
  std::filesystem::create_directory_symlink(root, folder / "link");
  LocalStorage linked(folder / "link", {.durability = Durability::none});
  BOOST_TEST(text_of(linked.get("latest")) == "mine");
  BOOST_TEST(text_of(linked.get("same/a")) == "mine");
  linked.put("same/a", bytes_of("new"));
  linked.put("latest", bytes_of("newer"));
  BOOST_TEST(text_of(linked.get("in/a")) == "newer");
  BOOST_TEST(linked.list() == (Keys{"in/a", "latest", "same/a"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_listed_can_be_got_and_the_other_way_round) {
  const test::TemporaryFolder folder;
  const auto root = folder / "root", out = folder / "out";
  LocalStorage storage(root, {.durability = Durability::none});
  storage.put("a/b/c", bytes_of("mine"));
  storage.put("z", {});
  std::filesystem::create_directories(out / "a");
  test::write_file(out / "a" / "secret", "theirs");
  // To a folder, through another link, and back to where the walk comes from, which has no end.
  std::filesystem::create_directory_symlink("a", root / "link");
  std::filesystem::create_directory_symlink("link/b", root / "links");
  std::filesystem::create_directory_symlink("../..", root / "a" / "b" / "top");
  std::filesystem::create_directory_symlink(".", root / "self");
  // Out of the folder, at once and later, and to nowhere.
  std::filesystem::create_directory_symlink(out, root / "out");
  std::filesystem::create_directory_symlink("../../out/a", root / "a" / "up");
  std::filesystem::create_directory_symlink("none", root / "dangling");
  // A name that is too long for a key.
  std::filesystem::path deep = root;
  for (int i = 0; i < 5; ++i) deep /= std::string(250, 'n');
  std::filesystem::create_directories(deep);
  test::write_file(deep / "f", "");
  const Keys keys = storage.list();
  BOOST_TEST(keys == (Keys{"a/b/c", "link/b/c", "links/c", "z"}), boost::test_tools::per_element());
  for (const std::string& key : keys) BOOST_TEST(storage.exists(key), key);
  BOOST_TEST(storage.list("link/") == Keys{"link/b/c"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_failing_disk_is_an_error_with_the_key_and_leaves_the_old_object) {
  const test::TemporaryFolder folder;
  LocalStorage storage(folder.path());
  storage.put("kept", bytes_of("old"));
  const test::Outcome outcome =
      test::run_with_faults({{.call = SYS_pwrite64, .errno_value = ENOSPC}}, [&] {
        try {
          storage.put("kept", bytes_of("new"));
        } catch (const StorageError& error) {
          if (error.key() != "kept" || error.operation() != "put") throw std::logic_error("facts");
          throw;
        }
      });
  BOOST_TEST(outcome.kind == test::Outcome::Kind::io_error);
  BOOST_TEST(outcome.errno_value == ENOSPC);
  BOOST_TEST(text_of(storage.get("kept")) == "old");
  BOOST_TEST(test::list_folder(folder.path()) == Keys{"kept"}, boost::test_tools::per_element());

  const auto error =
      test::expect<StorageError>([&] { storage.put("kept/below", {}); }, ErrorCode::storage);
  BOOST_TEST(error.errno_value() == ENOTDIR);
}

BOOST_AUTO_TEST_CASE(listing_skips_what_no_key_names) {
  const test::TemporaryFolder folder;
  LocalStorage storage(folder.path(), {.durability = Durability::none});
  storage.put("a/b", {});
  test::write_file(folder / ".a.1-2.thalia-tmp", "half");
  std::filesystem::create_directory(folder / ".git");
  test::write_file(folder / ".git" / "config", "");
  BOOST_TEST(storage.list() == Keys{"a/b"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(memory_storage_may_be_used_by_many_threads) {
  MemoryStorage storage;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&storage, t] {
        for (int i = 0; i < 200; ++i) {
          const std::string key = "k" + std::to_string(i % 10);
          storage.put(key, bytes_of(std::string(static_cast<std::size_t>(t) + 1, 'x')));
          const std::size_t size = storage.get(key).size();
          if (size < 1 || size > 4) std::abort();
          static_cast<void>(storage.list("k"));
        }
      });
  }
  BOOST_TEST(storage.list().size() == 10u);
}

BOOST_AUTO_TEST_CASE(uris_name_storages) {
  const test::TemporaryFolder folder;
  const auto local = open_storage("local://" + folder.path().string());
  local->put("a", bytes_of("1"));
  BOOST_TEST(test::read_file(folder / "a") == "1");
  const auto memory = open_storage("mem://");
  memory->put("a", bytes_of("1"));
  BOOST_TEST(!open_storage("mem://")->exists("a"));
  for (const char* uri : {"local://relative", "local://", "", "/tmp", "mem:/"})
    BOOST_CHECK_EXCEPTION(open_storage(uri), UsageError, test::has_code(ErrorCode::bad_argument));
  BOOST_CHECK_THROW(open_storage("s3://bucket"), UnsupportedError);
}

BOOST_AUTO_TEST_SUITE_END()
