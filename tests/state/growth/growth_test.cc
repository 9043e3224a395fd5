#include "thalia/state/growth.h"

#include <algorithm>
#include <utility>

#include "boost_test.h"
#include "growth_sample.h"
#include "support/errors.h"
#include "thalia/state/metadata.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(growth)

namespace {

BrainState brain_of(BrainRegion region, std::string name = "r") {
  BrainState brain;
  brain.regions.add(std::move(name), std::move(region));
  return brain;
}

// Every tensor that a growth named has its old elements in its corner.
void check_corners(const BrainRegion& old, const BrainRegion& grown) {
  for_each_tensor(old.state, [&](const std::string& path, const Tensor& tensor) {
    BOOST_TEST(keeps_corner(tensor_at(grown, path), tensor), path);
  });
}

GrowthOptions with_axes(std::string path, std::vector<std::string> axes) {
  GrowthOptions options;
  options.axes.emplace(std::move(path), std::move(axes));
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(new_neurons_are_rows_of_every_tensor) {
  BrainState brain = brain_of(striatum());
  const GrowthResult result = grow_output(brain, "r", 10);
  const BrainRegion& grown = brain.regions.at("r");
  BOOST_TEST(result.n_neurons == 30);
  BOOST_TEST(grown.n_neurons == 30);
  BOOST_TEST(result.tensors.size() == 8);
  BOOST_TEST((tensor_at(grown, "weights.d1").shape() == Shape{30, 64}));
  BOOST_TEST((tensor_at(grown, "weights.d2").shape() == Shape{30, 64}));
  BOOST_TEST((tensor_at(grown, "learning_state.eligibility.d1").shape() == Shape{30, 64}));
  BOOST_TEST((tensor_at(grown, "learning_state.output_trace").shape() == Shape{30}));
  BOOST_TEST((tensor_at(grown, "learning_state.input_trace").shape() == Shape{64}));
  BOOST_TEST((tensor_at(grown, "region_state.spikes").shape() == Shape{30}));
  check_corners(striatum(), grown);
}

BOOST_AUTO_TEST_CASE(values_of_python_grow_as_if_they_stood_there_alone) {
  const auto python = [](const char* kind, Value value) {
    Value node = Value::object();
    node.add("_type", Value("python"));
    node.add("_kind", Value(kind));
    node.add("_value", std::move(value));
    return node;
  };
  BrainRegion plain = cortex();
  plain.config()["n_output"] = 6;
  plain.config()["v_rest"] = -65.0;
  BrainRegion marked = plain;
  marked.config() = python("dataclass", marked.state.at("config"));
  for (const char* path : {"region_state.membrane", "homeostatic.thresholds"}) {
    Value& value = *marked.find_path(path);
    value = python("numpy", value);
  }
  BrainState of_plain = brain_of(plain);
  BrainState of_marked = brain_of(marked);
  const GrowthResult wanted = grow_output(of_plain, "r", 2);
  const GrowthResult result = grow_output(of_marked, "r", 2);
  BOOST_REQUIRE(result.tensors.size() == wanted.tensors.size());
  for (std::size_t i = 0; i < wanted.tensors.size(); ++i)
    BOOST_TEST(result.tensors[i].path == wanted.tensors[i].path);
  const BrainRegion& grown = of_marked.regions.at("r");
  BOOST_TEST((*grown.find_path("config.n_output") == Value(8)));
  BOOST_TEST(numbers(tensor_at(grown, "region_state.membrane")).back() == -65.0);
  BOOST_TEST(numbers(tensor_at(grown, "homeostatic.thresholds")).back() == 3.5);
  BOOST_TEST((grown.region_state().at("membrane").at("_kind") == Value("numpy")));
  BOOST_TEST((grown.config().at("_kind") == Value("dataclass")));
}

BOOST_AUTO_TEST_CASE(one_value_for_ten_neurons_grows_by_one) {
  BrainState brain = brain_of(striatum());
  grow_output(brain, "r", 10);
  BOOST_TEST(numbers(tensor_at(brain.regions.at("r"), "rpe_state.value_estimates")) ==
                 (std::vector<double>{1, 2, 0}),
             boost::test_tools::per_element());
  const BrainState before = brain;
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 5), UsageError,
                        says(ErrorCode::bad_argument, "n_new", "5", "multiple of 10"));
  BOOST_TEST((brain == before));
}

