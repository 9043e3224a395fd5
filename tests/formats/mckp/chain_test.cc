#include <sys/stat.h>

#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/mckp/samples.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/mckp.h"

using namespace thalia;
using test::mckp_bytes;
using test::NamedTensors;

BOOST_AUTO_TEST_SUITE(mckp_chain)

namespace {

std::string step(unsigned i) {
  return "run/step_" + std::to_string(i);
}

// Saves `count` checkpoints, each a delta of the one before; returns what they hold.
std::vector<NamedTensors> save_chain(StorageBackend& storage, unsigned count) {
  std::vector<NamedTensors> states;
  std::optional<MckpPrevious> previous;
  for (unsigned i = 0; i < count; ++i) {
    NamedTensors state{{"w", test::normal_f32({50, 7}, 1)},
                       {"h", test::normal_bf16({333}, 2)},
                       {"ids", test::random_tensor(DType::i64, {12}, 3)}};
    for (auto& [name, tensor] : state) tensor.mutable_bytes()[i] ^= std::byte{0x55};
    if (i % 3 == 0) state.emplace_back("now_and_then", test::normal_f32({9}, i));
    MckpWriteResult result;
    storage.put(step(i), test::bytes_of(mckp_bytes(state, {.header = {.previous = previous}},
                                                   states.empty() ? NamedTensors{} : states.back(),
                                                   &result)));
    previous = MckpPrevious{.key = step(i), .content_hash = result.content_hash};
    states.push_back(std::move(state));
  }
  return states;
}

void check_chain(const MckpChain& chain, const NamedTensors& state, std::size_t files) {
  BOOST_TEST(chain.files().size() == files);
  for (const auto& [name, tensor] : state) BOOST_TEST((chain.read(name) == tensor), name);
  chain.verify_content();
}

}  // namespace

BOOST_AUTO_TEST_CASE(chains_of_ten_deltas_come_back) {
  MemoryStorage storage;
  const auto states = save_chain(storage, 11);
  for (unsigned i = 0; i < 11; ++i)
    check_chain(MckpChain::open(storage, step(i)), states[i], i + 1);
  // The last one as bytes that are not stored.
  const StoredBytes last = storage.view(step(10));
  storage.erase(step(10));
  check_chain(MckpChain::open(storage, MckpFile::from_bytes(last)), states[10], 11);
}

BOOST_AUTO_TEST_CASE(chains_of_files_are_found_from_a_path) {
  const test::TemporaryFolder folder;
  LocalStorage storage(folder.path(), {.durability = Durability::none});
  const auto states = save_chain(storage, 3);
  check_chain(MckpChain::open(folder / "run" / "step_2"), states[2], 3);
  // With the ending of the format, as programs name them.
  std::filesystem::rename(folder / "run" / "step_1", folder / "run" / "step_1.mckp");
  check_chain(MckpChain::open(folder / "run" / "step_2"), states[2], 3);
}

BOOST_AUTO_TEST_CASE(a_chain_that_was_moved_from_still_has_its_files) {
  const test::TemporaryFolder folder;
  LocalStorage storage(folder.path(), {.durability = Durability::none});
  const auto states = save_chain(storage, 3);
  MckpChain chain = MckpChain::open(folder / "run" / "step_2");
  const MckpChain moved = std::move(chain);
  check_chain(moved, states[2], 3);
  check_chain(chain, states[2], 3);
}

BOOST_AUTO_TEST_CASE(missing_and_wrong_bases_are_told_apart) {
  MemoryStorage storage;
  save_chain(storage, 3);
  const std::vector<std::byte> first = storage.get(step(0));
  storage.erase(step(0));
  try {
    MckpChain::open(storage, step(2));
    BOOST_ERROR("a chain without its end was opened");
  } catch (const MissingBaseError& error) {
    BOOST_TEST(error.base() == step(0));
  }
  storage.put(step(0), test::bytes_of(mckp_bytes({{"w", test::normal_f32({50, 7}, 99)}})));
  BOOST_CHECK_EXCEPTION(MckpChain::open(storage, step(2)), IntegrityError,
                        test::says(ErrorCode::checksum_mismatch, "previous_checkpoint_hash"));
  const auto missing =
      test::expect<StorageError>([&] { MckpChain::open(storage, "none"); }, ErrorCode::storage);
  BOOST_TEST(missing.key() == "none");
  // The newest file can be looked at without its base.
  BOOST_TEST(MckpFile::from_bytes(storage.view(step(2))).header().previous->key == step(1));
  storage.put(step(0), first);
  BOOST_TEST(MckpChain::open(storage, step(2)).files().size() == 3u);
}

