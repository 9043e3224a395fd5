// A tensor's elements as the payload of a quantized one. docs/format/format.md, "quantized".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/quantized.h"
#include "thalia/state/quantization.h"

namespace thalia::state {

struct QuantizedPayload {
  format::QuantizedSideData side;
  std::vector<std::byte> bytes;  ///< the arrays
  QuantizedTensorReport report;  ///< but for region and name
};

/// How often a state went through a lossy encoding, and how often it may.
struct LossyGeneration {
  std::uint16_t number = 0;
  std::uint16_t most = 0;
};

/// Quantizes the elements of a dense tensor as `options` say, which are checked; `importance` is
/// what a squared error counts, one an element, or empty. nullopt if a number is NaN or
/// infinite, or numbers lie too far apart.
std::optional<QuantizedPayload> quantize_payload(DType dtype, const Shape& shape, ByteSpan dense,
                                                 const QuantizationOptions& options,
                                                 std::span<const double> importance,
                                                 LossyGeneration generation, unsigned threads);

}  // namespace thalia::state
