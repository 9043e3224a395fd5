// The settings of a layer in the order in which files have them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "thalia/formats/loom_network.h"

namespace thalia::formats::loom {

using LayerMember = std::variant<std::int64_t LoomLayer::*, double LoomLayer::*, bool LoomLayer::*,
                                 std::string LoomLayer::*>;
struct LayerField {
  std::string_view key;
  LayerMember member;
  bool in_architecture = true;  ///< architecture-only texts have it, too
};

/// Before "softmax_type".
inline constexpr std::array kFieldsBeforeSoftmax{
    LayerField{"input_height", &LoomLayer::input_height},
    LayerField{"input_width", &LoomLayer::input_width},
    LayerField{"input_depth", &LoomLayer::input_depth},
    LayerField{"output_height", &LoomLayer::output_height},
    LayerField{"output_width", &LoomLayer::output_width},
    LayerField{"output_depth", &LoomLayer::output_depth},
    LayerField{"input_channels", &LoomLayer::input_channels},
    LayerField{"filters", &LoomLayer::filters},
    LayerField{"kernel_size", &LoomLayer::kernel_size},
    LayerField{"stride", &LoomLayer::stride},
    LayerField{"padding", &LoomLayer::padding},
    LayerField{"output_padding", &LoomLayer::output_padding, false},
    LayerField{"num_heads", &LoomLayer::num_heads},
    LayerField{"num_kv_heads", &LoomLayer::num_kv_heads},
    LayerField{"head_dim", &LoomLayer::head_dim, false},
    LayerField{"query_dim", &LoomLayer::query_dim, false},
    LayerField{"d_model", &LoomLayer::d_model},
    LayerField{"seq_length", &LoomLayer::seq_length},
    LayerField{"rope_freq_base", &LoomLayer::rope_freq_base, false},
    LayerField{"vocab_size", &LoomLayer::vocab_size},
    LayerField{"embedding_dim", &LoomLayer::embedding_dim},
    LayerField{"num_clusters", &LoomLayer::num_clusters},
    LayerField{"kmeans_temperature", &LoomLayer::kmeans_temperature, false},
    LayerField{"output_mode", &LoomLayer::output_mode}};
/// After it, before "weights".
inline constexpr std::array kFieldsBeforeWeights{
    LayerField{"temperature", &LoomLayer::temperature},
    LayerField{"softmax_rows", &LoomLayer::softmax_rows},
    LayerField{"softmax_cols", &LoomLayer::softmax_cols},
    LayerField{"entmax_alpha", &LoomLayer::entmax_alpha},
    LayerField{"gumbel_noise", &LoomLayer::gumbel_noise, false}};
/// After "sequential_layers".
inline constexpr std::array kFieldsBehindLayers{
    LayerField{"use_tiling", &LoomLayer::use_tiling},
    LayerField{"tile_size", &LoomLayer::tile_size},
    LayerField{"is_disabled", &LoomLayer::is_disabled, false}};

}  // namespace thalia::formats::loom
