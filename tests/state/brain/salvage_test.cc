#include "thalia/recover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "boost_test.h"
#include "brain_sample.h"
#include "format/header.h"
#include "state/brain/stored_brain.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "support/sanitizers.h"
#include "thalia/append.h"
#include "thalia/compress.h"
#include "thalia/reader.h"
#include "thalia/side_file.h"
#include "thalia/state/edit.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(salvage_file)

namespace {

SalvageOptions quick() {
  SalvageOptions options{.save = steady_options()};
  options.save.work.threads = 1;
  return options;
}

Sample some_tensors() {
  Sample sample{.metadata = R"({"step":3})", .training_steps = 3};
  sample.regions.push_back({.spec = {.name = "a", .config_json = R"({"k":1})"},
                            .tensors = {dense_tensor("x", DType::f32, {30, 50}, Role::weights, 1),
                                        csr_tensor("y", DType::f32, {20, 30}),
                                        dense_tensor("z", DType::i8, {7}, Role::buffer, 2)}});
  sample.regions.push_back(
      {.spec = {.name = "b"}, .tensors = {dense_tensor("x", DType::f64, {400}, Role::weights, 3)}});
  sample.connections.push_back({.source = "a",
                                .target = "b",
                                .weights = dense_tensor("", DType::f32, {9, 9}, Role::weights, 4),
                                .delays = dense_tensor("", DType::u8, {9, 9}, Role::other, 5)});
  return sample;
}

// Logical bytes by name.
std::map<std::string, std::string> payloads(const std::filesystem::path& path) {
  std::map<std::string, std::string> out;
  const auto add = [&](const std::string& name, const TensorView& view) {
    std::string bytes(view.logical_bytes(), '\0');
    view.read(std::as_writable_bytes(std::span(bytes)));
    out[name] = std::move(bytes);
  };
  const Reader reader = Reader::open(path);
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
      add(std::string(region.name()) + "/" + std::string(region.tensor(i).name()),
          region.tensor(i));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    const std::string name = connection.source + "->" + connection.target;
    add(name + ".weights", connection.weights);
    if (connection.delays) add(name + ".delays", *connection.delays);
  }
  return out;
}

struct Files : TemporaryFolder {
  std::filesystem::path whole = *this / "whole.thalia";
  std::filesystem::path hurt = *this / "hurt.thalia";
  std::filesystem::path out = *this / "out.thalia";
};

// Whatever comes of the bytes: a file that verifies, of which each tensor is one of the old ones.
// Returns how many there are; nullopt if nothing could be got.
std::optional<std::size_t> salvaged(const Files& files, const std::string& bytes,
                                    const std::map<std::string, std::string>& old) {
  write_file(files.hurt, bytes);
  std::filesystem::remove(files.out);
  try {
    const SalvageResult result = salvage(files.hurt, files.out, quick());
    BOOST_TEST_REQUIRE(verify(files.out, {.work = {.threads = 1}}).ok());
    const auto found = payloads(files.out);
    for (const auto& tensor : found) {
      // By names that nothing vouches for it may be called differently.
      const bool known = std::ranges::any_of(old, [&](const auto& one) {
        return (!result.tables_verified || one.first == tensor.first) &&
               one.second == tensor.second;
      });
      BOOST_TEST_REQUIRE(known, tensor.first);
    }
    BOOST_TEST_REQUIRE(result.tensors == found.size());
    BOOST_TEST_REQUIRE(found.size() + result.lost.size() >= std::min<std::size_t>(1, old.size()));
    return found.size();
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  BOOST_TEST_REQUIRE(!std::filesystem::exists(files.out));
  return std::nullopt;
}

std::vector<std::string> names_of(const SalvageResult& result) {
  std::vector<std::string> names;
  for (const LostTensor& tensor : result.lost) names.push_back(tensor.name);
  return names;
}

}  // namespace

