#include "thalia/state/growth.h"

#include <utility>

#include "boost_test.h"
#include "growth_sample.h"
#include "support/errors.h"
#include "support/sanitizers.h"
#include "thalia/state/metadata.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(load_into_larger)

namespace {

// test::brain() as it would be built with more neurons from the start: everything is -1.
BrainState larger_target() {
  BrainState target = test::brain();
  grow_output(target, "cortex", 2, {.sparsity = 1, .seed = 9, .grow_targets = true});
  grow_source(target, "cortex", "pfc", 5, {.seed = 9});
  target.metadata = Value::object();
  target.training_steps = 0;
  return target;
}

BrainState older() {
  BrainState older = test::brain();
  older.metadata["description"] = "older";
  older.regions.at("cortex").oscillators()["theta"]["phase"] = 1.5;
  older.regions.at("cortex").weights()["pfc"] = counting(DType::f32, {6, 3}, 1000);
  older.state["scheduler"]["current_time"] = 12.0;
  return older;
}

}  // namespace

BOOST_AUTO_TEST_CASE(older_tensors_fill_the_corner_and_the_rest_stays) {
  BrainState target = larger_target();
  const BrainState before = target;
  const LoadIntoResult result = load_into(target, older());
  const BrainRegion& cortex = target.regions.at("cortex");
  BOOST_TEST(cortex.n_neurons == 8);
  const BrainState from = older();
  for_each_tensor(from.regions.at("cortex").state,
                  [&](const std::string& path, const Tensor& tensor) {
                    BOOST_TEST(keeps_corner(tensor_at(cortex, path), tensor), path);
                  });
  // What lies outside is the target's, bit for bit.
  const auto pfc = numbers(tensor_at(cortex, "weights.pfc"));
  const auto old_pfc = numbers(tensor_at(before.regions.at("cortex"), "weights.pfc"));
  BOOST_REQUIRE(pfc.size() == 40);
  for (std::size_t i = 0; i < 40; ++i) {
    if (i / 5 >= 6 || i % 5 >= 3) BOOST_TEST(pfc[i] == old_pfc[i]);
  }
  BOOST_TEST((tensor_at(cortex, "weights.w_rec").encoding() == Encoding::csr));
  BOOST_TEST(keeps_corner(target.connectivity.at("cortex", "striatum").weights,
                          from.connectivity.at("cortex", "striatum").weights));
  BOOST_TEST(keeps_corner(*target.connectivity.at("cortex", "cortex").delays,
                          *from.connectivity.at("cortex", "cortex").delays));
  BOOST_TEST(result.regions_grown.empty());
  BOOST_TEST(result.left_out.empty());
  BOOST_TEST(result.kept.empty());
}

BOOST_AUTO_TEST_CASE(what_was_copied_is_counted) {
  BrainState target;
  target.regions.add("r", {.n_neurons = 3}).weights()["w"] = Tensor::zeros(DType::f32, {3, 4});
  target.regions.at("r").weights()["same"] = Tensor::zeros(DType::f32, {5});
  target.regions.at("r").weights()["own"] = Tensor::zeros(DType::f32, {7});
  target.regions.at("r").config()["tau"] = 3;
  target.regions.add("young").weights()["w"] = Tensor::zeros(DType::f32, {1});
  BrainState from;
  from.regions.add("r", {.n_neurons = 2}).weights()["w"] = counting(DType::f32, {2, 3});
  from.regions.at("r").weights()["same"] = counting(DType::f32, {5});
  from.regions.at("r").weights()["gone"] = counting(DType::f32, {5});
  from.regions.at("r").config()["tau"] = 1;
  from.regions.at("r").state["mode"] = "sleep";
  from.regions.add("lost");
  from.connectivity.add({"r", "lost", counting(DType::f32, {2, 1})});
  const LoadIntoResult result = load_into(target, from);
  BOOST_TEST(result.tensors_whole == 1);
  BOOST_TEST(result.tensors_in_corner == 1);
  BOOST_TEST(result.elements_copied == 6 + 5);
  BOOST_TEST(result.elements_kept == 12 - 6);
  BOOST_TEST(result.values_copied == 1);
  BOOST_TEST(result.left_out == (std::vector<std::string>{"regions.r.weights.gone", "regions.lost",
                                                          "connectivity.r->lost"}),
             boost::test_tools::per_element());
  BOOST_TEST(
      result.kept == (std::vector<std::string>{"regions.r.weights.own", "regions.young.weights.w"}),
      boost::test_tools::per_element());
  BOOST_TEST(target.regions.at("r").find("config")->at("tau").as_int64() == 3);
  BOOST_TEST(target.regions.at("r").find("mode")->as_string() == "sleep");
}

BOOST_AUTO_TEST_CASE(values_steps_and_history_are_those_of_the_older_state) {
  BrainState target = larger_target();
  load_into(target, older(), {.growth = {.reason = "a larger model"}});
  BOOST_TEST(target.training_steps == 1000);
  BOOST_TEST(target.metadata.at("description").as_string() == "older");
  BOOST_TEST(target.state.at("scheduler").at("current_time").as_double() == 12.0);
  const BrainRegion& cortex = target.regions.at("cortex");
  BOOST_TEST(cortex.find_path("oscillator_state.theta.phase")->as_double() == 1.5);
  BOOST_TEST(cortex.find("config")->at("n_neurons").as_int64() == 8);
  const auto events = parse_growth_history(to_json(target.metadata));
  BOOST_REQUIRE(events.size() == 1);
  BOOST_TEST(events[0].region == "cortex");
  BOOST_TEST(*events[0].neurons_added == 2);
  BOOST_TEST(*events[0].step == 1000);
  BOOST_TEST(events[0].reason == "a larger model");
}

