// The two block formats in .entity files of transformers: Q4_0 and BitNet's packed ternary.
// docs/format/loom.md, "Blocks".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/options.h"

namespace thalia {

/// Blocks of 32 weights with one f32 scale each, the greatest weight over 7. @throws UsageError
/// (bad_argument) for more than 2^32 - 1 blocks or words.
std::vector<std::byte> encode_loom_q4_0(std::span<const float> weights);
/// Blocks of a blob. @throws FormatError (truncated, inconsistent).
std::uint64_t loom_q4_0_blocks(ByteSpan blob);
/// The weights of all blocks, 32 each, or the first `count` of them; what was padded is 0.
/// @throws FormatError (truncated, inconsistent, limit_exceeded); UsageError (size_mismatch) for a
/// count of more than there are.
std::vector<float> decode_loom_q4_0(ByteSpan blob, std::optional<std::uint64_t> count = {},
                                    const ReadLimits& limits = {});

/// A matrix of -1, 0 and +1 with one scale.
struct LoomBitNet {
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  std::uint32_t offset = 0;  ///< of its weights among the f32 weights of the layer
  float scale = 0;
};
/// @param values rows x cols of -1, 0 and 1, row-major. @throws UsageError (size_mismatch,
/// bad_argument).
std::vector<std::byte> encode_loom_bitnet(const LoomBitNet& matrix,
                                          std::span<const std::int8_t> values);
/// @throws FormatError (truncated, inconsistent).
LoomBitNet loom_bitnet_facts(ByteSpan blob);
/// rows x cols weights, row-major: values times scale. @throws FormatError (truncated,
/// inconsistent, bad_value, limit_exceeded).
std::vector<float> decode_loom_bitnet(ByteSpan blob, const ReadLimits& limits = {});

}  // namespace thalia
