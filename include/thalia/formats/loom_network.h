// The 21 element types of the original loom program, as its files pack them, and what it makes of
// f32 weights: Morph and Unpack.
//
//   const std::vector<float> master = {0.5f, -0.25f, 0.1f};
//   const thalia::LoomNative native = thalia::morph_loom_weights(thalia::LoomDType::int4, master);
//   const std::vector<float> back = thalia::unpack_loom_weights(
//       thalia::LoomDType::int4, native.packed, native.scale, master.size());
//
// Everything here is a function of its arguments; any number of threads. docs/format/loom.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/options.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

/// Persistent: values are the original's.
enum class LoomDType : std::uint8_t {
  float64 = 0,
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  fp8e4m3 = 4,
  fp8e5m2 = 5,
  int64 = 6,
  int32 = 7,
  int16 = 8,
  int8 = 9,
  uint64 = 10,
  uint32 = 11,
  uint16 = 12,
  uint8 = 13,
  int4 = 14,
  uint4 = 15,
  fp4 = 16,
  int2 = 17,
  uint2 = 18,
  ternary = 19,
  binary = 20,
};
inline constexpr std::uint8_t kLoomDTypeCount = 21;

/// The name in files, always lower case: "fp8e4m3". Static storage.
std::string_view loom_dtype_name(LoomDType dtype) noexcept;
/// By any of the original's names, in any case: "FP8", "i8". nullopt: it has no such name.
std::optional<LoomDType> loom_dtype_from_name(std::string_view name) noexcept;
/// The same as the original reads it: a name that it does not know is float32.
LoomDType parse_loom_dtype(std::string_view name) noexcept;

unsigned loom_dtype_bits(LoomDType dtype) noexcept;
/// Bytes of an element once it is decoded: 8, 4 or 2, and 1 for all types of up to 8 bits.
unsigned loom_element_bytes(LoomDType dtype) noexcept;
/// Bytes of `count` packed elements; nullopt where they pass 2^64 - 1.
std::optional<std::uint64_t> loom_packed_bytes(LoomDType dtype, std::uint64_t count) noexcept;
/// Elements in packed bytes. Types of less than a byte fill their last byte, whatever was packed;
/// for other types, a part of an element at the end does not count.
std::uint64_t loom_element_count(LoomDType dtype, std::uint64_t packed_bytes) noexcept;
/// The type of this library whose bytes and meaning are the same. nullopt for fp8, which has values
/// of its own, and for types of less than a byte, which begin at the other end of it.
std::optional<DType> loom_dtype_as_thalia(LoomDType dtype) noexcept;

/// What a file holds of elements. `elements`: little endian, loom_element_bytes() each; those of
/// less than a byte as int8 or uint8, binary as +1 and -1. 4 bits: the first element in the high
/// half of a byte; 2 bits and 1 bit: the first in the highest. What is unused at the end is 0; so
/// is a bit of binary for an element that is not positive.
std::vector<std::byte> encode_loom_weights(LoomDType dtype, ByteSpan elements);
/// The inverse: loom_element_count() elements. Encoding these again gives the same whole elements.
std::vector<std::byte> decode_loom_weights(LoomDType dtype, ByteSpan packed);

struct LoomNative {
  std::vector<std::byte> packed;
  float scale = 1;
};
/// Quantises as the original does ("Morph"). A scale of exactly 1 counts as none: it is computed
/// from the weights then. float32 takes the weights and the scale as they are. Casts of what does
/// not fit are those of amd64.
LoomNative morph_loom_weights(LoomDType dtype, std::span<const float> master, float scale = 1);
/// The scale that Morph computes.
float loom_auto_scale(LoomDType dtype, std::span<const float> master) noexcept;

/// The f32 weights that packed bytes stand for ("Unpack"): the first `count` of them. @throws
/// UsageError (size_mismatch) if there are less.
std::vector<float> unpack_loom_weights(LoomDType dtype, ByteSpan packed, float scale,
                                       std::uint64_t count);

/// Single elements. The encoders cut mantissas off, and have no subnormal numbers.
std::uint8_t loom_fp8e4m3_from_float(float value) noexcept;
std::uint8_t loom_fp8e5m2_from_float(float value) noexcept;
std::uint16_t loom_float16_from_float(float value) noexcept;
std::uint16_t loom_bfloat16_from_float(float value) noexcept;
std::uint8_t loom_fp4_from_float(float value) noexcept;
float loom_fp8e4m3_to_float(std::uint8_t code) noexcept;
float loom_fp8e5m2_to_float(std::uint8_t code) noexcept;
float loom_float16_to_float(std::uint16_t code) noexcept;
float loom_bfloat16_to_float(std::uint16_t code) noexcept;
/// Uses the low four bits.
float loom_fp4_to_float(std::uint8_t code) noexcept;

// What a file of the original loom program describes: a grid of layers, their settings, and their
// weights as they are stored. docs/format/loom.md.

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
