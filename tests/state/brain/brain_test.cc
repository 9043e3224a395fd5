// A brain saved to a file and read back.
#include <functional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "brain_sample.h"
#include "state/brain/stored_brain.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(brain_trees)

namespace {

struct Saved {
  explicit Saved(const BrainState& brain, const state::StoreOptions& options = {})
      : path(folder.path() / "brain.thalia") {
    state::StoredBrain stored = state::store_brain(brain, options);
    stored.metadata_json = state::metadata_text(brain.metadata);
    Writer writer(path);
    state::declare(writer, stored);
    writer.commit();
  }
  Reader open() const { return Reader::open(path); }
  BrainState load(const state::BrainReadOptions& options = {}) const {
    return state::read_brain(open(), options);
  }

  TemporaryFolder folder;
  std::filesystem::path path;
};

}  // namespace

BOOST_AUTO_TEST_CASE(everything_that_is_put_in_comes_back) {
  const BrainState brain = sample_brain();
  const Saved saved(brain);
  const BrainState loaded = saved.load();
  BOOST_TEST((loaded.regions.at("cortex").state == brain.regions.at("cortex").state));
  BOOST_TEST((loaded == brain));
  BOOST_TEST(verify(saved.path).ok());
}

BOOST_AUTO_TEST_CASE(what_is_said_of_the_brain_wide_state_is_kept_without_one) {
  BrainState brain;
  brain.state_metadata["note"] = "of the application";
  BOOST_TEST((Saved(brain).load() == brain));
  brain.state_metadata["connections"] = Value::array();
  BOOST_CHECK_EXCEPTION(state::store_brain(brain, {}), UsageError,
                        says(ErrorCode::bad_argument, "connections"));
}

BOOST_AUTO_TEST_CASE(saving_what_was_loaded_gives_the_same_regions) {
  const Saved first(sample_brain());
  const Saved second(first.load());
  for (std::uint32_t i = 0; i < first.open().region_count(); ++i) {
    const Reader a = first.open();
    const Reader b = second.open();
    BOOST_TEST(a.region(i).metadata_json() == b.region(i).metadata_json());
    BOOST_TEST(a.region(i).config_json() == b.region(i).config_json());
    BOOST_REQUIRE(a.region(i).tensor_count() == b.region(i).tensor_count());
    for (std::uint32_t t = 0; t < a.region(i).tensor_count(); ++t) {
      BOOST_TEST(a.region(i).tensor(t).name() == b.region(i).tensor(t).name());
      BOOST_TEST((a.region(i).tensor(t).content_hash() == b.region(i).tensor(t).content_hash()));
    }
  }
}

