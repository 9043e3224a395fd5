// Which tensors of a state are quantized, and what becomes of them together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "state/precision/glob.h"
#include "state/quantize/payload.h"
#include "thalia/state/quantization.h"
#include "thalia/state/value.h"

namespace thalia::state {

inline constexpr std::string_view kLossyGeneration = "lossy_generation";
inline constexpr std::string_view kMaxLossyGenerations = "max_lossy_generations";

/// What the metadata of a state says; zeros if it says nothing.
LossyGeneration lossy_generation_of(const Value& metadata) noexcept;
void set_lossy_generation(Value& metadata, LossyGeneration generation);

/// The generation after one more loss. The lower of the recorded bound and `bound` counts. @throws
/// UsageError (wrong_state) if the generation would pass it.
LossyGeneration next_generation(LossyGeneration before, std::optional<std::uint16_t> bound);

inline TensorNames names_of(const QuantizationTarget& target) noexcept {
  return {.path = target.path, .region = target.region, .name = target.name};
}

/// True if a tensor has a type that can be rounded so, is large enough, and is named: it fits one
/// of `include` (if there are none, its role, or its name, says that it is weights), and fits
/// none of `exclude`.
bool is_chosen(const QuantizationTarget& target, std::uint64_t min_elements,
               const std::vector<std::string>& include, const std::vector<std::string>& exclude);

/// Externally synchronised.
class Quantizer {
 public:
  /// `before` is the generation of the state that is to be quantized. @throws UsageError as
  /// check_quantization(); (wrong_state) if the state went through its bound of generations.
  Quantizer(const QuantizationOptions& options, LossyGeneration before, unsigned threads);

  /// True if the tensor is to be quantized, by name, role, type and size. Its encoding has to be
  /// dense besides.
  bool chooses(const QuantizationTarget& target) const;
  /// The payload of a dense tensor that was chosen; nullopt if it has to stay as it is.
  /// @throws UsageError for sensitivities that do not fit.
  std::optional<QuantizedPayload> quantize(const QuantizationTarget& target, const Tensor& tensor);

  /// The generation of what is quantized here.
  LossyGeneration generation() const noexcept { return generation_; }
  const std::vector<QuantizedTensorReport>& reports() const noexcept { return reports_; }
  const std::vector<std::string>& not_finite() const noexcept { return not_finite_; }

 private:
  std::vector<double> importance_of(const QuantizationTarget& target) const;

  const QuantizationOptions& options_;
  LossyGeneration generation_;
  unsigned threads_;
  std::vector<QuantizedTensorReport> reports_;
  std::vector<std::string> not_finite_;
};

}  // namespace thalia::state
