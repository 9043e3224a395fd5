#include "formats/v01/state.h"
#include "checkpoint/packing.h"

#include <algorithm>
#include <array>
#include <string>

#include "boost_test.h"
#include "formats/v01/files.h"
#include "formats/v01/names.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/state/checkpoint.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(v01_state)

namespace {

std::string plain(const V01Document& document) {
  return v01_text(encode_v01(document));
}

// Files that the original wrote, and no one edited by hand.
std::vector<std::filesystem::path> untouched_files() {
  std::vector<std::filesystem::path> files = v01_positives();
  std::erase_if(files, [](const auto& path) { return read_v01(path).aligned; });
  return files;
}

bool any_contains(const std::vector<std::string>& sentences, std::string_view part) {
  return std::ranges::any_of(sentences, [&](const std::string& sentence) {
    return sentence.find(part) != std::string::npos;
  });
}

// Only what 0.1 has a place for.
BrainState small_brain() {
  BrainState brain;
  brain.training_steps = 12;
  brain.metadata["experiment"] = "x";
  brain.metadata["stage"] = 3;
  brain.state["config"]["size"] = 4;
  brain.state["scheduler"]["current_time"] = 12.5;
  BrainRegion region;
  region.weights()["w"] = Tensor::zeros(DType::f32, {4, 2});
  region.region_state()["membrane"] = Tensor::zeros(DType::f32, {4});
  region.n_neurons = 4;
  brain.regions.add("cortex", region);
  brain.pathways.add("loop", BrainRegion{});
  return brain;
}

std::vector<std::string> keys(const Value& object) {
  std::vector<std::string> names;
  for (const auto& member : object.members()) names.push_back(member.name);
  return names;
}

}  // namespace