BOOST_AUTO_TEST_CASE(tensors_are_found_by_name_and_role_without_the_tree) {
  const Saved saved(sample_brain());
  const RegionView cortex = saved.open().region("cortex");
  BOOST_TEST((cortex.at("w_ff").role() == Role::weights));
  BOOST_TEST((cortex.at("w_sparse").encoding() == Encoding::coo));
  BOOST_TEST((cortex.at("thresholds").role() == Role::homeostatic));
  BOOST_TEST((cortex.at("membrane").role() == Role::region_state));
  BOOST_TEST((cortex.at("neuron_state.membrane").role() == Role::region_state));
  BOOST_TEST((cortex.at("stp.u").role() == Role::learning_state));
  BOOST_TEST((cortex.at("theta.phase").role() == Role::oscillator));
  BOOST_TEST(cortex.at("theta.phase").as<double>()[0] == 0.5);
  BOOST_TEST(cortex.at("theta.frequency_hz").as<std::int64_t>()[0] == 8);
  BOOST_TEST((cortex.at("dopamine").role() == Role::neuromodulator));
  BOOST_TEST((cortex.at("episodes[2].context").role() == Role::other));
  BOOST_TEST(cortex.at("working_memory").as<float>()[0] == 7);
  BOOST_TEST(cortex.config_json() ==
             R"({"tau_ms":20.0,"layers":["l4"],"seed":123456789012345678901234567890})");
  BOOST_TEST(*cortex.homeostatic_updated() == 1'765'000'000u);
}

BOOST_AUTO_TEST_CASE(header_totals_and_flags_are_true) {
  const Saved saved(sample_brain());
  const Reader reader = saved.open();
  const FileHeader header = reader.header();
  BOOST_TEST(header.total_neurons == 15u);
  // w_ff 110, two sparse of 2, w of the pathway 6, two sparse connections of 2.
  BOOST_TEST(header.total_synapses == 110u + 2 + 2 + 6 + 2 + 2);
  BOOST_TEST(header.training_steps == 1000u);
  BOOST_TEST(reader.region_count() == 4u);
  const FileFlags flags{.homeostatic = true, .neuromodulators = true, .sparse = true};
  BOOST_TEST((header.flags == flags));
  BrainState plain;
  plain.regions.add("r").weights()["w"] = floats({2});
  BOOST_TEST((Saved(plain).open().header().flags == FileFlags{}));
}

BOOST_AUTO_TEST_CASE(homeostatic_state_can_be_left_out) {
  const Saved saved(sample_brain(), {.include_homeostatic = false});
  BOOST_TEST(!saved.open().header().flags.homeostatic);
  BOOST_TEST(saved.load().regions.at("cortex").find("homeostatic") == nullptr);
}

BOOST_AUTO_TEST_CASE(tensors_are_stored_as_told_and_come_back_as_they_were) {
  const BrainState brain = sample_brain();
  for (const auto sparse : {SparseStorage::automatic, SparseStorage::as_is, SparseStorage::dense,
                            SparseStorage::csr, SparseStorage::coo}) {
    const Saved saved(brain, {.sparse = sparse});
    const Encoding stored = saved.open().region("cortex").at("w_ff").encoding();
    BOOST_TEST((stored == (sparse == SparseStorage::csr   ? Encoding::csr
                           : sparse == SparseStorage::coo ? Encoding::coo
                                                          : Encoding::dense)));
    BOOST_TEST((saved.load() == brain));
    const BrainState as_stored = saved.load({.state = {.restore = false}});
    BOOST_TEST(
        (as_stored.regions.at("cortex").weights().at("w_ff").as_tensor().encoding() == stored));
  }
}

// Whatever a tensor was and however it is stored, dense, csr and coo, of regions and connections.
BOOST_AUTO_TEST_CASE(encodings_are_restored_whatever_the_tensor_was_stored_as) {
  BrainState brain;
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 10});
  Value& weights = region.weights().make();
  weights["dense"] = mostly_zeros();
  weights["csr"] = mostly_zeros().to_csr();
  weights["coo"] = mostly_zeros().to_coo();
  weights["full_csr"] = floats({3, 4}).to_csr();
  weights["vector"] = floats({4}).to_coo();
  weights["none"] = Tensor::zeros(DType::i32, {2, 3}).to_csr();
  brain.connectivity.add({"r", "r", mostly_zeros().to_csr(), mostly_zeros().to_coo()});
  for (const auto sparse : {SparseStorage::automatic, SparseStorage::as_is, SparseStorage::dense,
                            SparseStorage::csr, SparseStorage::coo}) {
    const Saved saved(brain, {.sparse = sparse});
    BOOST_TEST((saved.load() == brain), static_cast<int>(sparse));
    const Saved narrow(
        brain, {.sparse = sparse,
                .choose_dtype = [](const auto&, Role, const Tensor&) { return DType::bf16; }});
    BOOST_TEST((narrow.load() == brain), static_cast<int>(sparse));
  }
  const Saved dense(brain, {.sparse = SparseStorage::dense});
  BOOST_TEST((dense.open().region("r").at("csr").encoding() == Encoding::dense));
  BOOST_TEST(dense.load({.state = {.restore = false}})
                 .regions.at("r")
                 .weights()
                 .at("csr")
                 .as_tensor()
                 .is_dense());
  expect<FormatError>(
      [&] { dense.load({.state = {.input = {.limits = {.max_allocation_bytes = 1000}}}}); },
      ErrorCode::limit_exceeded);
}

