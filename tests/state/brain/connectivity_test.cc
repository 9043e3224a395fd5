#include "boost_test.h"
#include "support/errors.h"
#include "thalia/state/brain.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(connectivity)

BOOST_AUTO_TEST_CASE(connections_are_found_by_source_and_target) {
  Connectivity connectivity;
  connectivity.add({"a", "b", Tensor::zeros(DType::f32, {2, 3})});
  connectivity.add({"b", "a", Tensor::zeros(DType::f32, {3, 2}), Tensor()});
  BOOST_TEST((connectivity.at("a", "b").weights.shape() == Shape{2, 3}));
  BOOST_TEST(connectivity.find("b", "a")->delays.has_value());
  BOOST_TEST(connectivity.find("a", "a") == nullptr);
  const auto& error = expect<UsageError>([&] { connectivity.at("a", "c"); }, ErrorCode::not_found);
  BOOST_TEST(error.context().value == "'a' to 'c'");
}

BOOST_AUTO_TEST_CASE(there_is_one_connection_a_pair) {
  Connectivity connectivity;
  connectivity.add({"a", "b", Tensor()});
  expect<UsageError>([&] { connectivity.add({"a", "b", Tensor()}); }, ErrorCode::duplicate);
  BOOST_TEST(connectivity.remove("a", "b"));
  BOOST_TEST(!connectivity.remove("a", "b"));
  connectivity.add({"a", "b", Tensor()});
  BOOST_TEST(connectivity.size() == 1);
}

BOOST_AUTO_TEST_CASE(connections_are_found_after_their_names_were_changed) {
  Connectivity connectivity([] {
    return std::vector<BrainConnection>{{"a", "b", Tensor()}, {"b", "a", Tensor()}};
  });
  BOOST_TEST(connectivity.find("b", "a") != nullptr);
  connectivity.all()[1].source = "c";
  BOOST_TEST(connectivity.find("b", "a") == nullptr);
  BOOST_TEST(connectivity.find("c", "a") == &connectivity.all()[1]);
  expect<UsageError>([&] { connectivity.add({"c", "a", Tensor()}); }, ErrorCode::duplicate);
  connectivity.add({"b", "a", Tensor()});
  BOOST_TEST(connectivity.at("b", "a").source == "b");
  BOOST_TEST(connectivity.remove("a", "b"));
  BOOST_TEST(connectivity.find("a", "b") == nullptr);
  const Connectivity copy = connectivity;
  BOOST_TEST((copy.find("b", "a") == &copy.all()[1]));
}

// Looking through all of them for each one would take minutes.
BOOST_AUTO_TEST_CASE(many_connections_are_added_and_found) {
  constexpr int kMany = 200'000;
  Connectivity connectivity;
  for (int i = 0; i < kMany; ++i) connectivity.add({"a", std::to_string(i), Tensor()});
  int found = 0;
  for (int i = 0; i < kMany; ++i)
    found += connectivity.at("a", std::to_string(i)).target == std::to_string(i) ? 1 : 0;
  BOOST_TEST(found == kMany);
}

BOOST_AUTO_TEST_SUITE_END()