BOOST_AUTO_TEST_CASE(of_a_sound_file_everything_is_taken_over) {
  const Files files;
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    save(files.whole, some_tensors(), options);
    const SalvageResult result = salvage(files.whole, files.out, quick());
    BOOST_TEST((result.whole() && result.tables_verified && result.fault.empty()));
    BOOST_TEST((result.tables == SalvageTables::header));
    BOOST_TEST(result.tensors == 6u);
    BOOST_TEST((payloads(files.whole) == payloads(files.out)));
    const Reader reader = Reader::open(files.out);
    BOOST_TEST(reader.metadata_json() == R"({"step":3})");
    BOOST_TEST(reader.header().training_steps == 3u);
    BOOST_TEST(reader.region("a").config_json() == R"({"k":1})");
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_tensor_is_left_out_and_named) {
  const Files files;
  save(files.whole, some_tensors());
  std::string bytes = read_file(files.whole);
  const Reader reader = Reader::open(files.whole);
  bytes[reader.region("a").at("y").stored_offset() + 9] ^= 4;
  write_file(files.hurt, bytes);
  const SalvageResult result = salvage(files.hurt, files.out, quick());
  BOOST_TEST(names_of(result) == std::vector<std::string>{"a/y"}, boost::test_tools::per_element());
  BOOST_TEST(result.lost[0].reason != "");
  BOOST_TEST(result.lost[0].bytes == reader.region("a").at("y").logical_bytes());
  BOOST_TEST(verify(files.out).ok());
  auto expected = payloads(files.whole);
  expected.erase("a/y");
  BOOST_TEST((payloads(files.out) == expected));
}

BOOST_AUTO_TEST_CASE(a_lost_tensor_goes_from_the_tree_of_its_state) {
  const Files files;
  state::StoredBrain stored = state::store_brain(sample_brain(), {});
  stored.metadata_json = "{}";
  Writer writer(files.whole, steady_options());
  state::declare(writer, stored);
  writer.commit();
  const Reader reader = Reader::open(files.whole);
  // The largest, so that its block is its own.
  TensorView largest = reader.region(0).tensor(0);
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    for (std::uint32_t i = 0; i < reader.region(r).tensor_count(); ++i) {
      const TensorView tensor = reader.region(r).tensor(i);
      if (tensor.stored_bytes() > largest.stored_bytes()) largest = tensor;
    }
  }
  std::string bytes = read_file(files.whole);
  bytes[largest.stored_offset()] ^= 1;
  write_file(files.hurt, bytes);
  const SalvageResult result = salvage(files.hurt, files.out, quick());
  BOOST_REQUIRE(result.lost.size() == 1u);
  BOOST_TEST(verify(files.out).ok());
  const BrainState loaded = state::read_brain(Reader::open(files.out), {});
  BOOST_TEST(!(loaded.regions == sample_brain().regions));
  // As rm would have it.
  remove_from_file(files.whole, {result.lost[0].name},
                   {.change = {.output = {.durability = Durability::none}}});
  const BrainState removed = state::read_brain(Reader::open(files.whole), {});
  BOOST_TEST((loaded.regions == removed.regions));
}

BOOST_AUTO_TEST_CASE(a_file_that_was_cut_is_saved_by_its_side_file) {
  const Files files;
  save(files.whole, some_tensors());
  const std::string bytes = read_file(files.whole);
  const Reader reader = Reader::open(files.whole);
  const std::uint64_t end = reader.region("b").at("x").stored_offset();
  write_file(files.hurt, bytes.substr(0, end + 8));
  BOOST_CHECK_EXCEPTION(salvage(files.hurt, files.out, quick()), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "nothing can be got", "hurt.thalia"));
  BOOST_TEST(!std::filesystem::exists(files.out));
  write_metadata_file(files.whole, files / "hurt.thalia.meta");
  for (const bool headless : {false, true}) {
    std::string cut = bytes.substr(0, end + 8);
    if (headless) std::fill_n(cut.begin(), 300, '\0');
    write_file(files.hurt, cut);
    const SalvageResult result = salvage(files.hurt, files.out, quick());
    BOOST_TEST((result.tables == SalvageTables::side_file && result.tables_verified));
    BOOST_TEST(names_of(result) == (std::vector<std::string>{"a->b.weights", "a->b.delays", "b/x"}),
               boost::test_tools::per_element());
    BOOST_TEST(verify(files.out).ok());
    BOOST_TEST(result.tensors == 3u);
  }
}