BOOST_AUTO_TEST_CASE(shapes_that_contradict_the_region_are_refused_by_a_save) {
  const auto refused = [](const char* path, const Shape& shape, const char* expected,
                          const std::function<void(BrainRegion&)>& change) {
    BrainState brain;
    BrainRegion& region = brain.regions.add("r", {.n_neurons = 10});
    region.weights()["w"] = floats({10, 11});
    change(region);
    BOOST_CHECK_EXCEPTION(state::store_brain(brain, {}), UsageError,
                          says(ErrorCode::size_mismatch, "'r'", path, shape.to_string(), expected));
    BOOST_TEST(state::store_brain(brain, {.check_shapes = false}).regions.size() == 1);
    region.n_neurons = 0;
    state::store_brain(brain, {});
    brain.pathways.add("p", region).n_neurons = 10;
    BOOST_CHECK_EXCEPTION(state::store_brain(brain, {}), UsageError,
                          says(ErrorCode::size_mismatch, "pathway:p"));
  };
  const auto at = [](const char* component, const char* member, const Shape& shape) {
    return [=](BrainRegion& region) { region.component(component)[member] = floats(shape); };
  };
  for (const char* member : {"thresholds", "scaling_factors"}) {
    for (const Shape& shape : {Shape{5}, Shape{10, 1}, Shape{}})
      refused(member, shape, "[10]", at("homeostatic", member, shape));
  }
  refused("silent_steps", {9}, "[10]", at("learning_state", "silent_steps", {9}));
  for (const char* member : {"synapse_age", "synapse_importance"}) {
    refused(member, {11, 10}, "[10, 11]", [&](BrainRegion& region) {
      region.learning_state()[member]["w"] = floats({11, 10});
    });
  }
  const auto declared = [](std::initializer_list<const char*> names) {
    return [names = std::vector<std::string>(names.begin(), names.end())](BrainRegion& region) {
      Value& axes = region.metadata["axes"]["weights.w"] = Value::array();
      for (const std::string& name : names) axes.push_back(name);
    };
  };
  refused("weights.w", {10, 11}, "3 axes", declared({"neurons", "other", "more"}));
  refused("weights.w", {10, 11}, "extent 10 of axis 1", declared({"neurons", "neurons"}));
  refused("weights.w", {10, 11}, "extent 5 of axis 0", declared({"neurons/2", "other"}));
  refused("weights.w", {10, 11}, "extent 10 of axis 1", declared({"neurons:a", "neurons:a"}));
  BrainState brain;
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 10});
  region.weights()["w"] = floats({10, 11});
  declared({"neurons:a", "neurons:b"})(region);
  BOOST_CHECK_EXCEPTION(
      state::store_brain(brain, {}), UsageError,
      says(ErrorCode::size_mismatch, "'r'", "axes", "21 neurons in 2 populations", "10"));
}

BOOST_AUTO_TEST_CASE(axes_that_mean_something_else_are_no_concern_of_a_save) {
  BrainState brain;
  BrainRegion& region = brain.regions.add("r", {.n_neurons = 10});
  region.weights()["w"] = floats({3, 4});
  region.metadata["axes"] = "x, y";
  BOOST_TEST((Saved(brain).load() == brain));
  region.metadata["axes"] = Value::object();
  region.metadata["axes"]["weights.w"] = 7;
  BOOST_TEST((Saved(brain).load() == brain));
}

