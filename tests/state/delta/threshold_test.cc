// Thresholds: what stays at the base's value, and that errors never add up.
#include <cmath>
#include <limits>

#include "state/delta/check.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_threshold)

namespace {

constexpr double kThreshold = 1e-3;

SampleState one(Tensor tensor, Role role = Role::weights) {
  return {.regions = {{"cortex", {{"w", {std::move(tensor), role}}}}}};
}

Tensor stored(const std::filesystem::path& path) {
  const ChainReader chain = ChainReader::open(path);
  return chain.read(chain.reader().region("cortex").at("w"));
}

template <typename T>
Tensor tensor_of(std::vector<T> values) {
  return Tensor::copy_of<T>({values.size()}, values);
}

// Saves `after` over `before` with the threshold, and reads what came of it.
Tensor kept(const Tensor& before, const Tensor& after, Role role = Role::weights) {
  const TemporaryFolder folder;
  save_full(one(before, role), folder / "base.thalia");
  save_delta(one(after, role), folder / "base.thalia", folder / "one.delta.thalia",
             {.loss = {.threshold = kThreshold}});
  return stored(folder / "one.delta.thalia");
}

}  // namespace

BOOST_AUTO_TEST_CASE(elements_that_moved_by_less_keep_the_base_value) {
  const Tensor before = tensor_of<float>({1, 1, 1, 1, -1, 0.5f});
  const Tensor after = tensor_of<float>({1.0009f, 1.0011f, 0.9991f, 0.5f, -1, 0.5f});
  BOOST_TEST((kept(before, after) == tensor_of<float>({1, 1.0011f, 1, 0.5f, -1, 0.5f})));
}

BOOST_AUTO_TEST_CASE(zeros_and_what_is_not_finite_are_always_stored) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor before = tensor_of<float>({1e-4f, 0, kNan, 1, kInf, -kInf, 1, kNan, 0, -kNan});
  const Tensor after = tensor_of<float>({0, 1e-4f, 1, kNan, -kInf, 3, kInf, kNan, 0, kNan});
  BOOST_TEST((kept(before, after) == after));
}

BOOST_AUTO_TEST_CASE(only_floating_point_weights_may_stay) {
  const Tensor before = tensor_of<float>({1, 2});
  const Tensor after = tensor_of<float>({1.0001f, 2});
  for (const Role role : {Role::optimizer, Role::bias, Role::normalization, Role::buffer})
    BOOST_TEST((kept(before, after, role) == after));
  BOOST_TEST((kept(before, after, Role::embedding) == before));
  const Tensor integers = tensor_of<std::int8_t>({1, 3});
  BOOST_TEST((kept(tensor_of<std::int8_t>({1, 2}), integers) == integers));
}

// The tensors have the role weights, as programs write that know no roles.
BOOST_AUTO_TEST_CASE(what_a_name_or_a_pattern_says_to_be_exact_is) {
  const TemporaryFolder folder;
  const Tensor before = Tensor::copy_of<float>({2, 1}, std::vector<float>{1, 2});
  const Tensor after = Tensor::copy_of<float>({2, 1}, std::vector<float>{1.0001f, 2});
  const auto state = [](const Tensor& tensor) {
    return SampleState{.regions = {{"cortex",
                                    {{"m.exp_avg", {tensor, Role::weights}},
                                     {"kept", {tensor, Role::weights}},
                                     {"w", {tensor, Role::weights}}}}}};
  };
  save_full(state(before), folder / "base.thalia");
  save_delta(state(after), folder / "base.thalia", folder / "one.delta.thalia",
             {.loss = {.threshold = kThreshold, .exclude = {"cortex.weights.ke?t"}}});
  const ChainReader chain = ChainReader::open(folder / "one.delta.thalia");
  const auto read = [&](const char* name) {
    return chain.read(chain.reader().region("cortex").at(name));
  };
  BOOST_TEST((read("m.exp_avg") == after));
  BOOST_TEST((read("kept") == after));
  BOOST_TEST((read("w") == before));
}

