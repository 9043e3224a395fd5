#include "thalia/brain_region.h"

#include <vector>

#include "boost_test.h"

using namespace thalia;

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

BOOST_AUTO_TEST_SUITE(brain_region)

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

BOOST_AUTO_TEST_CASE(roles_and_components_agree) {
  for (unsigned role = 0; role < format::kRoleCount; ++role) {
    const auto of_role = component_of_role(static_cast<Role>(role));
    BOOST_TEST((role_of_component(of_role) == static_cast<Role>(role)), of_role);
  }
  BOOST_TEST((role_of_component("neuron_state") == Role::region_state));
  BOOST_TEST((role_of_component("episode_buffer") == Role::other));
}

BOOST_AUTO_TEST_SUITE_END()