BOOST_AUTO_TEST_CASE(element_types_are_restored_unless_asked_not_to) {
  const BrainState brain = sample_brain();
  std::vector<std::string> paths;
  const Saved saved(
      brain, {.choose_dtype = [&](const std::string& path, Role role, const Tensor& tensor) {
        paths.push_back(path);
        return role == Role::weights && tensor.dtype() == DType::f32 ? DType::bf16 : tensor.dtype();
      }});
  BOOST_TEST(paths.front() == "regions.cortex.weights.w_ff");
  BOOST_TEST((saved.open().region("cortex").at("w_ff").dtype() == DType::bf16));
  BOOST_TEST(saved.open().header().flags.mixed_precision);
  // Every value of the sample is exact in bf16.
  const BrainState restored = saved.load();
  BOOST_TEST((restored == brain));
  BOOST_TEST((restored.connectivity.at("cortex", "cortex").weights.dtype() == DType::f32));
  const BrainState stored = saved.load({.state = {.restore = false}});
  const Value& weights = *stored.regions.at("cortex").find("weights");
  BOOST_TEST((weights.at("w_ff").as_tensor().dtype() == DType::bf16));
  BOOST_TEST((weights.at("w_sparse").as_tensor().encoding() == Encoding::coo));
}

BOOST_AUTO_TEST_CASE(halves_are_restored_where_only_the_policy_tells_of_them) {
  BrainState brain;
  Tensor halves = Tensor::zeros(DType::f16, {2});
  halves.mutable_as<Float16>()[1] = Float16{0x3C00};
  brain.regions.add("r").weights()["w"] = halves;
  const auto loaded = [&](const char* policy) {
    brain.metadata["precision_policy"] = policy;
    return Saved(brain).load().regions.at("r").find_path("weights.w")->as_tensor();
  };
  BOOST_TEST((loaded("keep") == halves));
  BOOST_TEST((loaded("fp32") == halves));
  BOOST_TEST((loaded("fp16").dtype() == DType::f32));
  BOOST_TEST(loaded("fp16").as<float>()[1] == 1);
  // A state that was saved by a policy says that they were halves before.
  brain.metadata["precision_policy"] = "fp16";
  const Saved saved(brain, {.choose_dtype = [](const std::string&, Role, const Tensor& tensor) {
                      return tensor.dtype();
                    }});
  BOOST_TEST((saved.load().regions.at("r").find_path("weights.w")->as_tensor() == halves));
}

BOOST_AUTO_TEST_CASE(a_loaded_tensor_is_a_view_into_the_file) {
  const Saved saved(sample_brain());
  const Reader reader = saved.open();
  const BrainState brain = state::read_brain(reader, {});
  BOOST_TEST(brain.regions.at("cortex").find_path("weights.w_ff")->as_tensor().bytes().data() ==
             reader.region("cortex").at("w_ff").bytes().data());
}

BOOST_AUTO_TEST_CASE(only_the_regions_asked_for_are_there) {
  const Saved saved(sample_brain());
  const BrainState brain = saved.load({.regions = {"cortex"}});
  BOOST_TEST(brain.regions.names().size() == 1);
  BOOST_TEST(brain.pathways.empty());
  BOOST_TEST(brain.connectivity.size() == 1);
  BOOST_TEST(brain.connectivity.find("cortex", "cortex") != nullptr);
  BOOST_TEST((brain.state == sample_brain().state));
  BOOST_TEST(saved.load({.regions = {"pathway:cortex_to_striatum"}}).pathways.size() == 1);
  expect<UsageError>([&] { saved.load({.regions = {"cortx"}}); }, ErrorCode::not_found);
}

