#include "thalia/state/brain.h"

#include <utility>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(brain_region)

namespace {

BrainRegion sample() {
  BrainRegion region;
  region.learning_state()["stp"]["u"] = Tensor::zeros(DType::f32, {2});
  region.state["episodes"] = Value::array();
  Value episode;
  episode["state"] = Tensor::zeros(DType::f32, {3});
  region.state["episodes"].push_back(1);
  region.state["episodes"].push_back(episode);
  region.weights()["layer.0.w"] = Tensor::zeros(DType::f32, {4});
  return region;
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_are_visited_in_order_with_their_paths) {
  std::vector<std::string> paths;
  const BrainRegion region = sample();
  for_each_tensor(region.state,
                  [&](const std::string& path, const Tensor&) { paths.push_back(path); });
  BOOST_TEST(paths == (std::vector<std::string>{"learning_state.stp.u", "episodes[1].state",
                                                "weights.layer.0.w"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_path_of_a_visit_is_found) {
  BrainRegion region = sample();
  for_each_tensor(region.state, [&](const std::string& path, Tensor& tensor) {
    BOOST_TEST(&region.find_path(path)->as_tensor() == &tensor);
  });
}

BOOST_AUTO_TEST_CASE(paths_that_lead_nowhere_find_nothing) {
  const BrainRegion region = sample();
  for (const char* path : {"", "learning_state.", "learning_state.stp.uu", "learning_state.st",
                           "episodes[2].state", "episodes[1]state", "episodes[", "episodes[1",
                           "episodes[x]", "weights.layer.0", "learning_state[0]"})
    BOOST_TEST(region.find_path(path) == nullptr, path);
}

BOOST_AUTO_TEST_CASE(components_are_made_once_and_keep_their_order) {
  BrainRegion region;
  region.weights()["w"] = 1;
  region.config()["a"] = 2;
  region.weights()["v"] = 3;
  BOOST_TEST(region.state.members().size() == 2);
  BOOST_TEST(region.state.members()[0].name == "weights");
  BOOST_TEST(region.find("weights")->size() == 2);
  BOOST_TEST(region.find("homeostatic") == nullptr);
}

BOOST_AUTO_TEST_CASE(reading_makes_no_component) {
  BrainRegion region;
  const BrainRegion& to_read = region;
  for (const Value* read :
       {&to_read.config(), &to_read.weights(), &to_read.homeostatic(), &to_read.region_state(),
        &to_read.learning_state(), &to_read.oscillators(), &to_read.neuromodulators(),
        &to_read.component("any")})
    BOOST_TEST((*read == Value::object()));
  const auto read = [](ComponentRef component) {
    const Value& value = component;
    BOOST_TEST((value == Value::object()));
    BOOST_TEST(component.find("x") == nullptr);
    BOOST_TEST(std::as_const(component).find("x") == nullptr);
    BOOST_TEST(component.size() == 0);
    BOOST_TEST(!component.erase("x"));
    test::expect<UsageError>([&] { component.at("x"); }, ErrorCode::not_found);
  };
  for (const ComponentRef& component :
       {region.config(), region.weights(), region.homeostatic(), region.region_state(),
        region.learning_state(), region.oscillators(), region.neuromodulators(),
        region.component("any")})
    read(component);
  BOOST_TEST((region == BrainRegion()));
}

BOOST_AUTO_TEST_CASE(a_component_is_read_where_it_was_written) {
  BrainRegion region;
  region.homeostatic()["thresholds"] = 3;
  BOOST_TEST(std::as_const(region).homeostatic().at("thresholds").as_int64() == 3);
  BOOST_TEST(region.homeostatic().find("thresholds") == region.find_path("homeostatic.thresholds"));
  region.homeostatic().at("thresholds") = 4;
  BOOST_TEST(region.homeostatic().size() == 1);
  BOOST_TEST(region.homeostatic().at("thresholds").as_int64() == 4);
  region.homeostatic() = Value::array();
  BOOST_TEST(region.find("homeostatic")->is_array());
  test::expect<UsageError>([&] { region.homeostatic().at("thresholds"); }, ErrorCode::wrong_state);
}

BOOST_AUTO_TEST_CASE(roles_and_components_agree) {
  for (unsigned role = 0; role < kRoleCount; ++role) {
    const auto of_role = component_of_role(static_cast<Role>(role));
    BOOST_TEST((role_of_component(of_role) == static_cast<Role>(role)), of_role);
  }
  BOOST_TEST((role_of_component("neuron_state") == Role::region_state));
  BOOST_TEST((role_of_component("episode_buffer") == Role::other));
}

BOOST_AUTO_TEST_SUITE_END()
