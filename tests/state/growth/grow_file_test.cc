#include "thalia/state/growth.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "boost_test.h"
#include "growth_sample.h"
#include "state/brain/stored_brain.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "support/sample.h"
#include "support/sanitizers.h"
#include "thalia/reader.h"
#include "thalia/state/metadata.h"
#include "thalia/state/quantization.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(grow_file_in_place)

namespace {

const AppendOptions kSteady{.timestamp = 1'765'000'000,
                            .change = {.output = {.durability = Durability::none}}};

struct File {
  explicit File(const BrainState& brain, const state::StoreOptions& options = {},
                SaveOptions save = steady_options())
      : path(folder / "brain.thalia") {
    state::StoredBrain stored = state::store_brain(brain, options);
    stored.metadata_json = state::metadata_text(brain.metadata);
    Writer writer(path, save);
    state::declare(writer, stored);
    writer.commit();
  }
  BrainState load() const { return state::read_brain(Reader::open(path), {}); }

  TemporaryFolder folder;
  std::filesystem::path path;
};

// All but the history, whose count of synapses depends on how weights are stored.
void check_same_state(const BrainState& a, const BrainState& b) {
  BOOST_TEST((a.regions == b.regions));
  BOOST_TEST((a.pathways == b.pathways));
  BOOST_TEST((a.connectivity == b.connectivity));
  BOOST_TEST((a.state == b.state));
  BOOST_TEST(a.training_steps == b.training_steps);
}

// Where a region lies, and its bytes.
std::pair<std::uint64_t, std::string> bytes_of_region(const std::filesystem::path& path,
                                                      std::string_view name) {
  const RegionView view = Reader::open(path).region(name);
  return {view.offset(), read_file(path).substr(view.offset(), view.length())};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_grows_to_what_the_state_in_memory_grows_to) {
  for (const SparseStorage sparse :
       {SparseStorage::automatic, SparseStorage::csr, SparseStorage::coo}) {
    const File file(brain(), {.sparse = sparse});
    BrainState in_memory = file.load();
    const GrowthOptions options{.seed = 5, .reason = "more"};
    const GrowthResult wanted = grow_output(in_memory, "cortex", 3, options);
    const GrowFileResult result = grow_file(file.path, "cortex", 3, options, kSteady);
    check_same_state(file.load(), in_memory);
    BOOST_TEST(result.growth.n_neurons == wanted.n_neurons);
    BOOST_TEST(wanted.targets_left == (std::vector<std::string>{"pathway:cortex_to_striatum"}),
               boost::test_tools::per_element());
    BOOST_TEST(result.growth.targets_left == wanted.targets_left, boost::test_tools::per_element());
    BOOST_TEST(result.append.generation == 2);
    grow_source(in_memory, "cortex", "thalamus", 6, options);
    grow_file_source(file.path, "cortex", "thalamus", 2, options, kSteady);
    check_same_state(file.load(), in_memory);
    if (sparse == SparseStorage::automatic) BOOST_TEST((file.load() == in_memory));
    BOOST_TEST(verify(file.path).ok());
  }
}

BOOST_AUTO_TEST_CASE(other_regions_stay_where_they_are) {
  const File file(brain());
  std::map<std::string, std::pair<std::uint64_t, std::string>> before;
  for (const char* name : {"striatum", "pathway:cortex_to_striatum"})
    before[name] = bytes_of_region(file.path, name);
  const std::string old = read_file(file.path);
  grow_file(file.path, "cortex", 2, {}, kSteady);
  for (const auto& [name, place] : before)
    BOOST_TEST((bytes_of_region(file.path, name) == place), name);
  // Nothing of the old state is touched but the header.
  BOOST_TEST((read_file(file.path).substr(256, old.size() - 256) == old.substr(256)));
}

BOOST_AUTO_TEST_CASE(regions_that_no_state_wrote_grow_by_the_roles_of_their_tensors) {
  TemporaryFolder folder;
  const auto path = folder / "plain.thalia";
  Sample sample;
  sample.metadata = R"({"note":"kept"})";
  sample.training_steps = 77;
  SampleRegion region{.spec = {.name = "r",
                               .config_json = R"({ "n_neurons" : 4, "tau":20.0 })",
                               .metadata_json = R"({ "kind": "plain" })",
                               .n_neurons = 4,
                               .n_inputs = 3,
                               .neuron_type = NeuronType::lif}};
  region.tensors = {dense_tensor("w_in", DType::f32, {4, 3}),
                    csr_tensor("w_rec", DType::f16, {4, 4}, true),
                    dense_tensor("spikes", DType::binary, {4}, Role::region_state),
                    dense_tensor("membrane", DType::f64, {4}, Role::region_state),
                    dense_tensor("thresholds", DType::f32, {4}, Role::homeostatic),
                    dense_tensor("u", DType::f32, {3}, Role::learning_state)};
  sample.regions.push_back(region);
  save(path, sample);
  const GrowFileResult result = grow_file(path, "r", 2, {.seed = 1}, kSteady);
  BOOST_TEST(result.growth.tensors.size() == 5);
  BOOST_TEST(verify(path).ok());
  const Reader reader = Reader::open(path);
  const RegionView grown = reader.region("r");
  BOOST_TEST(grown.n_neurons() == 6);
  BOOST_TEST((grown.neuron_type() == NeuronType::lif));
  BOOST_TEST(grown.metadata_json() == R"({ "kind": "plain" })");
  BOOST_TEST(grown.config_json() == R"({"n_neurons":6,"tau":20.0})");
  BOOST_TEST((grown.at("w_rec").shape() == Shape{6, 6}));
  BOOST_TEST((grown.at("w_rec").dtype() == DType::f16));
  BOOST_TEST(grown.at("w_rec").wide_indices());
  BOOST_TEST((grown.at("spikes").shape() == Shape{6}));
  BOOST_TEST((grown.at("u").shape() == Shape{3}));
  BOOST_TEST((grown.at("thresholds").role() == Role::homeostatic));
  for (const SampleTensor& tensor : region.tensors) {
    const Tensor old = Tensor::adopt(tensor.spec.layout(), tensor.payload, nullptr);
    BOOST_TEST(keeps_corner(Tensor::from(grown.at(tensor.spec.name)), old), tensor.spec.name);
  }
  BOOST_TEST(reader.header().total_neurons == 6);
  const auto events = parse_growth_history(reader.metadata_json());
  BOOST_REQUIRE(events.size() == 1);
  BOOST_TEST(*events[0].step == 77);
  BOOST_TEST(reader.metadata_json().find(R"("note":"kept")") != std::string_view::npos);
}

BOOST_AUTO_TEST_CASE(connections_keep_their_order_and_others_their_bytes) {
  TemporaryFolder folder;
  const auto path = folder / "f.thalia";
  Sample sample;
  const std::string long_name(60, 'n');
  for (const auto& [name, n] :
       {std::pair<std::string, std::uint32_t>{"a", 2}, {long_name, 3}, {"c", 4}}) {
    sample.regions.push_back({{.name = name, .n_neurons = n}, {}});
  }
  const auto connect = [&](const std::string& from, const std::string& to, Shape shape) {
    sample.connections.push_back({from, to, dense_tensor("", DType::f32, shape), std::nullopt});
  };
  connect("c", "a", {4, 2});
  connect(long_name, "c", {3, 4});
  connect("a", long_name, {2, 3});
  sample.connections[1].delays = dense_tensor("", DType::u16, {3, 4}, Role::other);
  save(path, sample);
  const Reader before = Reader::open(path);
  grow_file(path, "a", 3, {}, kSteady);
  const Reader after = Reader::open(path);
  BOOST_REQUIRE(after.connection_count() == 3);
  BOOST_TEST((after.connection(0).weights.shape() == Shape{4, 5}));
  BOOST_TEST(
      (after.connection(1).weights.content_hash() == before.connection(1).weights.content_hash()));
  BOOST_TEST(
      (after.connection(1).delays->content_hash() == before.connection(1).delays->content_hash()));
  BOOST_TEST((after.connection(2).weights.shape() == Shape{5, 3}));
  BOOST_TEST(verify(path).ok());
}

BOOST_AUTO_TEST_CASE(a_region_without_connections_leaves_that_section_alone) {
  BrainState state = brain();
  state.regions.add("alone", cortex());
  const File file(state);
  const std::uint64_t before = EditableFile(read_file(file.path)).layout().connectivity_offset;
  grow_file(file.path, "alone", 2, {}, kSteady);
  BOOST_TEST(EditableFile(read_file(file.path)).layout().connectivity_offset == before);
}

BOOST_AUTO_TEST_CASE(tensors_that_no_tree_names_keep_their_own_elements) {
  for (const char* components :
       {R"({"weights":{"w":{"_type":"tensor","_name":"a"}}})",
        R"({"weights":[{"_type":"tensor","_name":"a"}]})",
        R"({"weights":{"_type":"config"},"a":{"_type":"tensor","_name":"a"}})"}) {
    BOOST_TEST_CONTEXT(components) {
      const TemporaryFolder folder;
      const auto path = folder / "f.thalia";
      Writer writer(path, steady_options());
      const RegionId region = writer.add_region(
          {.name = "r",
           .config_json = R"({"w":1})",
           .metadata_json =
               std::string(R"({"thalia_state":{"version":1,"components":)") + components + "}}",
           .n_neurons = 3});
      const Tensor a = counting(DType::f32, {3, 2});
      const Tensor w = counting(DType::f32, {3, 2}, 100);
      writer.add_tensor(region, {.name = "a", .shape = a.shape()}, a.bytes());
      writer.add_tensor(region, {.name = "w", .shape = w.shape()}, w.bytes());
      writer.commit();
      BrainState in_memory = state::read_brain(Reader::open(path), {});
      grow_output(in_memory, "r", 2);
      grow_file(path, "r", 2, {}, kSteady);
      const RegionView grown = Reader::open(path).region("r");
      BOOST_TEST(keeps_corner(Tensor::from(grown.at("a")), a));
      BOOST_TEST(keeps_corner(Tensor::from(grown.at("w")), w));
      check_same_state(state::read_brain(Reader::open(path), {}), in_memory);
    }
  }
}

// A region that listens by a tensor that no tree names, under the path that it is loaded under.
BOOST_AUTO_TEST_CASE(targets_are_named_by_the_paths_that_their_tensors_have) {
  const TemporaryFolder folder;
  const auto path = folder / "f.thalia";
  Writer writer(path, steady_options());
  writer.add_region({.name = "source", .n_neurons = 3});
  const RegionId target = writer.add_region(
      {.name = "target",
       .metadata_json = R"({"axes":{"weights.w~2":["neurons","source:source"]},)"
                        R"("thalia_state":{"version":1,"components":{"weights":{"w":1}}}})",
       .n_neurons = 2});
  const Tensor w = counting(DType::f32, {2, 3});
  writer.add_tensor(target, {.name = "w", .shape = w.shape()}, w.bytes());
  writer.commit();
  const GrowFileResult result = grow_file(path, "source", 1, {}, kSteady);
  BOOST_TEST(result.growth.targets_left == std::vector<std::string>{"target"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_does_not_grow_stays_as_it_is_stored) {
  const TemporaryFolder folder;
  const auto dense = folder / "dense.thalia", path = folder / "quantized.thalia";
  Writer writer(dense, steady_options());
  const RegionId region = writer.add_region({.name = "r", .n_neurons = 3});
  const Tensor grows = counting(DType::f32, {3, 50}), stays = counting(DType::f32, {7, 50});
  writer.add_tensor(region, {.name = "grows", .shape = grows.shape()}, grows.bytes());
  writer.add_tensor(region, {.name = "stays", .shape = stays.shape()}, stays.bytes());
  writer.commit();
  quantize_file(dense, path, {.bits = 4, .min_elements = 1}, {.save = steady_options()});
  const Reader before = Reader::open(path);
  const Tensor restored = Tensor::from(before.region("r").at("grows"));
  const GrowFileResult result = grow_file(path, "r", 2, {}, kSteady);
  BOOST_TEST(result.restored == std::vector<std::string>{"grows"},
             boost::test_tools::per_element());
  const Reader after = Reader::open(path);
  const TensorView grown = after.region("r").at("grows"), kept = after.region("r").at("stays");
  BOOST_TEST((grown.encoding() == Encoding::dense));
  BOOST_TEST(keeps_corner(Tensor::from(grown), restored));
  BOOST_TEST_REQUIRE((kept.encoding() == Encoding::quantized));
  BOOST_TEST((kept.content_hash() == before.region("r").at("stays").content_hash()));
  BOOST_TEST(kept.stored_bytes() == before.region("r").at("stays").stored_bytes());
  BOOST_TEST(verify(path).ok());
}

BOOST_AUTO_TEST_CASE(what_was_compressed_is_compressed_again) {
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    BrainState state;
    BrainRegion& region = state.regions.add("r", {.n_neurons = 100});
    region.weights()["w"] = Tensor::zeros(DType::f32, {100, 500});
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    const File file(state, {.sparse = SparseStorage::dense}, options);
    BOOST_REQUIRE(!Reader::open(file.path).region("r").at("w").is_raw());
    grow_file(file.path, "r", 10, {.sparsity = 0}, kSteady);
    const TensorView grown = Reader::open(file.path).region("r").at("w");
    BOOST_TEST(!grown.is_raw());
    BOOST_TEST((grown.shape() == Shape{110, 500}));
    BOOST_TEST(verify(file.path).ok());
  }
}

BOOST_AUTO_TEST_CASE(a_codec_that_is_named_takes_the_place_of_the_one_before) {
  BrainState state;
  state.regions.add("r", {.n_neurons = 100}).weights()["w"] = Tensor::zeros(DType::f32, {100, 500});
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  const File file(state, {.sparse = SparseStorage::dense}, options);
  AppendOptions raw = kSteady;
  raw.compression.codec = Codec::none;
  grow_file(file.path, "r", 10, {.sparsity = 0}, raw);
  BOOST_TEST(Reader::open(file.path).region("r").at("w").is_raw());
}

BOOST_AUTO_TEST_CASE(nothing_is_written_where_nothing_grows) {
  const File file(brain());
  const std::string before = read_file(file.path);
  BOOST_TEST(!grow_file(file.path, "cortex", 0, {}, kSteady).growth.nothing_done.empty());
  const std::string path = file.path.string();
  BOOST_CHECK_EXCEPTION(grow_file(file.path, "nowhere", 1, {}, kSteady), UsageError,
                        says(ErrorCode::not_found, path, "nowhere"));
  BOOST_CHECK_EXCEPTION(grow_file(file.path, "striatum", 5, {}, kSteady), UsageError,
                        says(ErrorCode::bad_argument, path, "striatum", "multiple of 10"));
  BOOST_CHECK_EXCEPTION(grow_file_source(file.path, "cortex", "retina", 5, {}, kSteady), UsageError,
                        says(ErrorCode::not_found, path, "pfc, thalamus"));
  BOOST_CHECK_EXCEPTION(grow_file(file.path, "cortex", 1, {.grow_targets = true}, kSteady),
                        UsageError, says(ErrorCode::bad_argument, path, "grow_targets"));
  BOOST_TEST((read_file(file.path) == before));
}

// The paths of these tensors would be 20 GB if all of them were in memory.
BOOST_AUTO_TEST_CASE(long_paths_of_many_tensors_take_no_memory) {
  constexpr int kMany = 20'000;
  const TemporaryFolder folder;
  const auto path = folder / "f";
  std::string tree;
  Writer writer(path, steady_options());
  const std::vector<float> bytes(3);
  writer.add_region({.name = "grows", .config_json = "{}", .n_neurons = 3});
  for (int i = 0; i < kMany; ++i) {
    const std::string name = std::to_string(i);
    tree += (i == 0 ? "\"" : ",\"") + name + R"(":{"_type":"tensor","_name":")" + name + "\"}";
  }
  const RegionId other = writer.add_region(
      {.name = "other",
       .config_json = "{}",
       .metadata_json = R"({"thalia_state":{"version":1,"components":{"other":{")" +
                        std::string(1 << 20, 'x') + "\":{" + tree + "}}}}}",
       .n_neurons = 3});
  for (int i = 0; i < kMany; ++i)
    writer.add_tensor(other, {.name = std::to_string(i), .shape = {3}, .role = Role::other},
                      as_byte_span(bytes));
  writer.commit();
  BOOST_TEST(grow_file(path, "grows", 1, {}, kSteady).growth.n_neurons == 4u);
}

BOOST_AUTO_TEST_CASE(a_kill_at_any_system_call_leaves_the_old_state_or_the_new) {
  const BrainState old = brain();
  BrainState grown = brain();
  grow_output(grown, "cortex", 2);
  AppendOptions options = kSteady;
  options.change.output.durability = Durability::full;
  options.change.work.threads = 1;
  std::set<bool> seen;
  for (unsigned call = 0;; call += kCallStep) {
    BOOST_TEST_CONTEXT("call " << call) {
      const File file(old);
      const End end = run_killed_at(call, [&] { grow_file(file.path, "cortex", 2, {}, options); });
      BOOST_TEST_REQUIRE(bool(end != End::failed));
      const BrainState found = file.load();
      const bool is_new = Reader::open(file.path).header().generation == 2;
      BOOST_TEST((found == (is_new ? grown : old)));
      seen.insert(is_new);
      if (end == End::returned) {
        BOOST_TEST(is_new);
        BOOST_TEST(call > 20u);  // or nothing was counted
        break;
      }
    }
  }
  BOOST_TEST(seen.size() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