BOOST_AUTO_TEST_CASE(lazy_regions_are_read_on_first_access) {
  const Saved saved(sample_brain());
  const BrainState brain = saved.load({.lazy = true});
  BOOST_TEST(!brain.regions.is_loaded("cortex"));
  BOOST_TEST(!brain.pathways.is_loaded("cortex_to_striatum"));
  BOOST_TEST(!brain.connectivity.is_loaded());
  BOOST_TEST((brain.regions.at("cortex") == sample_region()));
  BOOST_TEST(brain.regions.is_loaded("cortex"));
  BOOST_TEST(!brain.pathways.is_loaded("cortex_to_striatum"));
  BOOST_TEST((brain == sample_brain()));

  const BrainState some = saved.load({.regions = {"cortex"}, .lazy = true});
  BOOST_TEST(some.regions.is_loaded("cortex"));
  BOOST_TEST(!some.pathways.is_loaded("cortex_to_striatum"));
  BOOST_TEST((some == sample_brain()));
}

BOOST_AUTO_TEST_CASE(a_region_that_no_state_wrote_is_grouped_by_role) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const Tensor w = floats({2});
  Writer writer(path);
  const RegionId id =
      writer.add_region({.name = "r", .config_json = R"({"a":1})", .metadata_json = R"({"m":2})"});
  writer.add_tensor(id, {.name = "w.0", .shape = {2}}, w.bytes());
  writer.add_tensor(id, {.name = "m", .shape = {2}, .role = Role::optimizer}, w.bytes());
  writer.commit();
  const BrainState brain = state::read_brain(Reader::open(path), {});
  const BrainRegion& region = brain.regions.at("r");
  BOOST_TEST(region.find("config")->at("a").as_int64() == 1);
  BOOST_TEST(region.metadata.at("m").as_int64() == 2);
  BOOST_TEST((region.find("weights")->at("w.0").as_tensor() == w));
  BOOST_TEST((region.find("optimizer_state")->at("m").as_tensor() == w));
}

BOOST_AUTO_TEST_CASE(names_that_mean_something_else_are_refused) {
  for (const char* name : {"brain:state", "pathway:x"}) {
    BrainState brain;
    brain.regions.add(name);
    expect<UsageError>([&] { Saved{brain}; }, ErrorCode::bad_argument);
  }
  BrainState brain;
  brain.regions.add("r").metadata["thalia_state"] = 1;
  const auto& error = expect<UsageError>([&] { Saved{brain}; }, ErrorCode::bad_argument);
  BOOST_TEST(error.context().region == "r");
}

BOOST_AUTO_TEST_CASE(a_tensor_where_none_can_be_is_refused_with_its_path) {
  BrainState brain;
  brain.metadata["a"]["t"] = floats({1});
  BOOST_TEST(expect<UsageError>([&] { Saved{brain}; }, ErrorCode::bad_argument).context().field ==
             "metadata.a.t");
}

namespace {

// A file with one region whose metadata is this text, and a tensor "w" in it.
BrainState load_with(const std::string& metadata_json, const std::string& config_json = "{}") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const Tensor w = floats({2});
  Writer writer(path);
  const RegionId id =
      writer.add_region({.name = "r", .config_json = config_json, .metadata_json = metadata_json});
  writer.add_tensor(id, {.name = "w", .shape = {2}}, w.bytes());
  writer.commit();
  return state::read_brain(Reader::open(path), {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_tree_that_breaks_the_rules_is_refused_naming_the_region) {
  const auto tree = [](const std::string& components) {
    return R"({"thalia_state":{"version":1,"components":)" + components + "}}";
  };
  for (const auto& text :
       {tree("[]"), tree(R"({"a":{"_type":"tensor"}})"),
        tree(R"({"a":{"_type":"tensor","_name":3}})"), tree(R"({"a":{"_type":"number"}})"),
        tree(R"({"a":{"_type":"number","_text":"1"}})"), tree(R"({"a":{"_type":"object"}})"),
        tree(R"({"a":{"_type":"tensor","_name":"w","_dtype":"i8"}})"),
        tree(R"({"a":{"_type":"tensor","_name":"w","_dtype":3}})")}) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(
          expect<FormatError>([&] { load_with(text); }, ErrorCode::bad_value).context().region ==
          "r");
    }
  }
  for (const auto& text : {tree(R"({"a":{"_type":"tensor","_name":"gone"}})"),
                           tree(R"({"a":{"_type":"scalar","_name":"w"}})")}) {
    BOOST_TEST(
        expect<FormatError>([&] { load_with(text); }, ErrorCode::inconsistent).context().region ==
        "r");
  }
  expect<UnsupportedError>([] { load_with(R"({"thalia_state":{"version":2,"components":{}}})"); },
                           ErrorCode::unsupported_version);
  expect<UnsupportedError>([] { load_with(R"({"thalia_state":7})"); },
                           ErrorCode::unsupported_version);
}