BOOST_AUTO_TEST_CASE(a_larger_state_is_refused_or_the_target_grows) {
  BrainState small = test::brain();
  const BrainState before = small;
  const BrainState large = larger_target();
  BOOST_CHECK_EXCEPTION(
      load_into(small, large), UsageError,
      says(ErrorCode::shape_mismatch, "regions.cortex.weights.thalamus", "[8, 4]", "[6, 4]"));
  BOOST_TEST((small == before));
  const LoadIntoResult result = load_into(small, large, {.on_larger = OnLarger::grow});
  BOOST_TEST(result.regions_grown.at(0) == "cortex");
  BOOST_TEST(small.regions.at("cortex").n_neurons == 8);
  BOOST_TEST(small.regions.at("cortex").n_inputs == 9);
  for_each_tensor(large.regions.at("cortex").state,
                  [&](const std::string& path, const Tensor& tensor) {
                    BOOST_TEST((tensor_at(small.regions.at("cortex"), path) == tensor), path);
                  });
}

BOOST_AUTO_TEST_CASE(a_tensor_larger_in_one_axis_and_smaller_in_the_other_becomes_both) {
  BrainState target;
  target.regions.add("r", {.n_neurons = 3}).weights()["w"] = counting(DType::f32, {3, 2}, 50);
  BrainState from;
  from.regions.add("r", {.n_neurons = 2}).weights()["w"] = counting(DType::f32, {2, 3});
  const LoadIntoOptions options{.on_larger = OnLarger::grow, .growth = {.sparsity = 0}};
  load_into(target, from, options);
  BOOST_TEST(numbers(tensor_at(target.regions.at("r"), "weights.w")) ==
                 (std::vector<double>{1, 2, 3, 4, 5, 6, 54, 55, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_target_without_neurons_cannot_take_any) {
  BrainState target;
  target.regions.add("r");
  BrainState from;
  from.regions.add("r", {.n_neurons = 5});
  for (const OnLarger on_larger : {OnLarger::refuse, OnLarger::grow}) {
    BOOST_CHECK_EXCEPTION(load_into(target, from, {.on_larger = on_larger}), UsageError,
                          says(ErrorCode::wrong_state, "'r'", "0 neurons", "5 or more"));
  }
}

BOOST_AUTO_TEST_CASE(other_types_and_ranks_are_refused) {
  BrainState target;
  target.regions.add("r", {.n_neurons = 3}).weights()["w"] = counting(DType::f32, {3, 2});
  for (const Tensor& tensor : {counting(DType::f64, {3, 2}), counting(DType::f32, {6})}) {
    BrainState from;
    from.regions.add("r", {.n_neurons = 3}).weights()["w"] = tensor;
    BOOST_CHECK_EXCEPTION(
        load_into(target, from), UsageError,
        says(tensor.dtype() == DType::f64 ? ErrorCode::dtype_mismatch : ErrorCode::shape_mismatch,
             "regions.r.weights.w"));
  }
}

// Looking through all members for each one would take minutes.
BOOST_AUTO_TEST_CASE(many_members_are_loaded) {
  constexpr int kMany = test::kSanitized ? 20'000 : 200'000;
  BrainState older;
  older.state = Value::object();
  Value& many = older.state["many"] = Value::object();
  for (int i = 0; i < kMany; ++i) {
    many.add("member " + std::to_string(i), i);
    older.metadata.add("fact " + std::to_string(i), i);
  }
  BrainState target;
  target.state = Value::object();
  Value& known = target.state["many"] = Value::object();
  for (int i = kMany; i > 0; i -= 2) known.add("member " + std::to_string(i), -1);
  target.metadata.add("fact 7", -1);
  load_into(target, older);
  BOOST_TEST(target.state.at("many").size() == kMany + 1u);
  BOOST_TEST(target.state.at("many").at("member 1998").as_int64() == 1998);
  BOOST_TEST(target.state.at("many").at("member 1999").as_int64() == 1999);
  BOOST_TEST(target.metadata.size() == std::size_t{kMany});
  BOOST_TEST(target.metadata.members()[0].value.as_int64() == 7);
}

BOOST_AUTO_TEST_CASE(a_state_loaded_into_its_own_shapes_is_itself) {
  BrainState target = test::brain();
  BrainState zeroed = target;
  for (const std::string& name : zeroed.regions.names()) {
    for_each_tensor(zeroed.regions.at(name).state, [](const std::string&, Tensor& tensor) {
      if (tensor.is_dense()) tensor = Tensor::zeros(tensor.dtype(), tensor.shape());
    });
  }
  BOOST_TEST(!(zeroed == target));
  load_into(zeroed, target);
  BOOST_TEST((zeroed == target));
}

BOOST_AUTO_TEST_SUITE_END()
