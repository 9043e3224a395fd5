#include "thalia/state/edit.h"

#include <string>

#include "boost_test.h"
#include "brain_sample.h"
#include "state/brain/stored_brain.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/append.h"
#include "thalia/reader.h"
#include "thalia/state/quantization.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(edit_file)

namespace {

const AppendOptions kQuick{.change = {.output = {.durability = Durability::none}}};

struct BrainFile : TemporaryFolder {
  explicit BrainFile(std::string metadata = "{}") : path(*this / "b.thalia") {
    state::StoredBrain stored = state::store_brain(sample_brain(), {});
    stored.metadata_json = std::move(metadata);
    Writer writer(path, steady_options());
    state::declare(writer, stored);
    writer.commit();
  }
  ~BrainFile() { BOOST_TEST(verify(path).ok()); }
  std::string metadata() const { return std::string(Reader::open(path).metadata_json()); }
  BrainState load() const { return state::read_brain(Reader::open(path), {}); }

  std::filesystem::path path;
};

}  // namespace

BOOST_AUTO_TEST_CASE(members_are_set_where_their_keys_lead_and_all_else_stays) {
  const BrainFile file(R"({"z": 1.50, "a": {"b": 1, "c.d": [ ]}, "big": 123456789012345678901})");
  const EditFileResult result = set_in_file(
      file.path,
      {{"a.b", 2}, {"a.c.d", "new"}, {"x.y.z", 0.5}, {"author", "Ada"}, {"big", std::nullopt}}, 77,
      kQuick);
  BOOST_TEST(file.metadata() ==
             R"({"z":1.50,"a":{"b":2,"c.d":"new"},"x":{"y":{"z":0.5}},"author":"Ada"})");
  BOOST_TEST(Reader::open(file.path).header().training_steps == 77u);
  BOOST_TEST(result.append.generation == 2u);
  BOOST_TEST(result.changed.size() == 5u);
  BOOST_TEST((file.load().regions == sample_brain().regions));
}

