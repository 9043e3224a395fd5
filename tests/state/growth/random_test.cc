#include "state/growth/random.h"

#include <cmath>
#include <limits>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::state;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(growth_random)

namespace {

std::vector<double> drawn(const GrowthOptions& options, const Shape& shape,
                          std::string_view region = "cortex", std::string_view path = "weights.w") {
  std::vector<double> values(*shape.element_count());
  random_weights(options, region, path, shape)(0, values);
  return values;
}

}  // namespace

// Computed by a program in Python from docs/format/growth.md, "Growth", alone.
BOOST_AUTO_TEST_CASE(weights_are_those_of_the_documented_rule) {
  BOOST_TEST((growth_key(7, "cortex", "weights.w") == PhiloxKey{0x98990951, 0x80825437}));
  BOOST_TEST(drawn({.initialization = WeightInit::uniform, .seed = 7}, {2, 2}) ==
                 (std::vector<double>{0x1.9c9aa2d7adebfp-4, 0x1.1b9d16e0fa03fp-3,
                                      0x1.65297f171e618p-3, 0x1.0c563b79ffdd0p-2}),
             boost::test_tools::per_element());
  BOOST_TEST(drawn({.initialization = WeightInit::xavier, .seed = 7}, {2, 2}) ==
                 (std::vector<double>{-0x1.9bea0d2df5e4ep-2, -0x1.8129ef061e583p-4,
                                      0x1.97f0554b0abc2p-3, 0x1.d46944f44d27bp-1}),
             boost::test_tools::per_element());
  BOOST_TEST(drawn({.sparsity = 0.5, .scale = 2, .seed = 7}, {2, 2}) ==
                 (std::vector<double>{0, 0, 0x1.29a2949343fbfp+0, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_weight_depends_on_its_indices_and_not_on_the_run_it_is_in) {
  const GrowthOptions options{.initialization = WeightInit::uniform, .seed = 3};
  const std::vector<double> all = drawn(options, {5, 7});
  const ElementFill fill = random_weights(options, "cortex", "weights.w", {5, 7});
  for (std::uint64_t first = 0; first < 35; ++first) {
    for (std::uint64_t count = 1; first + count <= 35; ++count) {
      std::vector<double> run(count);
      fill(first, run);
      BOOST_REQUIRE(std::equal(run.begin(), run.end(), all.begin() + static_cast<long>(first)));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_weight_does_not_depend_on_how_far_the_matrix_grows) {
  const GrowthOptions options{.seed = 3};
  const std::vector<double> small = drawn(options, {2, 3});
  const std::vector<double> large = drawn(options, {4, 5});
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t column = 0; column < 3; ++column)
      BOOST_TEST(small[row * 3 + column] == large[row * 5 + column]);
  }
}

BOOST_AUTO_TEST_CASE(seeds_regions_and_tensors_have_weights_of_their_own) {
  const Shape shape{8, 8};
  const GrowthOptions options{.initialization = WeightInit::uniform};
  const std::vector<double> one = drawn(options, shape);
  GrowthOptions other_seed = options;
  other_seed.seed = 1;
  BOOST_TEST(drawn(options, shape) == one);
  BOOST_TEST(drawn(other_seed, shape) != one);
  BOOST_TEST(drawn(options, shape, "cortex2") != one);
  BOOST_TEST(drawn(options, shape, "cortex", "weights.v") != one);
  // A zero byte parts the names.
  BOOST_TEST(drawn(options, shape, "cortexw", "eights.w") != one);
}

BOOST_AUTO_TEST_CASE(sparsity_is_the_share_that_is_made) {
  for (const double sparsity : {0.0, 0.1, 0.5, 1.0}) {
    const std::vector<double> values = drawn({.sparsity = sparsity, .seed = 9}, {200, 200});
    const auto made = std::ranges::count_if(values, [](double value) { return value != 0; });
    // Five standard deviations of a binomial distribution of 40,000.
    const double expected = 40'000 * sparsity;
    BOOST_TEST(std::abs(static_cast<double>(made) - expected) <=
               5 * std::sqrt(expected * (1 - sparsity)));
  }
}

BOOST_AUTO_TEST_CASE(weights_keep_to_their_range_and_have_its_mean) {
  struct Case {
    WeightInit init;
    double from;
    double to;
  };
  const double bound = 0.5 * std::sqrt(6.0 / 300);
  for (const auto& [init, from, to] :
       {Case{WeightInit::uniform, 0, 0.5}, Case{WeightInit::xavier, -bound, bound}}) {
    const std::vector<double> values =
        drawn({.initialization = init, .scale = 0.5, .seed = 2}, {100, 200});
    double sum = 0;
    for (const double value : values) {
      BOOST_REQUIRE(value >= from);
      BOOST_REQUIRE(value < to);
      sum += value;
    }
    // Five standard errors of the mean of a uniform distribution.
    BOOST_TEST(std::abs(sum / 20'000 - (from + to) / 2) <
               5 * (to - from) / std::sqrt(12.0 * 20'000));
  }
}

BOOST_AUTO_TEST_CASE(options_out_of_bounds_are_refused) {
  for (const double sparsity : {-0.1, 1.1, std::nan("")}) {
    BOOST_CHECK_EXCEPTION(check_growth_options({.sparsity = sparsity}), UsageError,
                          says(ErrorCode::bad_argument, "sparsity", "0 to 1"));
  }
  BOOST_CHECK_EXCEPTION(check_growth_options({.scale = std::numeric_limits<double>::infinity()}),
                        UsageError, says(ErrorCode::bad_argument, "scale"));
}

BOOST_AUTO_TEST_SUITE_END()
