// What config.json says of a decoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/loom_network.h"

namespace thalia::formats::hugging_face {

/// Extents of this size multiply without passing 64 bits.
inline constexpr std::uint64_t kMaxExtent = (1u << 31) - 1;

struct DecoderConfig {
  std::uint64_t blocks = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0, inner = 0;
  LoomActivation activation = LoomActivation::silu;
  double rms_norm_eps = 0, rope_freq_base = 0;
  std::optional<bool> tied_head{};  ///< nullopt: it does not say
  std::vector<std::string> losses{};

  std::uint64_t query() const noexcept { return heads * head_dim; }
  std::uint64_t kv() const noexcept { return kv_heads * head_dim; }
};

/// @throws FormatError naming the member, for one that is missing or has a value that no network of
/// Loom has.
DecoderConfig read_config(std::string_view text, const ReadLimits& limits);

}  // namespace thalia::formats::hugging_face