BOOST_AUTO_TEST_CASE(keys_that_lead_nowhere_change_nothing) {
  const BrainFile file(R"({"learning_rate":0.1,"a":[1]})");
  const std::string before = read_file(file.path);
  BOOST_CHECK_EXCEPTION(set_in_file(file.path, {{"learning_rat", std::nullopt}}, {}, kQuick),
                        UsageError, says(ErrorCode::not_found, "learning_rate", "b.thalia"));
  BOOST_CHECK_EXCEPTION(set_in_file(file.path, {{"a.b", 1}}, {}, kQuick), UsageError,
                        says(ErrorCode::bad_argument, "'a'", "array"));
  BOOST_CHECK_EXCEPTION(set_in_file(file.path, {{"", 1}}, {}, kQuick), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(set_in_file(file.path, {{"t", Tensor()}}, {}, kQuick), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_TEST((read_file(file.path) == before));
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_renamed_stays_where_it_is_in_the_state) {
  const BrainFile file;
  const BrainState before = file.load();
  const Reader old = Reader::open(file.path);
  const std::string name(old.region("cortex").tensor(0).name());
  const EditFileResult result =
      rename_in_file(file.path, "cortex/" + name, "cortex/new name", kQuick);
  BOOST_TEST(result.changed == std::vector<std::string>{"cortex/" + name},
             boost::test_tools::per_element());
  const Reader reader = Reader::open(file.path);
  BOOST_TEST(!reader.region("cortex").find(name).has_value());
  BOOST_TEST((Tensor::from(reader.region("cortex").at("new name"), {}) ==
              Tensor::from(old.region("cortex").at(name), {})));
  BOOST_TEST((file.load().regions == before.regions));
  BOOST_TEST((file.load().connectivity == before.connectivity));
  rename_in_file(file.path, "new name", name, kQuick);
  BOOST_TEST((file.load().regions == before.regions));
}

BOOST_AUTO_TEST_CASE(names_that_cannot_be_given_change_nothing) {
  const BrainFile file;
  const std::string before = read_file(file.path);
  const Reader reader = Reader::open(file.path);
  const std::string first(reader.region("cortex").tensor(0).name());
  const std::string second(reader.region("cortex").tensor(1).name());
  const auto refused = [&](std::string_view from, std::string_view to, ErrorCode code) {
    BOOST_CHECK_EXCEPTION(rename_in_file(file.path, from, to, kQuick), UsageError, has_code(code));
  };
  refused("cortex/" + first, second, ErrorCode::duplicate);
  refused("cortex/none", "x", ErrorCode::not_found);
  refused("cortex/*", "x", ErrorCode::bad_argument);
  refused("cortex/" + first, "\xFF", ErrorCode::bad_argument);
  refused("cortex/" + first, "", ErrorCode::bad_argument);
  BOOST_TEST((read_file(file.path) == before));
}

BOOST_AUTO_TEST_CASE(what_is_removed_is_gone_from_file_and_state) {
  const BrainFile file;
  BrainState expected = file.load();
  const std::size_t connections = expected.connectivity.size();
  BOOST_TEST_REQUIRE(connections > 0u);
  expected.regions.at("cortex").state.find("weights")->erase("w_ff");
  remove_from_file(file.path, {"weights.w_ff"}, kQuick);
  BOOST_TEST((file.load().regions == expected.regions));
  BOOST_TEST(file.load().connectivity.size() == connections);
  const EditFileResult whole = remove_from_file(file.path, {"cortex", "cortex/*"}, kQuick);
  BOOST_TEST(whole.changed[0] == "cortex");
  BOOST_TEST(whole.append.dead_bytes > 0u);
  BOOST_TEST(!Reader::open(file.path).find_region("cortex").has_value());
  BOOST_TEST(file.load().connectivity.size() < connections);
  const std::uint64_t bytes = std::filesystem::file_size(file.path);
  compact(file.path);
  BOOST_TEST(std::filesystem::file_size(file.path) < bytes);
  const std::string before = read_file(file.path);
  BOOST_CHECK_EXCEPTION(remove_from_file(file.path, {"nothing*"}, kQuick), UsageError,
                        has_code(ErrorCode::not_found));
  BOOST_TEST((read_file(file.path) == before));
}

// A tree has more than tensors: what looks like one in the user's own data is not one.
BOOST_AUTO_TEST_CASE(data_that_looks_like_a_tensor_is_left_alone) {
  const TemporaryFolder folder;
  BrainState brain;
  Value& state = brain.regions.add("r", {}).state;
  state["notes"]["own"]["_type"] = "tensor";
  state["notes"]["own"]["_name"] = "w";
  // An object of the user's own, with a word of the format and a tensor in it.
  state["notes"]["outer"]["_type"] = "object";
  state["notes"]["outer"]["kept"] = Tensor::copy_of({1}, std::array{5.0f});
  state["weights"]["w"] = Tensor::copy_of({2}, std::array{1.0f, 2.0f});
  Value list = Value::array();
  list.push_back(Tensor::zeros(DType::f32, {3}));
  list.push_back(1);
  state["list"] = std::move(list);
  state::StoredBrain stored = state::store_brain(brain, {});
  stored.metadata_json = "{}";
  Writer writer(folder / "f", steady_options());
  state::declare(writer, stored);
  writer.commit();
  const auto load = [&] { return state::read_brain(Reader::open(folder / "f"), {}); };
  BOOST_TEST_REQUIRE((load().regions == brain.regions));
  rename_in_file(folder / "f", "weights.w", "v", kQuick);
  rename_in_file(folder / "f", "r/*kept", "other", kQuick);
  BOOST_TEST((load().regions == brain.regions));
  remove_from_file(folder / "f", {"r/v", "list*"}, kQuick);
  state.find("weights")->erase("w");
  state["list"].elements()[0] = Value();
  BOOST_TEST((load().regions == brain.regions));
}

BOOST_AUTO_TEST_CASE(compressed_and_quantized_tensors_stay_as_they_are_stored) {
  const TemporaryFolder folder;
  Sample sample = small_sample();
  sample.regions[0].tensors.push_back(ramp_tensor("large", {100, 100}));
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  save(folder / "plain", sample, options);
  quantize_file(folder / "plain", folder / "f", {.bits = 4, .include = {"large"}},
                {.save = options});
  const Reader old = Reader::open(folder / "f");
  const std::string region(old.region(0).name());
  rename_in_file(folder / "f", "large", "larger", kQuick);
  const Reader reader = Reader::open(folder / "f");
  const TensorView renamed = reader.region(region).at("larger");
  BOOST_TEST((renamed.encoding() == Encoding::quantized));
  BOOST_TEST(renamed.stored_bytes() == old.region(region).at("large").stored_bytes());
  BOOST_TEST((Tensor::from(renamed, {}) == Tensor::from(old.region(region).at("large"), {})));
  BOOST_TEST(verify(folder / "f").ok());
}

BOOST_AUTO_TEST_SUITE_END()