BOOST_AUTO_TEST_CASE(new_neurons_begin_at_rest_with_mean_parameters) {
  BrainState brain = brain_of(cortex());
  brain.regions.add("striatum", striatum());
  grow_output(brain, "r", 2);
  const BrainRegion& grown = brain.regions.at("r");
  const auto last = [&](const char* path) { return numbers(tensor_at(grown, path)).back(); };
  BOOST_TEST(last("homeostatic.thresholds") == 3.5);
  BOOST_TEST(last("homeostatic.scaling_factors") == 4.5);
  BOOST_TEST(last("learning_state.bcm_theta") == 3.5);
  BOOST_TEST(last("learning_state.stp.u") == 3.5);
  BOOST_TEST(last("region_state.membrane") == 0);
  BOOST_TEST(last("learning_state.eligibility.thalamus") == 0);
  BOOST_TEST(last("weights.bias") == 0);
  grow_output(brain, "striatum", 10);
  const BrainRegion& other = brain.regions.at("striatum");
  BOOST_TEST(numbers(tensor_at(other, "region_state.membrane")).back() == -0.25);
  BOOST_TEST(numbers(tensor_at(other, "region_state.refractory")).back() == 0);
}

BOOST_AUTO_TEST_CASE(recurrent_matrices_grow_in_both_axes) {
  BrainState brain = brain_of(cortex());
  const GrowthResult result = grow_output(brain, "r", 2, {.initialization = WeightInit::uniform});
  const BrainRegion& grown = brain.regions.at("r");
  const Tensor& recurrent = tensor_at(grown, "weights.w_rec");
  BOOST_TEST((recurrent.shape() == Shape{8, 8}));
  BOOST_TEST((recurrent.encoding() == Encoding::csr));
  BOOST_TEST(recurrent.nnz() == 64);
  check_corners(cortex(), grown);
  BOOST_TEST(result.synapses_added == 28 + 2 * 4 + 2 * 3 + 2);
}

BOOST_AUTO_TEST_CASE(a_matrix_named_by_one_population_twice_is_recurrent) {
  for (const char* name : {"w_ca3_ca3", "ca3_ca3", "W_CA3_ca3", "w_l23_pyr_l23_pyr"}) {
    BrainState brain = brain_of(cortex());
    brain.regions.at("r").weights()[name] = counting(DType::f32, {6, 6});
    brain.regions.at("r").learning_state()["eligibility"][name] = counting(DType::f32, {6, 6});
    const BrainRegion old = brain.regions.at("r");
    grow_output(brain, "r", 2);
    const BrainRegion& grown = brain.regions.at("r");
    BOOST_TEST((tensor_at(grown, std::string("weights.") + name).shape() == Shape{8, 8}), name);
    BOOST_TEST((tensor_at(grown, std::string("learning_state.eligibility.") + name).shape() ==
                Shape{8, 8}));
    check_corners(old, grown);
    BOOST_CHECK_EXCEPTION(grow_source(brain, "r", name, 20), UsageError,
                          has_code(ErrorCode::not_found));
  }
  for (const char* name : {"w_w", "w_ca3_ca1", "w_ca3", "w_ca3_ca3_ca3", "w"}) {
    BrainState brain = brain_of(cortex());
    brain.regions.at("r").weights()[name] = counting(DType::f32, {6, 6});
    BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 2), UsageError,
                          says(ErrorCode::wrong_state, name));
  }
}

BOOST_AUTO_TEST_CASE(connections_of_pathways_grow_with_their_ends) {
  BrainState brain = test::brain();
  brain.connectivity.add({"cortex", "pathway:cortex_to_striatum", counting(DType::f32, {6, 20})});
  grow_output(brain, "cortex", 2);
  BOOST_TEST((brain.connectivity.at("cortex", "pathway:cortex_to_striatum").weights.shape() ==
              Shape{8, 20}));
}

BOOST_AUTO_TEST_CASE(connections_grow_on_the_side_of_the_region) {
  const BrainState old = test::brain();
  BrainState brain = old;
  grow_output(brain, "cortex", 2, {.initialization = WeightInit::uniform});
  grow_output(brain, "striatum", 10, {.initialization = WeightInit::uniform});
  const BrainConnection& between = brain.connectivity.at("cortex", "striatum");
  BOOST_TEST((between.weights.shape() == Shape{8, 30}));
  BOOST_TEST((between.delays->shape() == Shape{8, 30}));
  BOOST_TEST(keeps_corner(between.weights, old.connectivity.at("cortex", "striatum").weights));
  BOOST_TEST(keeps_corner(*between.delays, *old.connectivity.at("cortex", "striatum").delays));
  // 1 to 120 have the mean 60.5, which is even at 60.
  BOOST_TEST(numbers(*between.delays)[20] == 60);
  const BrainConnection& own = brain.connectivity.at("cortex", "cortex");
  BOOST_TEST((own.weights.shape() == Shape{8, 8}));
  BOOST_TEST(own.weights.nnz() == 64);
}

