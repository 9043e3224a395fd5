// Chooses which tensors of a state are quantized and counts its lossy generations. Each time a
// state is rounded errors add up; the metadata says how often that happened and how often it may,
// and a bound that is recorded can be lowered but never raised. A state that reached it is refused.

#include "state/quantize/quantizer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "base/utf8.h"
#include "codec/float/conversion.h"
#include "codec/lossy/quantize.h"
#include "container/file/open_file.h"
#include "format/quantized.h"
#include "state/quantize/importance.h"
#include "thalia/types.h"

namespace thalia {
namespace {

[[noreturn]] void refuse(const char* option, std::string value, std::string bound) {
  fail_argument(ErrorCode::bad_argument, option, std::move(value), std::move(bound));
}

// 0 if the member is missing or is no number of 16 bits: metadata is the application's.
std::uint16_t small_number(const Value& metadata, std::string_view member) noexcept {
  const Value* value = metadata.find(member);
  if (value == nullptr || value->kind() != Value::Kind::number) return 0;
  const std::string& text = value->number_text();
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : std::uint16_t{0};
}

}  // namespace

std::optional<TensorQuantization> quantization_of(const TensorView& tensor) {
  const format::QuantizedSideData* side = detail::OpenFile::quantization_of(tensor);
  if (side == nullptr) return std::nullopt;
  TensorQuantization out{.bits = side->bits,
                         .group_size = side->group_size,
                         .max_error = std::bit_cast<double>(std::uint64_t{side->max_error}),
                         .rms_error = std::bit_cast<double>(std::uint64_t{side->rms_error}),
                         .lossy_generation = side->lossy_generation,
                         .max_lossy_generations = side->max_lossy_generations,
                         .content_hash = side->content_hash};
  if (tensor.element_count() != 0) {
    out.mean_bits = 8.0 * static_cast<double>(std::uint64_t{side->code_length}) /
                    static_cast<double>(tensor.element_count());
  }
  return out;
}

void check_quantization(const QuantizationOptions& options) {
  const bool whole = options.bits == std::floor(options.bits);
  const bool mixed = options.adaptive || options.sensitivity;
  if (!(options.bits >= 1 && options.bits <= codec::kMaxQuantizedBits) || (!whole && !mixed)) {
    refuse("bits", fmt::format("{}", options.bits), mixed ? "1 to 8" : "a whole number, 1 to 8");
  }
  // Multiples of 8 keep every group's codes at whole bytes. Widths by group need groups.
  if (options.group_size % 8 != 0 || options.group_size > format::kMaxQuantizedGroup ||
      (mixed && options.group_size == 0)) {
    refuse("group_size", std::to_string(options.group_size),
           fmt::format("{}a multiple of 8 of at most {}", mixed ? "" : "0, or ",
                       format::kMaxQuantizedGroup));
  }
  if (options.max_generations == std::uint16_t{0}) refuse("max_generations", "0", "1 or more");
}

namespace state {

LossyGeneration lossy_generation_of(const Value& metadata) noexcept {
  return {small_number(metadata, kLossyGeneration), small_number(metadata, kMaxLossyGenerations)};
}

void set_lossy_generation(Value& metadata, LossyGeneration generation) {
  metadata[kLossyGeneration] = generation.number;
  metadata[kMaxLossyGenerations] = generation.most;
}

LossyGeneration next_generation(LossyGeneration before, std::optional<std::uint16_t> bound) {
  constexpr std::uint16_t kMost = std::numeric_limits<std::uint16_t>::max();
  // A state that was never rounded has no bound yet.
  const std::uint16_t recorded = before.most == 0 ? kMost : before.most;
  const std::uint16_t asked =
      bound.value_or(before.most == 0 ? format::kDefaultLossyGenerations : before.most);
  const std::uint16_t most = std::min(recorded, asked);
  if (before.number >= most) {
    fail_argument(ErrorCode::wrong_state, kLossyGeneration,
                  std::to_string(std::uint32_t{before.number} + 1), fmt::format("at most {}", most),
                  "the state went through as many lossy encodings as it may");
  }
  return {static_cast<std::uint16_t>(before.number + 1), most};
}

bool is_chosen(const QuantizationTarget& target, std::uint64_t min_elements,
               const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
  if (!codec::is_convertible(target.dtype)) return false;
  if (target.shape.element_count().value_or(0) < min_elements) return false;
  const TensorNames names = names_of(target);
  const auto fits = [&](const std::string& glob) { return names.fit(glob); };
  // exclude has the last word, include overrides the role.
  if (std::any_of(exclude.begin(), exclude.end(), fits)) return false;
  if (!include.empty()) return std::any_of(include.begin(), include.end(), fits);
  return is_weights(likely_role(target.role, target.name, target.shape.rank()));
}

Quantizer::Quantizer(const QuantizationOptions& options, LossyGeneration before, unsigned threads)
    : options_(options), threads_(threads) {
  check_quantization(options);
  generation_ = next_generation(before, options.max_generations);
}

bool Quantizer::chooses(const QuantizationTarget& target) const {
  return is_chosen(target, options_.min_elements, options_.include, options_.exclude);
}

std::vector<double> Quantizer::importance_of(const QuantizationTarget& target) const {
  std::vector<double> importance;
  if (!options_.sensitivity) return importance;
  const std::optional<Tensor> given = options_.sensitivity(target);
  // No sensitivities for this tensor: all elements count alike.
  if (!given) return importance;
  try {
    return importance_from(*given, target.shape.element_count().value_or(0));
  } catch (Error& error) {
    error.add_region(printable(target.region));
    error.add_tensor(printable(target.name));
    throw;
  }
}

std::optional<QuantizedPayload> Quantizer::quantize(const QuantizationTarget& target,
                                                    const Tensor& tensor) {
  const std::vector<double> importance = importance_of(target);
  auto payload = quantize_payload(tensor.dtype(), tensor.shape(), tensor.bytes(), options_,
                                  importance, generation_, threads_);
  // Stays as it is, and the caller is told which tensor that was.
  if (!payload) {
    not_finite_.push_back(target.path);
    return payload;
  }
  payload->report.region = target.region;
  payload->report.name = target.name;
  reports_.push_back(payload->report);
  return payload;
}

}  // namespace state

}  // namespace thalia
