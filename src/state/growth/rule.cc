// Decides by a tensor's path and role what new neurons get in it: docs/format/growth.md, "What
// grows". The first rule that fits counts, and the order of rule_of() is that of the table there.
// New parameters get the mean of the old, so that a new neuron behaves like a typical one; state
// begins at rest.

#include "state/growth/rule.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "state/growth/random.h"
#include "state/tensor/element_numbers.h"
#include "state/value/path_names.h"
#include "state/value/python_value.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

enum class Rule { zero, mean, rest, weights };

// Words in the name of a tensor of parameters, of which new neurons get the mean. "theta" is a
// threshold in a learning state; among the oscillators it is a rhythm, whose role is asked first.
constexpr std::array<std::string_view, 12> kParameterWords{
    "threshold", "thresholds", "theta", "thetas", "scale", "scales",
    "scaling",   "gain",       "gains", "tau",    "delay", "delays"};
constexpr std::array<std::string_view, 2> kMembraneWords{"membrane", "v"};
// The resting potential in a region's config.
constexpr std::array<std::string_view, 4> kRestMembers{"v_rest", "E_L", "e_l", "resting_potential"};

bool is_small_float(DType dtype) {
  return dtype >= DType::f8_e4m3 && dtype <= DType::f4_e2m1;
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool has_any(const std::vector<std::string>& words, std::span<const std::string_view> wanted) {
  return std::ranges::any_of(words, [&](const auto& word) { return is_one_of(word, wanted); });
}

// u and x of short-term plasticity: "learning_state.stp.u", "…stp_mossy.x".
bool is_short_term_efficacy(const std::vector<std::string>& path_words,
                            const std::vector<std::string>& leaf_words) {
  constexpr std::array<std::string_view, 1> kPlasticity{"stp"};
  constexpr std::array<std::string_view, 2> kVariables{"u", "x"};
  return has_any(path_words, kPlasticity) && has_any(leaf_words, kVariables);
}

Rule rule_of(std::string_view path, const Tensor& tensor) {
  const std::string_view component = path.substr(0, path.find('.'));
  if (component == component::kConfig) return Rule::mean;
  const Role role = role_of_component(component);
  if (role == Role::oscillator || role == Role::neuromodulator || role == Role::normalization)
    return Rule::mean;
  const std::vector<std::string> leaf = words_of(leaf_of(path));
  if (has_any(leaf, kParameterWords) || is_short_term_efficacy(words_of(path), leaf))
    return Rule::mean;
  if (is_weights(role)) {
    const bool is_matrix = tensor.shape().rank() >= 2;
    const bool is_float = is_number_float(tensor.dtype()) || is_small_float(tensor.dtype());
    return is_matrix && is_float ? Rule::weights : Rule::zero;
  }
  return has_any(leaf, kMembraneWords) ? Rule::rest : Rule::zero;
}

double resting_potential(const BrainRegion& region) {
  const Value* config = region.find(component::kConfig);
  if (config == nullptr) return 0;
  if (const Value* const value = python_value(*config)) config = value;
  for (const std::string_view name : kRestMembers) {
    const Value* member = config->find(name);
    if (member != nullptr && member->kind() == Value::Kind::number) return member->as_double();
  }
  return 0;
}

}  // namespace

ElementFill constant_fill(double value) {
  return [value](std::uint64_t, std::span<double> values) {
    std::fill(values.begin(), values.end(), value);
  };
}

double mean_of(const Tensor& tensor) {
  const std::uint64_t count = tensor.element_count();
  if (count == 0) return 0;
  double sum = 0;
  for_each_number(tensor.dtype(), tensor.values(), [&](double number) { sum += number; });
  return sum / static_cast<double>(count);
}

ElementFill fill_of(std::string_view region_name, const BrainRegion& region, std::string_view path,
                    const Tensor& tensor, const Shape& shape, const GrowthOptions& options) {
  const Rule rule = rule_of(path, tensor);
  // No fill where the result would be zero bits anyway: types without numbers can grow then.
  if (rule == Rule::zero || (rule == Rule::rest && resting_potential(region) == 0)) return {};
  if (!holds_numbers(tensor.dtype())) {
    if (!is_small_float(tensor.dtype())) return {};  // truth values, packed codes
    throw UsageError(ErrorCode::dtype_mismatch, "new elements need an element type of numbers",
                     {.field = "dtype",
                      .region = printable(region_name),
                      .tensor = printable(path),
                      .value = std::string(dtype_name(tensor.dtype())),
                      .bound = "f64, f32, f16, bf16 or an integer of whole bytes"});
  }
  if (rule == Rule::weights) return random_weights(options, region_name, path, shape);
  return constant_fill(rule == Rule::rest ? resting_potential(region) : mean_of(tensor));
}

ElementFill connection_fill(std::string_view name, const Tensor& weights, const Shape& shape,
                            const GrowthOptions& options) {
  return fill_of(name, BrainRegion{}, component::kWeights, weights, shape, options);
}

}  // namespace thalia::state
