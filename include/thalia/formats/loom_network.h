// What a file of the original loom program describes: a grid of layers, their settings, and their
// weights as they are stored. docs/format/loom.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/formats/loom_dtype.h"
#include "thalia/options.h"
#include "thalia/storage.h"

namespace thalia {

/// Values are the original's.
enum class LoomLayerType : std::uint8_t {
  dense = 0,
  multi_head_attention = 1,
  swiglu = 2,
  rms_norm = 3,
  cnn1 = 4,
  cnn2 = 5,
  cnn3 = 6,
  rnn = 7,
  lstm = 8,
  layer_norm = 9,
  conv_transposed_1d = 10,
  conv_transposed_2d = 11,
  conv_transposed_3d = 12,
  embedding = 13,
  kmeans = 14,
  softmax = 15,
  parallel = 16,
  sequential = 17,
  residual = 18,
  metacognition = 19,
};
inline constexpr std::uint8_t kLoomLayerTypeCount = 20;

enum class LoomActivation : std::int8_t {
  linear = -1,
  relu = 0,
  silu = 1,
  gelu = 2,
  tanh = 3,
  sigmoid = 4,
  leaky_relu = 5,
  relu2 = 6,
};

enum class LoomSoftmax : std::uint8_t {
  standard = 0,
  grid = 1,
  hierarchical = 2,
  temperature = 3,
  gumbel = 4,
  masked = 5,
  sparse = 6,
  adaptive = 7,
  mixture = 8,
  entmax = 9,
};

/// Names in files: "MultiHeadAttention", "ReLU", "Standard". Static storage.
std::string_view loom_name(LoomLayerType type) noexcept;
std::string_view loom_name(LoomActivation activation) noexcept;
std::string_view loom_name(LoomSoftmax softmax) noexcept;
/// In any case and by the original's other names, "MHA"; what it does not know is Dense, Linear.
LoomLayerType parse_loom_layer_type(std::string_view name) noexcept;
LoomActivation parse_loom_activation(std::string_view name) noexcept;
/// As it is spelled; what the original does not know is Standard.
LoomSoftmax parse_loom_softmax(std::string_view name) noexcept;

/// The weights of a layer: packed, or f32 that are quantised when they are saved, or both.
struct LoomWeights {
  LoomDType dtype = LoomDType::float32;  ///< of `native`, or what `master` becomes
  float scale = 1;  ///< of exactly 1, and while there are only f32 weights: computed from these
  StoredBytes native{};  ///< packed
  /// Little-endian f32 at any address; empty if they are to be had from `native`.
  StoredBytes master{};

  bool has_native() const noexcept { return !native.bytes.empty() || master.bytes.empty(); }
};

/// A blob of a .entity file that belongs to a layer in addition to its weights or in place of them.
struct LoomComponent {
  std::string suffix;  ///< of its path: "q4_0.200", "bitnet_ternary.10000", "biases", "q_norm"
  std::string dtype;   ///< as the file says: "Q4_0", "BITNET_TERNARY", "float32"
  float scale = 0;
  bool native = false;
  StoredBytes bytes{};
};

struct LoomMetaRule {
  std::int64_t condition = 0;
  double threshold = 0;
  float command = 0;
  float param = 0;
  std::int64_t cooldown = 0;
  bool self_only = false;
};

/// Fields as in files; 0, false and empty are not written.
struct LoomLayer {
  std::int64_t z = 0, y = 0, x = 0, l = 0;
  LoomLayerType type = LoomLayerType::dense;
  LoomActivation activation = LoomActivation::linear;
  LoomDType dtype = LoomDType::float32;
  std::int64_t input_height = 0, input_width = 0, input_depth = 0;
  std::int64_t output_height = 0, output_width = 0, output_depth = 0;
  std::int64_t input_channels = 0, filters = 0, kernel_size = 0;
  std::int64_t stride = 0, padding = 0, output_padding = 0;
  std::int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0, query_dim = 0, d_model = 0;
  std::int64_t seq_length = 0;
  double rope_freq_base = 0;
  std::int64_t vocab_size = 0, embedding_dim = 0, num_clusters = 0;
  double kmeans_temperature = 0;
  std::string output_mode{};
  LoomSoftmax softmax_type = LoomSoftmax::standard;
  double temperature = 0;
  std::int64_t softmax_rows = 0, softmax_cols = 0;
  double entmax_alpha = 0;
  bool gumbel_noise = false;
  std::optional<LoomWeights> weights{};
  std::vector<LoomComponent> components{};  ///< of .entity files of transformers
  std::vector<LoomLayer> parallel_branches{};
  std::string combine_mode{};
  std::vector<LoomLayer> sequential_layers{};
  bool use_tiling = false;
  std::int64_t tile_size = 0;
  bool is_disabled = false;
  std::vector<LoomMetaRule> meta_rules{};
  std::vector<LoomLayer> meta_observed_layer{};  ///< none or one
};

struct LoomTransformerDims {
  std::int64_t num_layers = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0;
  std::int64_t query_dim = 0, kv_dim = 0;
  std::int64_t intermediate_size = 0;
  double rms_norm_eps = 0, rope_freq_base = 0;
  std::string activation{};
};

/// What a .entity file of a transformer has besides its layers.
struct LoomTransformer {
  std::string architecture{};  ///< "llama_style_decoder" or "unknown"
  std::int64_t hidden_size = 0, vocab_size = 0;
  bool lm_head_tied = false, has_final_norm = false;
  std::string weight_dtype{};
  std::optional<LoomTransformerDims> dims{};
  /// Little-endian f32 at any address; empty if there are none.
  StoredBytes embeddings{}, lm_head{}, final_norm{};
};

struct LoomNetwork {
  std::int64_t depth = 0, rows = 0, cols = 0, layers_per_cell = 0;
  /// All cells: layer l of cell (z, y, x) at ((z*rows + y)*cols + x)*layers_per_cell + l.
  std::vector<LoomLayer> layers{};
  std::optional<LoomTransformer> transformer{};
};

/// Weights that a layer of this geometry has; 0 for types without any. nullopt where a field is
/// negative, or they are 2^62 or more.
std::optional<std::uint64_t> loom_weight_count(const LoomLayer& layer) noexcept;
/// What the original fills in when it loads a layer: heads of attention, and a seq_length of 1.
void fill_loom_defaults(LoomLayer& layer) noexcept;
/// The f32 weights of a layer, from what it has: loom_weight_count() of them. Components do not
/// count. Empty for a layer without weights. @throws FormatError (inconsistent, limit_exceeded)
/// where its bytes are less.
std::vector<float> loom_master(const LoomLayer& layer, const ReadLimits& limits = {});
/// Weights of a layer for saving, quantised now. @throws UsageError (size_mismatch) unless as many
/// as loom_weight_count().
void set_loom_master(LoomLayer& layer, std::span<const float> master, float scale = 1);

/// A layer by its path in a file: "layers.0.parallel_branches.1"; nullptr if there is none.
const LoomLayer* find_loom_layer(const LoomNetwork& network, std::string_view path) noexcept;

/// The network that an architecture-only JSON text describes, with the original's defaults and
/// without weights, which the original makes up at random. @throws FormatError.
LoomNetwork build_loom_network(std::string_view json, const ReadLimits& limits = {});

}  // namespace thalia