BOOST_AUTO_TEST_CASE(delays_with_zeros_are_those_of_connections_that_were_made) {
  std::vector<double> first;
  for (const bool is_sparse : {false, true}) {
    BrainState brain = test::brain();
    BrainConnection& own = brain.connectivity.at("cortex", "cortex");
    own.delays = counting(DType::f32, {6, 6}, 0);
    if (is_sparse) own.delays = own.delays->to_csr();
    grow_output(brain, "cortex", 20, {.sparsity = 0.3});
    const std::vector<double> weights = numbers(own.weights);
    const std::vector<double> delays = numbers(*own.delays);
    for (std::size_t i = 1; i < weights.size(); ++i)
      BOOST_REQUIRE((weights[i] != 0) == (delays[i] != 0));
    BOOST_TEST(std::ranges::count(delays, 18) > 100);  // the mean of 1 to 35, and itself
    if (first.empty()) first = delays;
    BOOST_TEST(delays == first, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(delays_that_lie_the_other_way_round_are_those_of_the_same_synapses) {
  for (const bool weights_lie_usual : {false, true}) {
    BrainState brain = test::brain();
    BrainConnection& between = brain.connectivity.at("cortex", "striatum");
    const Shape usual{6, 20}, other{20, 6};
    between.weights = counting(DType::f32, weights_lie_usual ? usual : other);
    between.delays = counting(DType::f32, weights_lie_usual ? other : usual, 0);
    grow_output(brain, "cortex", 15, {.sparsity = 0.3});
    std::vector<double> weights = numbers(between.weights), delays = numbers(*between.delays);
    if (!weights_lie_usual) std::swap(weights, delays);
    std::size_t made = 0;
    for (std::size_t source = 6; source < 21; ++source) {
      for (std::size_t target = 0; target < 20; ++target) {
        const bool is_made = weights[source * 20 + target] != 0;
        BOOST_REQUIRE(is_made == (delays[target * 21 + source] != 0));
        made += is_made ? 1 : 0;
      }
    }
    BOOST_TEST(made > 30);
  }
}

BOOST_AUTO_TEST_CASE(matrices_that_lie_the_other_way_round_grow_on_the_other_side) {
  BrainState brain = test::brain();
  brain.connectivity.remove("cortex", "striatum");
  brain.connectivity.add({"cortex", "striatum", counting(DType::f32, {20, 6})});
  grow_output(brain, "cortex", 2);
  BOOST_TEST((brain.connectivity.at("cortex", "striatum").weights.shape() == Shape{20, 8}));
  brain.connectivity.at("cortex", "striatum").weights = counting(DType::f32, {20, 7});
  const BrainState before = brain;
  BOOST_CHECK_EXCEPTION(grow_output(brain, "cortex", 2), UsageError,
                        says(ErrorCode::size_mismatch, "cortex->striatum", "[20, 7]", "[8, 20]"));
  BOOST_TEST((brain == before));
}

BOOST_AUTO_TEST_CASE(targets_grow_with_their_source_where_asked) {
  BrainState brain = test::brain();
  brain.regions.at("striatum").metadata["axes"]["weights.d1"] = Value::array();
  for (const char* axis : {"neurons", "source:cortex"})
    brain.regions.at("striatum").metadata["axes"]["weights.d1"].push_back(axis);
  BrainState with_targets = brain;
  const GrowthResult alone = grow_output(brain, "cortex", 2);
  BOOST_TEST(
      alone.targets_left == (std::vector<std::string>{"striatum", "pathway:cortex_to_striatum"}),
      boost::test_tools::per_element());
  BOOST_TEST((tensor_at(brain.pathways.at("cortex_to_striatum"), "weights.cortex").shape() ==
              Shape{20, 6}));
  const GrowthResult all = grow_output(with_targets, "cortex", 2, {.grow_targets = true});
  BOOST_TEST(all.targets_left.empty());
  const BrainRegion& pathway = with_targets.pathways.at("cortex_to_striatum");
  BOOST_TEST((tensor_at(pathway, "weights.cortex").shape() == Shape{20, 8}));
  BOOST_TEST(pathway.n_inputs == 8);
  const BrainRegion& target = with_targets.regions.at("striatum");
  BOOST_TEST((tensor_at(target, "weights.d1").shape() == Shape{20, 66}));
  BOOST_TEST((tensor_at(target, "weights.d2").shape() == Shape{20, 64}));
  BOOST_TEST(target.n_inputs == 66);
}

// cortex has a tensor of the path by which the pathway listens to it.
BOOST_AUTO_TEST_CASE(axes_of_the_region_that_grows_are_not_those_of_its_targets) {
  BrainState brain = test::brain();
  brain.regions.at("cortex").weights()["cortex"] = counting(DType::f32, {6, 6});
  GrowthOptions options = with_axes("weights.cortex", {"neurons", "fixed"});
  options.grow_targets = true;
  grow_output(brain, "cortex", 2, options);
  BOOST_TEST((tensor_at(brain.regions.at("cortex"), "weights.cortex").shape() == Shape{8, 6}));
  BOOST_TEST((tensor_at(brain.pathways.at("cortex_to_striatum"), "weights.cortex").shape() ==
              Shape{20, 8}));
}

BOOST_AUTO_TEST_CASE(pathways_grow_under_their_prefix) {
  BrainState brain = test::brain();
  grow_output(brain, "pathway:cortex_to_striatum", 16);
  BOOST_TEST(brain.pathways.at("cortex_to_striatum").n_neurons == 36);
  BOOST_TEST(parse_growth_history(to_json(brain.metadata)).front().region ==
             "pathway:cortex_to_striatum");
}

BOOST_AUTO_TEST_CASE(a_source_is_columns_of_its_own_tensors) {
  BrainState brain = brain_of(cortex());
  const GrowthResult result = grow_source(brain, "r", "thalamus", 9);
  const BrainRegion& grown = brain.regions.at("r");
  BOOST_TEST(result.inputs_added == 5);
  BOOST_TEST((tensor_at(grown, "weights.thalamus").shape() == Shape{6, 9}));
  BOOST_TEST((tensor_at(grown, "learning_state.eligibility.thalamus").shape() == Shape{6, 9}));
  BOOST_TEST((tensor_at(grown, "weights.pfc") == tensor_at(cortex(), "weights.pfc")));
  BOOST_TEST(grown.n_inputs == 12);
  BOOST_TEST(grown.n_neurons == 6);
  BOOST_TEST(grown.find("config")->at("n_inputs").as_int64() == 12);
  check_corners(cortex(), grown);
  const GrowthEvent event = parse_growth_history(to_json(brain.metadata)).front();
  BOOST_TEST(*event.neurons_added == 0);
  BOOST_TEST(event.other.at(0).second == "\"thalamus\"");
  BOOST_TEST(event.other.at(1).second == "5");
}

BOOST_AUTO_TEST_CASE(a_source_of_that_size_is_left_alone) {
  BrainState brain = brain_of(cortex());
  const BrainState before = brain;
  for (const std::uint64_t size : {0, 3, 4})
    BOOST_TEST(grow_source(brain, "r", "thalamus", size).nothing_done ==
               "source 'thalamus' has 4 inputs already");
  BOOST_TEST((brain == before));
}

BOOST_AUTO_TEST_CASE(an_unknown_source_is_refused_with_those_there_are) {
  BrainState brain = brain_of(cortex());
  BOOST_CHECK_EXCEPTION(grow_source(brain, "r", "retina", 9), UsageError,
                        says(ErrorCode::not_found, "'r'", "retina", "pfc, thalamus"));
  BOOST_CHECK_EXCEPTION(grow_source(brain, "nowhere", "retina", 9), UsageError,
                        says(ErrorCode::not_found, "nowhere"));
  // Sources of any component can grow, and so are named.
  brain.regions.at("r").learning_state()["trace"]["retina_2"] = counting(DType::f32, {6, 2});
  BOOST_CHECK_EXCEPTION(grow_source(brain, "r", "retina", 9), UsageError,
                        says(ErrorCode::not_found, "pfc, retina_2, thalamus"));
  BOOST_TEST(grow_source(brain, "r", "retina_2", 3).inputs_added == 1);
}

BOOST_AUTO_TEST_CASE(populations_of_a_region_grow_on_their_own) {
  BrainState brain = brain_of(hippocampus());
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 4), UsageError,
                        says(ErrorCode::wrong_state, "populations"));
  grow_output(brain, "r", 4, {.population = "dg"});
  grow_output(brain, "r", 3, {.population = "ca3"});
  grow_output(brain, "r", 16, {.population = "ca1"});
  const BrainRegion& grown = brain.regions.at("r");
  BOOST_TEST(grown.n_neurons == 26 + 23);
  BOOST_TEST((tensor_at(grown, "weights.w_ec_dg").shape() == Shape{16, 5}));
  BOOST_TEST((tensor_at(grown, "weights.w_dg_ca3").shape() == Shape{11, 16}));
  BOOST_TEST((tensor_at(grown, "weights.w_ca3_ca3").shape() == Shape{11, 11}));
  BOOST_TEST((tensor_at(grown, "weights.w_ca3_ca1").shape() == Shape{22, 11}));
  BOOST_TEST((tensor_at(grown, "weights.w_ca1_inhib").shape() == Shape{22, 22}));
  check_corners(hippocampus(), grown);
  grow_source(brain, "r", "ec", 8);
  BOOST_TEST((tensor_at(grown, "weights.w_ec_ca1").shape() == Shape{22, 8}));
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 4, {.population = "ca2"}), UsageError,
                        says(ErrorCode::not_found, "population", "ca2"));
}