// Comparing each name with all others would take 10^11 steps.
BOOST_AUTO_TEST_CASE(names_are_given_in_one_pass) {
  formats::V01Names names;
  for (int i = 0; i < 300'000; ++i) names.region("region " + std::to_string(i));
  BOOST_TEST(names.known("region 299999") == "region 299999");
  BOOST_CHECK_THROW(names.region("region 7"), UnsupportedError);
}

BOOST_AUTO_TEST_CASE(files_of_the_original_come_back_through_a_state) {
  const auto files = untouched_files();
  BOOST_TEST(files.size() >= 3u);
  for (const auto& path : files) {
    BOOST_TEST_CONTEXT(path) {
      const V01Document document = read_v01(path).document;
      const V01Conversion back = to_v01(from_v01(document));
      BOOST_TEST(back.losses.empty());
      BOOST_TEST((plain(back.document) == plain(document)));
    }
  }
}

BOOST_AUTO_TEST_CASE(files_of_the_original_come_back_through_version_1_0) {
  const TemporaryFolder folder;
  for (const auto& path : untouched_files()) {
    BOOST_TEST_CONTEXT(path) {
      const V01Document document = read_v01(path).document;
      BrainSaveOptions options{.sparse = SparseStorage::as_is};
      options.save.output.durability = Durability::none;
      checkpoint::save_brain(from_v01(document), folder / "new.thalia", options, false);
      const V01Conversion back =
          to_v01(BrainCheckpoint::load(folder / "new.thalia", {.restore = false}));
      BOOST_TEST(back.losses.empty());
      BOOST_TEST((back.document.metadata == document.metadata));
      BOOST_TEST((back.document.entries == document.entries));
      BOOST_TEST((plain(back.document) == plain(document)));
    }
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_only_python_has_come_back_through_version_1_0) {
  const TemporaryFolder folder;
  const V01Document document = decode_v01(encode_v01(v01_sample())).document;
  BrainSaveOptions options{.sparse = SparseStorage::as_is};
  options.save.output.durability = Durability::none;
  BrainCheckpoint::save(from_v01(document), folder / "new.thalia", options);
  const V01Conversion back = to_v01(BrainCheckpoint::load(folder / "new.thalia"));
  BOOST_TEST((plain(back.document) == plain(document)));
}

BOOST_AUTO_TEST_CASE(a_document_becomes_regions_pathways_and_state) {
  const BrainState brain = from_v01(read_v01(v01_data("full.thalia")).document);
  BOOST_TEST(brain.training_steps == 1000u);
  BOOST_TEST(brain.regions.size() == 4u);
  BOOST_TEST(brain.pathways.names().front() == "cortex_to_striatum");
  BOOST_TEST(brain.regions.at("cortex").n_neurons == 4u);
  BOOST_TEST(brain.regions.at("striatum").n_neurons == 6u);
  BOOST_TEST(brain.regions.at("empty_region").n_neurons == 0u);
  BOOST_TEST(brain.state.at("theta").at("frequency").as_double() == 8.0);
  BOOST_TEST(brain.state.at("config").at("n_actions").as_int64() == 2);
  BOOST_TEST(brain.metadata.find("config") == nullptr);
  BOOST_TEST(brain.metadata.at("growth_history").size() == 2u);
  BOOST_TEST(brain.metadata.at("v0_1").at("timestamp").as_uint64() == 1765000000u);
}

// 2^32 + 5 elements, none of which is stored, would be 5 neurons.
BOOST_AUTO_TEST_CASE(a_membrane_of_more_elements_than_a_region_can_have_neurons_is_refused) {
  const std::uint64_t elements = (std::uint64_t{1} << 32) + 5;
  const Tensor membrane = Tensor::coo<std::uint64_t>(DType::f32, {elements}, {});
  V01Document document;
  V01Entry entry{.name = "cortex", .state = Value::object()};
  entry.state["neuron_state"] = Value::object();
  entry.state["neuron_state"]["membrane"] = membrane;
  document.entries.push_back(entry);
  BOOST_CHECK_EXCEPTION(from_v01(document), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "membrane", "4294967301", "cortex"));
  // As many neurons as the lower half of the count tells are not what the membrane says.
  BrainState brain;
  brain.regions.add("cortex", {.n_neurons = 5, .state = entry.state});
  BOOST_TEST(any_contains(to_v01(brain).losses, "n_neurons of 'cortex' is lost"));
}

BOOST_AUTO_TEST_CASE(a_state_gets_the_metadata_of_the_original_in_its_order) {
  const V01Conversion made = to_v01(small_brain(), {.timestamp = 1765000000});
  const std::vector<std::string> expected{"experiment",
                                          "stage",
                                          "timestamp",
                                          "thalia_version",
                                          "checkpoint_format_version",
                                          "pytorch_version",
                                          "device",
                                          "training_steps",
                                          "config",
                                          "theta",
                                          "scheduler",
                                          "trial_state",
                                          "growth_history",
                                          "precision_policy",
                                          "precision_stats"};
  BOOST_TEST(keys(made.document.metadata) == expected, boost::test_tools::per_element());
  const Value& metadata = made.document.metadata;
  BOOST_TEST(metadata.at("timestamp").as_string() == "2025-12-06T05:46:40");
  BOOST_TEST(metadata.at("training_steps").as_uint64() == 12u);
  BOOST_TEST(metadata.at("config").at("size").as_int64() == 4);
  BOOST_TEST(metadata.at("theta").size() == 0u);
  BOOST_TEST(made.document.header.total_synapses == 8u);
  BOOST_TEST(made.losses.empty());
}

BOOST_AUTO_TEST_CASE(precision_statistics_are_the_originals) {
  V01Document document = read_v01(v01_data("full.thalia")).document;
  BrainState brain = from_v01(document);
  brain.metadata.erase("v0_1");
  const Value made = to_v01(brain).document.metadata.at("precision_stats");
  const Value& original = document.metadata.at("precision_stats");
  // The original does not look into dataclasses and tuples: it counts fewer.
  for (const char* group : {"fp16", "fp64", "int", "other"}) {
    BOOST_TEST_CONTEXT(group) {
      for (const char* number : {"count", "bytes", "mb"})
        BOOST_TEST((made.at(group).at(number) == original.at(group).at(number)), number);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_changes_in_a_state_changes_in_the_document) {
  BrainState brain = from_v01(read_v01(v01_data("full.thalia")).document);
  brain.training_steps = 2000;
  brain.metadata["description"] = "more";
  brain.metadata.erase("stage");
  brain.state["config"]["n_actions"] = 7;
  brain.state["oscillators"]["theta"] = 0.25;
  const V01Document document = to_v01(brain).document;
  BOOST_TEST(document.header.training_steps == 2000u);
  BOOST_TEST(document.metadata.at("training_steps").as_uint64() == 2000u);
  BOOST_TEST(document.metadata.at("description").as_string() == "more");
  BOOST_TEST(document.metadata.find("stage") == nullptr);
  BOOST_TEST(document.metadata.at("config").at("n_actions").as_int64() == 7);
  BOOST_TEST(document.metadata.at("oscillators").at("theta").as_double() == 0.25);
  BOOST_TEST(document.metadata.find("v0_1") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_history_that_grew_is_not_the_one_that_was_read) {
  const V01Document document = read_v01(v01_data("full.thalia")).document;
  BrainState brain = from_v01(document);
  Value event = Value::object();
  event["step"] = 5;
  event["region"] = "cortex";
  brain.metadata["growth_history"].push_back(event);
  BOOST_TEST(to_v01(brain).document.metadata.at("growth_history").size() == 3u);
}

BOOST_AUTO_TEST_CASE(everything_brain_wide_survives) {
  BrainState brain = small_brain();
  brain.state["replay"]["buffer"] = Tensor::zeros(DType::f32, {3, 2});
  brain.state["sleep_state"]["stage"] = "sws";
  brain.state["oscillators"]["phase"] = Tensor::zeros(DType::f64, {5});
  brain.state["neuromodulators"]["dopamine"] = 0.5;
  brain.connectivity.add({"cortex", "cortex", Tensor::zeros(DType::f32, {4, 4}), std::nullopt});
  brain.connectivity.add({"cortex", "pathway:loop", Tensor::zeros(DType::f64, {4, 1}),
                          Tensor::zeros(DType::f32, {4, 1})});
  const V01Conversion made = to_v01(brain);
  BOOST_TEST(made.losses.empty());
  const BrainState back = from_v01(decode_v01(encode_v01(made.document)).document);
  BOOST_TEST((back.connectivity == brain.connectivity));
  for (const auto& [name, value] : brain.state.members())
    BOOST_TEST((back.state.at(name) == value), name);
  BOOST_TEST((back.regions == brain.regions));
  BOOST_TEST((back.pathways == brain.pathways));
}

BOOST_AUTO_TEST_CASE(losses_name_what_is_lost_and_where) {
  BrainState brain = small_brain();
  BrainRegion& cortex = brain.regions.at("cortex");
  cortex.n_neurons = 5;
  cortex.n_inputs = 2;
  cortex.neuron_type = NeuronType::lif;
  cortex.homeostatic_updated = 7;
  cortex.metadata["note"] = "n";
  brain.pathways.at("loop").n_inputs = 3;
  const auto losses = to_v01(brain).losses;
  BOOST_TEST(losses.size() == 5u);
  BOOST_TEST(any_contains(losses, "n_neurons of 'cortex' is lost"));
  BOOST_TEST(any_contains(losses, "n_inputs of 'cortex', 'pathway:loop' is lost"));
  BOOST_TEST(any_contains(losses, "neuron_type of 'cortex' is lost"));
  BOOST_TEST(any_contains(losses, "homeostatic_updated of 'cortex' is lost"));
  BOOST_TEST(any_contains(losses, "metadata of 'cortex' is lost"));
}

BOOST_AUTO_TEST_CASE(other_element_types_become_wider_ones) {
  const auto check = [](DType dtype, std::initializer_list<int> bytes, auto expected) {
    using Element = typename decltype(expected)::value_type;
    std::vector<std::byte> stored;
    for (const int byte : bytes) stored.push_back(static_cast<std::byte>(byte));
    const Shape shape{expected.size()};
    BrainState brain = small_brain();
    brain.regions.at("cortex").weights()["x"] = Tensor::copy_of(dtype, shape, stored);
    const V01Conversion made = to_v01(brain);
    const Tensor& x = made.document.entries[0].state.at("weights").at("x").as_tensor();
    BOOST_TEST(x.as<Element>() == std::span<const Element>(expected),
               boost::test_tools::per_element());
    BOOST_TEST(any_contains(
        made.losses, "elements of type " + std::string(dtype_name(dtype)) + " are stored as " +
                         std::string(dtype_name(x.dtype())) + ": 'cortex/weights.x'"));
  };
  using Ints = std::array<std::int32_t, 2>;
  check(DType::i8, {0xFF, 0x80}, Ints{-1, -128});
  check(DType::u8, {0xFF, 0x80}, Ints{255, 128});
  check(DType::i16, {0xFF, 0xFF, 0, 0x80}, Ints{-1, -32768});
  check(DType::u16, {0xFF, 0xFF, 0, 0x80}, Ints{65535, 32768});
  check(DType::i4, {0x8F}, Ints{-1, -8});
  check(DType::binary, {0x01}, Ints{1, -1});
  check(DType::u32, {0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0},
        std::array<std::int64_t, 2>{4294967295, 1});
  check(DType::u64, {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F},
        std::array<std::int64_t, 1>{std::int64_t{0x7FFFFFFFFFFFFFFF}});
  check(DType::bf16, {0x80, 0x3F, 0x80, 0xFF}, std::array<float, 2>{1.0f, -INFINITY});
  check(DType::f8_e4m3, {0x38, 0xFE}, std::array<float, 2>{1.0f, -448.0f});
}

BOOST_AUTO_TEST_CASE(sparse_tensors_of_other_types_keep_their_indices) {
  // With a stored zero, which a detour over dense elements would lose.
  const std::array<std::uint32_t, 3> rows{0, 1, 3};
  const std::array<std::uint32_t, 3> columns{2, 0, 1};
  const std::array<std::byte, 3> values{std::byte{5}, std::byte{0}, std::byte{0xFF}};
  const Tensor csr = Tensor::csr<std::uint32_t>(DType::i8, {2, 3}, {rows, columns, values});
  BrainState brain = small_brain();
  brain.regions.at("cortex").weights()["x"] = csr;
  const V01Conversion made = to_v01(brain);
  const Tensor& x = made.document.entries[0].state.at("weights").at("x").as_tensor();
  BOOST_TEST(x.nnz() == 3u);
  BOOST_TEST((x.dtype() == DType::i32));
  const std::vector<std::int32_t> expected{0, 0, 5, 0, -1, 0};
  BOOST_TEST(x.to_dense().as<std::int32_t>() == std::span(expected),
             boost::test_tools::per_element());
  BOOST_TEST(any_contains(made.losses, "csr tensors are stored as coo: 'cortex/weights.x'"));
}

BOOST_AUTO_TEST_CASE(types_that_nothing_holds_are_refused) {
  for (const DType dtype : {DType::c64, DType::c128}) {
    BrainState brain = small_brain();
    brain.regions.at("cortex").weights()["x"] = Tensor::zeros(dtype, {1});
    BOOST_CHECK_EXCEPTION(to_v01(brain), UnsupportedError,
                          says(ErrorCode::unsupported_feature, "region 'cortex'",
                               "tensor 'weights.x'", dtype_name(dtype).data()));
  }
  const std::array<std::uint64_t, 1> large{std::uint64_t{1} << 63};
  BrainState brain = small_brain();
  brain.regions.at("cortex").weights()["x"] = Tensor::copy_of<std::uint64_t>({1}, large);
  BOOST_CHECK_EXCEPTION(to_v01(brain), UnsupportedError,
                        says(ErrorCode::unsupported_feature, "u64", "2^63 - 1"));
}

BOOST_AUTO_TEST_CASE(long_names_are_cut_to_different_ones) {
  BrainState brain = small_brain();
  const std::string start(40, 'n');
  brain.regions.add(start + "1", BrainRegion{});
  brain.regions.add(start + "2", BrainRegion{});
  brain.pathways.add(start + "1", BrainRegion{});
  brain.connectivity.add({start + "1", "cortex", Tensor::zeros(DType::f32, {1, 1}), std::nullopt});
  const V01Conversion made = to_v01(brain);
  BOOST_TEST(made.losses.size() == 3u);
  BOOST_TEST(any_contains(made.losses, "'" + start + "1' is longer than 31 bytes"));
  const BrainState back = from_v01(decode_v01(encode_v01(made.document)).document);
  BOOST_TEST(back.regions.size() == 3u);
  BOOST_TEST(back.pathways.size() == 2u);
  BOOST_TEST(back.regions.contains(back.connectivity.all()[0].source));
}

BOOST_AUTO_TEST_CASE(names_that_mean_something_else_are_refused) {
  for (const char* name : {"brain:state", "brain:connectivity", "pathway:x"}) {
    BrainState brain = small_brain();
    brain.regions.add(name, BrainRegion{});
    BOOST_CHECK_EXCEPTION(to_v01(brain), UnsupportedError,
                          says(ErrorCode::unsupported_feature, name));
  }
}

BOOST_AUTO_TEST_CASE(of_two_entries_of_one_name_the_last_counts) {
  V01Document document = v01_sample();
  document.entries[1].name = "cortex";
  const BrainState brain = from_v01(document);
  BOOST_TEST(brain.regions.size() == 1u);
  BOOST_TEST(brain.regions.at("cortex").state.find("history") != nullptr);
}

BOOST_AUTO_TEST_CASE(broken_connections_are_refused) {
  const auto refused = [](const Value& state) {
    V01Document document = v01_sample();
    document.entries.push_back({"brain:connectivity", state});
    BOOST_CHECK_EXCEPTION(from_v01(document), FormatError,
                          says(ErrorCode::bad_value, "brain:connectivity"));
  };
  Value state = Value::object();
  refused(state);
  state["connections"] = Value::array();
  state["connections"].push_back(Value(7));
  refused(state);
  Value connection = Value::object();
  connection["source"] = "a";
  connection["target"] = "b";
  state["connections"].elements()[0] = connection;
  refused(state);
  connection["weights"] = Tensor();
  state["connections"].elements()[0] = connection;
  state["connections"].push_back(connection);
  refused(state);
}

BOOST_AUTO_TEST_SUITE_END()