BOOST_AUTO_TEST_CASE(what_is_no_scalar_is_not_read_as_one) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const Tensor w = floats({2}), number = Tensor::copy_of<double>({}, std::array{0.5});
  Writer writer(path);
  for (const auto& [region, name] : {std::pair{"bad", "w"}, {"good", "n"}}) {
    const RegionId id = writer.add_region(
        {.name = region,
         .metadata_json = std::string(R"({"thalia_state":{"version":1,"components":{"a":)") +
                          R"({"_type":"scalar","_name":")" + name + R"("}}}})"});
    writer.add_tensor(id, {.name = "w", .shape = {2}, .role = Role::other}, w.bytes());
    writer.add_tensor(id, {.name = "n", .dtype = DType::f64, .shape = {}}, number.bytes());
  }
  writer.commit();
  const Reader reader = Reader::open(path);
  std::vector<std::string> read;
  const state::LoadContext context({}, reader.file_bytes(),
                                   [&](const TensorView& view, const auto&) {
                                     read.emplace_back(view.name());
                                     return Tensor::from(view);
                                   });
  expect<FormatError>([&] { state::load_region(reader.region("bad"), context); },
                      ErrorCode::inconsistent);
  BOOST_TEST(read.empty());
  BOOST_TEST(state::load_region(reader.region("good"), context).find("a")->as_double() == 0.5);
  BOOST_TEST(read.size() == 2u);
}

BOOST_AUTO_TEST_CASE(tensors_that_the_tree_does_not_name_are_kept) {
  const BrainState brain = load_with(R"({"thalia_state":{"version":1,"components":{}}})");
  BOOST_TEST((brain.regions.at("r").find("weights")->at("w").as_tensor() == floats({2})));
}

BOOST_AUTO_TEST_CASE(a_config_that_the_tree_does_not_name_is_kept) {
  for (const char* tree : {R"({"thalia_state":{"version":1,"components":{}}})", "", "{}"}) {
    const BrainState brain = load_with(tree, R"({"tau_ms":20})");
    BOOST_TEST((*brain.regions.at("r").config().find("tau_ms") == Value(20)), tree);
    const Saved saved(brain);
    BOOST_TEST(saved.open().region("r").config_json() == R"({"tau_ms":20})", tree);
    BOOST_TEST((saved.load() == brain), tree);
  }
  const BrainState named =
      load_with(R"({"thalia_state":{"version":1,"components":{"config":3}}})", R"({"tau_ms":20})");
  BOOST_TEST((*named.regions.at("r").find("config") == Value(3)));
}

BOOST_AUTO_TEST_CASE(tensors_that_the_tree_does_not_name_take_nothing_away) {
  const auto loaded = [](const std::string& components) {
    return load_with(R"({"thalia_state":{"version":1,"components":)" + components + "}}")
        .regions.at("r");
  };
  const BrainRegion member = loaded(R"({"weights":{"w":1}})");
  BOOST_TEST(member.find("weights")->at("w").as_int64() == 1);
  BOOST_TEST((member.find("weights")->at("w~2").as_tensor() == floats({2})));
  const BrainRegion component = loaded(R"({"weights":3})");
  BOOST_TEST(component.find("weights")->as_int64() == 3);
  BOOST_TEST((component.find("weights~2")->at("w").as_tensor() == floats({2})));
}

BOOST_AUTO_TEST_SUITE_END()
