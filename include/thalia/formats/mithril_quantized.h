// Quantized tensors as the original mithril program stores them: one tensor a file, as a zstd frame
// of Rust's bincode. docs/format/mithril.md, "Quantized tensors".
//
//   const thalia::MithrilQuantized weights = thalia::open_mithril_quantized("w.zst");
//   const thalia::Tensor numbers = weights.dequantized();
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/shape.h"
#include "thalia/tensor_value.h"

namespace thalia {

/// Persistent: values are part of the format.
enum class MithrilMethod : std::uint32_t {
  int8_linear = 0,   ///< number = code * scale
  nf4 = 1,           ///< number = level[code] * the scale of its group
  int4 = 2,          ///< number = (code - zero point) * scale
  dynamic_int8 = 3,  ///< as int8_linear; the original writes that one's number instead
};
/// "int8_linear", …
std::string_view mithril_method_name(MithrilMethod method) noexcept;

/// What decode_mithril_quantized() returns fits together: as many codes, scales and zero points as
/// shape and method ask for.
struct MithrilQuantized {
  MithrilMethod method = MithrilMethod::int8_linear;
  DType original_dtype = DType::f32;  ///< of the numbers before
  Shape shape{};
  /// Elements a scale is for, in nf4.
  std::optional<std::uint64_t> group_size{};
  /// In row-major order: i8 of both int8 methods, u4 of nf4 and int4.
  Tensor codes{};
  std::vector<float> scales{};  ///< one, or in nf4 one a group
  std::optional<std::vector<std::int8_t>> zero_points{};

  /// F32, whatever the original dtype: bit for bit what the original computes. Of int4 those are
  /// not the numbers that were quantized, unless 0 lies between their least and greatest: the
  /// original stores codes that count from the least number, and a zero point that is clamped.
  /// @throws FormatError (limit_exceeded) where they take more than `limits` allow for the bytes of
  /// the codes; UsageError (bad_argument) for parts that do not fit together.
  Tensor dequantized(const ReadLimits& limits = {}) const;
};

/// @throws FormatError for what is no such frame, or does not fit together (truncated, bad_value,
/// inconsistent, limit_exceeded, bad_compression); UnsupportedError for a rank above 8.
MithrilQuantized decode_mithril_quantized(ByteSpan file, const ReadLimits& limits = {});
MithrilQuantized open_mithril_quantized(const std::filesystem::path& path,
                                        const ReadOptions& options = {});
/// The file's bytes: with the level that the original was called with, 3 by default, and the same
/// version of libzstd, the original's. @param level 1 to 22. @throws UsageError (bad_argument,
/// size_mismatch) for what does not fit together.
std::vector<std::byte> encode_mithril_quantized(const MithrilQuantized& tensor, int level = 3);
/// The level that the frame's window tells, as far as it does: 1, 2, 3, 9, 19, 20, 21 or 22. 3
/// where it tells nothing.
int mithril_quantized_level(ByteSpan file) noexcept;

}  // namespace thalia