BOOST_AUTO_TEST_CASE(ambiguous_axes_are_refused_until_they_are_told) {
  for (const auto& [name, shape] :
       {std::pair{"w_ff", Shape{6, 6}}, {"w_fb", {3, 6}}, {"mask", {6, 2, 6}}}) {
    BrainRegion region = cortex();
    region.weights()[name] = counting(DType::f32, shape);
    BrainState brain = brain_of(region);
    const BrainState before = brain;
    const std::string path = std::string("weights.") + name;
    BOOST_CHECK_EXCEPTION(
        grow_output(brain, "r", 2), UsageError,
        says(ErrorCode::wrong_state, "'r'", path, shape.to_string(), "6 neurons"));
    BOOST_TEST((brain == before));
    std::vector<std::string> axes(shape.rank(), "fixed");
    axes.back() = "neurons";
    grow_output(brain, "r", 2, with_axes(path, axes));
    const Shape grown = tensor_at(brain.regions.at("r"), path).shape();
    BOOST_TEST(grown[0] == shape[0]);
    BOOST_TEST(grown[shape.rank() - 1] == 8);
  }
}

BOOST_AUTO_TEST_CASE(declared_axes_that_do_not_fit_are_refused) {
  BrainState brain = brain_of(cortex());
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 2, with_axes("weights.bias", {"neurons", "fixed"})),
                        UsageError, says(ErrorCode::size_mismatch, "weights.bias", "2 axes"));
  BOOST_CHECK_EXCEPTION(
      grow_output(brain, "r", 2, with_axes("weights.thalamus", {"neurons", "neurons"})), UsageError,
      says(ErrorCode::size_mismatch, "weights.thalamus", "[6, 4]", "axis 1"));
  brain.regions.at("r").metadata["axes"]["weights.bias"] = "neurons";
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 2), UsageError,
                        says(ErrorCode::bad_argument, "weights.bias", "arrays of texts"));
  brain = brain_of(hippocampus());
  brain.regions.at("r").n_neurons = 27;
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 4, {.population = "dg"}), UsageError,
                        says(ErrorCode::size_mismatch, "26 neurons in 3 populations", "27"));
}

