// GGUF files, the format of ggml and llama.cpp: a mapped reader, a crash-safe writer, and blocks of
// quantized elements as numbers. docs/format/gguf.md.
//
//   const thalia::GgufFile file = thalia::GgufFile::open("model.gguf");
//   const thalia::GgufTensor& w = file.tensor("blk.0.attn_q.weight");
//   const thalia::Tensor blocks = file.read(w.name);         // in the mapping, as stored
//   const thalia::Tensor numbers = file.dequantize(w.name);  // f32
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

/// Element types of ggml, with the numbers that are in files. Types that ggml has removed (4, 5,
/// 31 to 33, 36 to 38) are missing.
enum class GgmlType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

struct GgmlTypeFacts {
  GgmlType type{};
  std::string_view name{};           ///< as ggml and its tools spell it: "Q4_K"
  std::uint32_t block_elements = 1;  ///< successive elements of a row that are stored together
  std::uint32_t block_bytes = 0;
  std::optional<DType> dtype{};  ///< of a type whose elements are stored one by one
  bool dequantizes = false;      ///< whether dequantize_ggml() knows it
};

/// All types, by their numbers. Static storage.
std::span<const GgmlTypeFacts> ggml_types() noexcept;
/// nullptr for a number or a name that is no type.
const GgmlTypeFacts* ggml_type_facts(GgmlType type) noexcept;
const GgmlTypeFacts* ggml_type_from_name(std::string_view name) noexcept;
/// The type whose elements are stored as `dtype` has them. nullopt: ggml has none.
std::optional<GgmlType> ggml_type_of(DType dtype) noexcept;

/// Bytes of elements of this shape. nullopt where rows are no whole blocks, or past 2^64 - 1.
std::optional<std::uint64_t> ggml_bytes(GgmlType type, const Shape& shape) noexcept;

/// Blocks as numbers, rounded as the Python package gguf (0.19) rounds them: equal bits, but for
/// what is in a NaN. Blocks are shared among `threads`, 0: one a core. The blocks need no
/// alignment. @throws UnsupportedError for a type whose blocks it cannot restore; UsageError
/// (size_mismatch) unless the blocks are whole and `out` has as many elements.
void dequantize_ggml(GgmlType type, ByteSpan blocks, std::span<float> out, unsigned threads = 0);

/// Elements of one of the types that an array can have.
using GgufArray =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                 std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                 std::vector<float>, std::vector<bool>, std::vector<std::string>,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;
/// The type of a value is that of the alternative. Texts are bytes: GGUF wants UTF-8, and files
/// break that.
using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                               std::uint32_t, std::int32_t, float, bool, std::string, std::uint64_t,
                               std::int64_t, double, GgufArray>;

/// "u32", "string", "string[]": the type of a value as messages and metadata spell it.
std::string gguf_type_name(const GgufValue& value);

struct GgufKeyValue {
  std::string key;  ///< UTF-8, not empty
  GgufValue value;
};
using GgufKeyValues = std::vector<GgufKeyValue>;

struct GgufTensor {
  std::string name;
  GgmlType type = GgmlType::f32;
  /// The extents in elements, outermost first: the reverse of the file's order.
  Shape shape;
  ByteSpan bytes;  ///< reading: in the mapping, valid as long as the file object; writing: borrowed
                   ///< until the save returns
  std::uint64_t offset = 0;  ///< reading: where the bytes are, from the start of the file
};

/// A mapped GGUF file, version 2 or 3, little-endian. A cheap handle; immutable; any number of
/// threads.
class GgufFile {
 public:
  /// Reads key/values and the list of tensors, and touches no element. @throws IoError; FormatError
  /// naming field, offset and bound; UnsupportedError for another version or byte order, a type of
  /// element that is not known, an array of arrays, more than 4 dimensions.
  /// With Access::copied the whole file is read into memory.
  static GgufFile open(const std::filesystem::path& path, const ReadOptions& options = {});
  /// The same of a file's bytes. `name` is for messages.
  static GgufFile from_bytes(StoredBytes bytes, std::string name = {},
                             const ReadLimits& limits = {});

  unsigned version() const noexcept;
  std::uint32_t alignment() const noexcept;          ///< of tensors, in bytes
  const GgufKeyValues& key_values() const noexcept;  ///< in the order of the file
  /// nullptr if there is no such key.
  const GgufValue* find(std::string_view key) const noexcept;
  const std::vector<GgufTensor>& tensors() const noexcept;  ///< in the order of the file
  /// @throws UsageError (not_found).
  const GgufTensor& tensor(std::string_view name) const;
  std::uint64_t file_bytes() const noexcept;
  /// Bytes between tensors and after the last one that the alignment does not ask for.
  std::uint64_t unused_bytes() const noexcept;

  /// A tensor as it is stored: elements, or blocks as u8 of shape [outer extents…, bytes of a row].
  /// In the mapping, which the tensor keeps open; a copy where its address does not suit its dtype.
  /// @throws UsageError (not_found); FormatError (limit_exceeded).
  Tensor read(std::string_view name) const;
  /// Its elements as f32 if they are stored in blocks, else read(). @throws as read();
  /// UnsupportedError for a type of block that dequantize_ggml() lacks.
  Tensor dequantize(std::string_view name, unsigned threads = 0) const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

struct GgufSaveOptions {
  /// Tensor names of 64 bytes and more, which ggml refuses.
  bool long_names = false;
  OutputOptions output{};
  Work work{};  ///< progress and the stop
};

/// Writes a file of version 3 atomically, byte for byte as the Python package gguf (0.19) does for
/// tensors and key/values in this order. The alignment is what the key/value `general.alignment`,
/// a u32, says, else 32. The `offset` of the tensors is ignored.
/// @throws IoError; UsageError (duplicate, size_mismatch, bad_argument); UnsupportedError for a
/// name of 64 bytes or more, more than 4 dimensions, or an alignment above 1 MiB.
/// @return bytes of the file.
std::uint64_t save_gguf(const std::filesystem::path& path, const std::vector<GgufTensor>& tensors,
                        const GgufKeyValues& key_values, const GgufSaveOptions& options = {});

}  // namespace thalia