BOOST_AUTO_TEST_CASE(cycles_and_endless_chains_are_refused) {
  MemoryStorage storage;
  const Tensor tensor = Tensor::zeros(DType::u8, {100});
  MckpWriteResult result;
  mckp_bytes({{"t", tensor}}, {}, {}, &result);
  // All of equal content, so that every hash is right.
  const auto delta_of = [&](const std::string& key) {
    return mckp_bytes(
        {{"t", tensor}},
        {.header = {.previous = MckpPrevious{key, result.content_hash}}, .work = {.threads = 1}},
        {{"t", tensor}});
  };
  storage.put("a", test::bytes_of(delta_of("b")));
  storage.put("b", test::bytes_of(delta_of("a")));
  storage.put("self", test::bytes_of(delta_of("self")));
  for (const char* const key : {"a", "b", "self"})
    BOOST_CHECK_EXCEPTION(MckpChain::open(storage, key), FormatError,
                          test::says(ErrorCode::inconsistent, "cycle"));
  for (unsigned i = 0; i < 1024; ++i)
    storage.put(step(i),
                test::bytes_of(i == 0 ? mckp_bytes({{"t", tensor}}, {.work = {.threads = 1}})
                                      : delta_of(step(i - 1))));
  BOOST_TEST((MckpChain::open(storage, step(1023)).read("t") == tensor));
  storage.put(step(1024), test::bytes_of(delta_of(step(1023))));
  BOOST_CHECK_EXCEPTION(MckpChain::open(storage, step(1024)), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(a_previous_file_that_lacks_the_tensor_is_refused) {
  MemoryStorage storage;
  const Tensor tensor = test::normal_f32({100}, 1);
  MckpWriteResult result;
  storage.put("base", test::bytes_of(mckp_bytes({{"other", tensor}}, {}, {}, &result)));
  storage.put("next", test::bytes_of(mckp_bytes(
                          {{"w", tensor}},
                          {.header = {.previous = MckpPrevious{"base", result.content_hash}}},
                          {{"w", tensor}})));
  const MckpChain chain = MckpChain::open(storage, "next");
  BOOST_CHECK_EXCEPTION(chain.read("w"), FormatError,
                        test::says(ErrorCode::inconsistent, "no such tensor"));
}

BOOST_AUTO_TEST_CASE(a_wrong_content_hash_is_found_where_it_is_looked_for) {
  MemoryStorage storage;
  const Tensor tensor = test::normal_f32({100}, 1), other = test::normal_f32({100}, 2);
  MckpWriteResult result;
  storage.put("base", test::bytes_of(mckp_bytes({{"w", tensor}}, {}, {}, &result)));
  // A writer that was given another base than it names.
  Tensor near = other;
  near.mutable_bytes()[0] ^= std::byte{1};
  storage.put("near", test::bytes_of(mckp_bytes(
                          {{"w", near}},
                          {.header = {.previous = MckpPrevious{"base", result.content_hash}}},
                          {{"w", other}})));
  const MckpChain chain = MckpChain::open(storage, "near");
  BOOST_TEST((chain.read("w") != near));
  BOOST_CHECK_EXCEPTION(chain.verify_content(), IntegrityError,
                        test::says(ErrorCode::checksum_mismatch, "content_hash"));
}

// A delta that names `key` with this content hash.
void write_delta_of(const std::filesystem::path& path, const std::string& key, Digest256 hash) {
  const Tensor tensor = test::normal_f32({100}, 1);
  test::write_file(path,
                   mckp_bytes({{"w", tensor}}, {.header = {.previous = MckpPrevious{key, hash}}},
                              {{"w", tensor}}));
}

BOOST_AUTO_TEST_CASE(a_file_names_no_file_outside_its_own_folder) {
  const test::TemporaryFolder folder;
  const auto deep = folder / "any" / "folder";
  std::filesystem::create_directories(deep);
  std::filesystem::create_directories(folder / "private" / "models");
  MckpWriteResult result;
  const std::string base = mckp_bytes({{"w", test::normal_f32({100}, 1)}}, {}, {}, &result);
  // Where any folder further up would have it, with the hash that is asked for.
  test::write_file(folder / "private" / "models" / "run.mckp", base);
  write_delta_of(deep / "delta.mckp", "private/models/run", result.content_hash);
  const auto missing =
      test::expect<MissingBaseError>([&] { MckpChain::open(deep / "delta.mckp"); }, ErrorCode::io);
  BOOST_TEST(missing.base() == "private/models/run");
  BOOST_TEST(missing.context().bound == "a file of that key in its folder, or one to search");
  // By its last name beside the delta, and below it by its whole key.
  test::write_file(deep / "run", base);
  BOOST_TEST(MckpChain::open(deep / "delta.mckp").files().size() == 2u);
  std::filesystem::remove(deep / "run");
  std::filesystem::create_directories(deep / "private" / "models");
  test::write_file(deep / "private" / "models" / "run.mckp", base);
  BOOST_TEST(MckpChain::open(deep / "delta.mckp").files().size() == 2u);
}

BOOST_AUTO_TEST_CASE(nothing_is_told_of_a_named_file_that_is_something_else) {
  const test::TemporaryFolder folder;
  LocalStorage storage(folder.path(), {.durability = Durability::none});
  const std::string other = mckp_bytes({{"w", test::normal_f32({100}, 2)}});
  MckpWriteResult result;
  mckp_bytes({{"w", test::normal_f32({100}, 2)}}, {}, {}, &result);
  write_delta_of(folder / "delta", "named", {});
  for (const std::string& contents : {std::string("SECRET of 21 bytes..."), std::string(),
                                      "MCKP" + std::string(60, 'S'), other, other.substr(0, 40)}) {
    test::write_file(folder / "named", contents);
    for (const bool stored : {false, true}) {
      try {
        stored ? MckpChain::open(storage, "delta") : MckpChain::open(folder / "delta");
        BOOST_ERROR("a file that is something else was taken");
      } catch (const IntegrityError& error) {
        const std::string what = error.what();
        BOOST_TEST_CONTEXT(what) {
          BOOST_TEST((error.code() == ErrorCode::checksum_mismatch));
          BOOST_TEST(what.find("named") != std::string::npos);
          BOOST_TEST(what.find("SECR") == std::string::npos);
          BOOST_TEST(what.find("SSS") == std::string::npos);
          BOOST_TEST(what.find(std::to_string(contents.size()) + " bytes") == std::string::npos);
          BOOST_TEST(error.context().value.empty());
        }
      }
    }
  }
  // Nothing that could wait or do something is opened.
  std::filesystem::remove(folder / "named");
  BOOST_REQUIRE(::mkfifo((folder / "named").c_str(), 0600) == 0);
  BOOST_CHECK_EXCEPTION(MckpChain::open(folder / "delta"), MissingBaseError,
                        test::says(ErrorCode::io, "(not a regular file)"));
}

BOOST_AUTO_TEST_CASE(previous_files_are_looked_for_where_the_caller_says) {
  const test::TemporaryFolder folder;
  const auto here = folder / "here", there = folder / "there";
  std::filesystem::create_directories(here);
  std::filesystem::create_directories(there / "run");
  MckpWriteResult result;
  const std::string base = mckp_bytes({{"w", test::normal_f32({100}, 1)}}, {}, {}, &result);
  write_delta_of(here / "delta", "run/base", result.content_hash);
  test::write_file(there / "run" / "base.mckp", base);
  BOOST_CHECK_THROW(MckpChain::open(here / "delta"), MissingBaseError);
  BOOST_TEST(MckpChain::open(here / "delta", {.chain = {.search = {there}}}).files().size() == 2u);
  BOOST_TEST(MckpChain::open(here / "delta", {.chain = {.search = {here, there / "run"}}})
                 .files()
                 .size() == 2u);
  // Another file of that name, found before, does not hide it.
  test::write_file(here / "base", mckp_bytes({{"w", test::normal_f32({100}, 7)}}));
  BOOST_TEST(MckpChain::open(here / "delta", {.chain = {.search = {there}}}).files().size() == 2u);
  // Those who read files of strangers say where bases may lie; links do not lead out.
  const MckpReadOptions server{.chain = {.search = {there}, .bases = within(here)}};
  BOOST_CHECK_THROW(MckpChain::open(here / "delta", server), IntegrityError);
  std::filesystem::remove(here / "base");
  std::filesystem::create_symlink(there / "run" / "base.mckp", here / "base");
  BOOST_CHECK_EXCEPTION(MckpChain::open(here / "delta", server), MissingBaseError,
                        test::says(ErrorCode::io, "(outside the folder that bases may lie in)"));
  BOOST_TEST(MckpChain::open(here / "delta").files().size() == 2u);
  std::filesystem::remove(here / "base");
  test::write_file(here / "base", base);
  BOOST_TEST(MckpChain::open(here / "delta", server).files().size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