BOOST_AUTO_TEST_CASE(of_an_appended_file_the_older_state_is_got_where_the_newer_was_cut) {
  const Files files;
  save(files.whole, some_tensors());
  const std::string before = read_file(files.whole);
  const auto old = payloads(files.whole);
  set_in_file(files.whole, {{"step", 9}}, {},
              {.change = {.output = {.durability = Durability::none}}});
  const std::string after = read_file(files.whole);
  BOOST_REQUIRE(after.size() > before.size());
  write_file(files.hurt, after.substr(0, after.size() - 40));
  SalvageResult result = salvage(files.hurt, files.out, quick());
  BOOST_TEST((payloads(files.out) == old));
  write_file(files.hurt, std::string(256, '\0') + after.substr(256));
  result = salvage(files.hurt, files.out, quick());
  BOOST_TEST((result.tables == SalvageTables::commit_record));
  BOOST_TEST(result.generation == 2u);
  BOOST_TEST((result.whole() && result.fault != ""));
}

BOOST_AUTO_TEST_CASE(files_cut_at_every_length_and_bytes_flipped_are_saved_or_refused) {
  const Files files;
  save(files.whole, some_tensors());
  const std::string bytes = read_file(files.whole);
  const auto old = payloads(files.whole);
  const std::size_t step = kSanitized ? 211 : 61;
  for (std::size_t length = 0; length < bytes.size(); length += length < 256 ? 1 : step)
    salvaged(files, bytes.substr(0, length), old);
  for (std::size_t at = 0; at < bytes.size(); at += at < 256 ? 1 : step) {
    std::string flipped = bytes;
    flipped[at] ^= static_cast<char>(1 << at % 8);
    const auto found = salvaged(files, flipped, old);
    // A byte damages a tensor, or all of a region, with its connections.
    if (found) BOOST_TEST(*found + 5 >= old.size());
  }
}

BOOST_AUTO_TEST_CASE(a_compressed_file_is_salvaged_where_its_frames_hold) {
  const Files files;
  save(files.whole, some_tensors());
  std::string hurt = read_file(files.whole);
  hurt[hurt.size() - 200] ^= 1;
  write_file(files.hurt, hurt);
  const auto plain = salvage(files.hurt, files.out, quick());
  const auto expected = payloads(files.out);
  const auto packed = files / "hurt.thalia.zst";
  compress_checkpoint(files.hurt, packed);
  BOOST_TEST(salvage(packed, files.out, quick()).lost.size() == plain.lost.size());
  BOOST_TEST((payloads(files.out) == expected));
  std::string frames = read_file(packed);
  frames[frames.size() / 2] ^= 1;
  write_file(packed, frames);
  std::filesystem::remove(files.out);
  BOOST_CHECK_THROW(salvage(packed, files.out, quick()), Error);
  BOOST_TEST(!std::filesystem::exists(files.out));
}

BOOST_AUTO_TEST_CASE(what_is_no_file_and_outputs_that_are_there_are_refused) {
  const Files files;
  save(files.whole, some_tensors());
  write_file(files.hurt, "no checkpoint at all");
  BOOST_CHECK_THROW(salvage(files.hurt, files.out, quick()), IntegrityError);
  BOOST_CHECK_THROW(salvage(files / "missing", files.out, quick()), IoError);
  BOOST_TEST(!std::filesystem::exists(files.out));
  write_file(files.out, "mine");
  SalvageOptions options = quick();
  options.save.output.replace = false;
  BOOST_CHECK_EXCEPTION(salvage(files.whole, files.out, options), UsageError,
                        has_code(ErrorCode::exists));
  BOOST_TEST(read_file(files.out) == "mine");
}

BOOST_AUTO_TEST_SUITE_END()