BOOST_AUTO_TEST_CASE(counts_of_the_config_follow) {
  BrainState brain = brain_of(cortex());
  grow_output(brain, "r", 2);
  const Value& config = *brain.regions.at("r").find("config");
  BOOST_TEST(config.at("n_neurons").as_int64() == 8);
  BOOST_TEST(config.at("n_inputs").as_int64() == 7);
}

BOOST_AUTO_TEST_CASE(each_growth_is_an_event_of_the_history) {
  BrainState brain = test::brain();
  grow_output(brain, "cortex", 2, {.reason = "high_utilization"});
  brain.training_steps = 2000;
  grow_output(brain, "striatum", 10);
  const auto events = parse_growth_history(to_json(brain.metadata));
  BOOST_REQUIRE(events.size() == 2);
  BOOST_TEST(events[0].type == "growth");
  BOOST_TEST(*events[0].step == 1000);
  BOOST_TEST(events[0].region == "cortex");
  BOOST_TEST(events[0].reason == "high_utilization");
  BOOST_TEST(*events[0].neurons_added == 2);
  BOOST_TEST(*events[0].old_size == 6);
  BOOST_TEST(*events[0].new_size == 8);
  BOOST_TEST(*events[1].step == 2000);
  brain.metadata["growth_history"] = "text";
  BOOST_CHECK_EXCEPTION(grow_output(brain, "cortex", 2), UsageError,
                        has_code(ErrorCode::wrong_state));
  BOOST_TEST(brain.regions.at("cortex").n_neurons == 8);
}