BOOST_AUTO_TEST_CASE(half_and_double_and_complex_elements_have_the_rule_too) {
  // 1 and 1 + 2^-10 as binary16 are 3C00 and 3C01, and 1 + 2^-9 is 3C02.
  const auto halves = [](std::vector<std::uint16_t> bits) {
    return Tensor::copy_of(DType::f16, {bits.size()}, as_byte_span(bits));
  };
  BOOST_TEST(
      (kept(halves({0x3C00, 0x3C00}), halves({0x3C01, 0x3C02})) == halves({0x3C00, 0x3C02})));
  BOOST_TEST((kept(tensor_of<double>({1, 1}), tensor_of<double>({1.0001, 1.1})) ==
              tensor_of<double>({1, 1.1})));
  const auto complex = [](std::vector<float> parts) {
    return Tensor::copy_of(DType::c64, {parts.size() / 2}, as_byte_span(parts));
  };
  BOOST_TEST((kept(complex({1, 1, 1, 1}), complex({1.0001f, 1, 1.0001f, 2})) ==
              complex({1, 1, 1.0001f, 2})));
}

BOOST_AUTO_TEST_CASE(a_state_that_hardly_moved_takes_nothing) {
  std::mt19937_64 random(1);
  const Tensor before = normal_tensor({100, 1000}, random);
  Tensor after = before;
  for (float& value : after.mutable_as<float>()) value *= 1.00001f;
  const TemporaryFolder folder;
  save_full(one(before), folder / "base.thalia");
  const DeltaResult result =
      save_delta(one(after), folder / "base.thalia", folder / "one.delta.thalia",
                 {.loss = {.threshold = kThreshold}});
  BOOST_TEST(result.same == 1);
  BOOST_TEST((stored(folder / "one.delta.thalia") == before));
}

// Elements drift by less than the threshold at each step: against the original states errors would
// add up, against what the chain reconstructs they do not.
BOOST_AUTO_TEST_CASE(the_error_of_a_chain_stays_below_the_threshold) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    std::mt19937_64 random(2);
    std::normal_distribution<double> moves(0, kThreshold / 2);
    std::vector<double> truth(5000);
    for (double& value : truth) value = moves(random) * 1000;
    const auto tensor = [&]() -> Tensor {
      if (dtype == DType::f64) return tensor_of<double>(truth);
      return tensor_of<float>(std::vector<float>(truth.begin(), truth.end()));
    };
    const TemporaryFolder folder;
    std::filesystem::path last = folder / "base.thalia";
    save_full(one(tensor()), last);
    bool lossy = false;
    for (int step = 1; step <= 12; ++step) {
      for (double& value : truth) value += moves(random);
      if (step == 6) truth.resize(6000, 0.25);
      const Tensor now = tensor();
      const auto path = folder / (std::to_string(step) + ".delta.thalia");
      save_delta(one(now), last, path, {.loss = {.threshold = kThreshold}});
      const Tensor found = stored(path);
      BOOST_REQUIRE((found.shape() == now.shape()));
      double worst = 0;
      for (std::size_t i = 0; i < truth.size(); ++i) {
        const double error = dtype == DType::f64
                                 ? found.as<double>()[i] - now.as<double>()[i]
                                 : double{found.as<float>()[i]} - double{now.as<float>()[i]};
        worst = std::max(worst, std::abs(error));
      }
      BOOST_TEST(worst < kThreshold);
      lossy = lossy || worst > 0;
      last = path;
    }
    BOOST_TEST(lossy);
  }
}

BOOST_AUTO_TEST_CASE(thresholds_that_are_none_are_refused) {
  const TemporaryFolder folder;
  const SampleState state = one(tensor_of<float>({1}));
  save_full(state, folder / "base.thalia");
  for (const double threshold : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    BOOST_CHECK_EXCEPTION(save_delta(state, folder / "base.thalia", folder / "one.delta.thalia",
                                     {.loss = {.threshold = threshold}}),
                          UsageError, says(ErrorCode::bad_argument, "threshold"));
  }
  BOOST_TEST(list_folder(folder.path()).size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