BOOST_AUTO_TEST_CASE(equal_seeds_grow_equal_brains) {
  BrainState a = test::brain();
  BrainState b = test::brain();
  BrainState c = test::brain();
  grow_output(a, "cortex", 2, {.seed = 1});
  grow_output(b, "cortex", 2, {.seed = 1});
  grow_output(c, "cortex", 2, {.seed = 2});
  BOOST_TEST((a == b));
  BOOST_TEST(!(a == c));
}

BOOST_AUTO_TEST_CASE(weights_of_every_float_type_grow) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    BrainRegion region{.n_neurons = 3};
    region.weights()["w"] = counting(dtype, {3, 5});
    BrainState brain = brain_of(region);
    grow_output(brain, "r", 2, {.initialization = WeightInit::uniform});
    const Tensor& grown = tensor_at(brain.regions.at("r"), "weights.w");
    BOOST_TEST((grown.dtype() == dtype));
    BOOST_TEST(keeps_corner(grown, counting(dtype, {3, 5})));
    const std::vector<double> values = numbers(grown);
    for (std::size_t i = 15; i < 25; ++i) BOOST_TEST((values[i] > 0 && values[i] <= 0.3));
  }
}

BOOST_AUTO_TEST_CASE(codes_and_masks_grow_by_zeros_and_small_floats_are_refused) {
  BrainRegion region{.n_neurons = 3};
  region.weights()["codes"] = counting(DType::i8, {3, 4});
  region.weights()["mask"] = Tensor::zeros(DType::boolean, {3, 4});
  BrainState brain = brain_of(region);
  grow_output(brain, "r", 2, {.initialization = WeightInit::uniform, .scale = 9});
  BOOST_TEST(numbers(tensor_at(brain.regions.at("r"), "weights.codes")).back() == 0);
  brain.regions.at("r").weights()["small"] = Tensor::zeros(DType::f8_e4m3, {5, 5});
  BOOST_CHECK_EXCEPTION(
      grow_output(brain, "r", 2, with_axes("weights.small", {"neurons", "fixed"})), UsageError,
      says(ErrorCode::dtype_mismatch, "weights.small", "f8_e4m3"));
  brain = brain_of({.n_neurons = 3});
  brain.connectivity.add({"r", "r", Tensor::zeros(DType::f8_e4m3, {3, 3})});
  BOOST_CHECK_EXCEPTION(grow_output(brain, "r", 2), UsageError,
                        says(ErrorCode::dtype_mismatch, "r->r", "f8_e4m3"));
}

BOOST_AUTO_TEST_CASE(nothing_grows_by_nothing_and_from_nothing) {
  BrainState brain = test::brain();
  const BrainState before = brain;
  BOOST_TEST(!grow_output(brain, "cortex", 0).nothing_done.empty());
  BOOST_CHECK_EXCEPTION(grow_output(brain, "nowhere", 1), UsageError,
                        says(ErrorCode::not_found, "nowhere"));
  BOOST_CHECK_EXCEPTION(grow_output(brain, "cortex", 0xffffffff), UsageError,
                        says(ErrorCode::size_mismatch, "4294967295"));
  BOOST_TEST((brain == before));
  brain.regions.add("empty");
  BOOST_CHECK_EXCEPTION(grow_output(brain, "empty", 1), UsageError,
                        says(ErrorCode::wrong_state, "without neurons"));
}

BOOST_AUTO_TEST_CASE(names_of_initialisations_are_read_and_written) {
  for (const WeightInit init : {WeightInit::sparse_random, WeightInit::xavier, WeightInit::uniform})
    BOOST_TEST((weight_init_from_name(weight_init_name(init)) == init));
  BOOST_TEST(!weight_init_from_name("he").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
