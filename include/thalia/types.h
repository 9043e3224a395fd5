// What everything else is made of: bytes, element types, shapes, layouts, roles, and what tells
// files apart.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace thalia {

// Byte spans: how payloads enter and leave the library. Nothing here owns memory.

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

/// The bytes of a contiguous sequence of trivially copyable elements. Valid as long as the
/// sequence.
template <typename Range>
ByteSpan as_byte_span(const Range& range) {
  using Element = std::remove_cvref_t<decltype(*std::data(range))>;
  static_assert(std::is_trivially_copyable_v<Element>);
  return std::as_bytes(std::span<const Element>(std::data(range), std::size(range)));
}

/// A 128-bit digest in canonical (big-endian) byte order, as it is in a file.
struct Digest128 {
  std::uint8_t bytes[16] = {};
  friend bool operator==(const Digest128&, const Digest128&) = default;
};

/// A 256-bit digest (SHA-256) in the byte order in which it is printed.
struct Digest256 {
  std::uint8_t bytes[32] = {};
  friend bool operator==(const Digest256&, const Digest256&) = default;
};

/// A UUID of RFC 9562: its bytes in the order in which they are printed.
using Uuid = std::array<std::uint8_t, 16>;

// Element types. Codes and bit layouts: docs/format/format.md, "Element types".

/// Persistent: values are part of the format.
enum class DType : std::uint8_t {
  f32 = 0,
  f16 = 1,
  i8 = 2,
  f64 = 3,
  bf16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  u8 = 8,
  u16 = 9,
  u32 = 10,
  u64 = 11,
  boolean = 12,  ///< spelled "bool" everywhere but in C++
  f8_e4m3 = 13,
  f8_e5m2 = 14,
  f8_e8m0 = 15,
  f8_e4m3fnuz = 16,
  f8_e5m2fnuz = 17,
  f6_e2m3 = 18,
  f6_e3m2 = 19,
  f4_e2m1 = 20,
  i4 = 21,
  u4 = 22,
  i2 = 23,
  u2 = 24,
  ternary = 25,
  binary = 26,
  c64 = 27,
  c128 = 28,
};
inline constexpr std::uint8_t kDTypeCount = 29;

/// "f32", "bf16", "bool", …: the name in docs/format/format.md, in JSON and on the command line.
/// Static storage.
std::string_view dtype_name(DType dtype) noexcept;
std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Bits an element occupies: 1, 2, 4, 6, 8, 16, 32, 64 or 128.
unsigned dtype_bits(DType dtype) noexcept;
/// Bytes to which an element, or one half of a complex one, is aligned in memory: 1, 2, 4 or 8.
unsigned dtype_alignment(DType dtype) noexcept;
/// True for elements that are not whole bytes; those are packed, least significant bit first.
inline bool dtype_is_packed(DType dtype) noexcept {
  return dtype_bits(dtype) % 8 != 0;
}

/// True for elements with a real and an imaginary part.
constexpr bool dtype_is_complex(DType dtype) noexcept {
  return dtype == DType::c64 || dtype == DType::c128;
}

/// An IEEE 754 binary16 value as its bits, for typed access; arithmetic is the caller's.
struct Float16 {
  std::uint16_t bits;
};
/// A bfloat16 value as its bits.
struct BFloat16 {
  std::uint16_t bits;
};

/// The dtype that typed access through T asks for. Defined for the types below only.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::c64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::c128;
};

// Shapes of up to eight dimensions, held by value: no allocation.

/// Extents of a tensor, outermost first; rank 0 is a scalar with one element, an extent of 0 an
/// empty tensor.
class Shape {
 public:
  static constexpr unsigned kMaxRank = 8;

  Shape() = default;
  /// @throws UsageError (bad_argument) above kMaxRank dimensions.
  Shape(std::initializer_list<std::uint64_t> extents);
  explicit Shape(std::span<const std::uint64_t> extents);

  unsigned rank() const noexcept { return rank_; }
  std::uint64_t operator[](unsigned dimension) const noexcept { return extents_[dimension]; }
  std::span<const std::uint64_t> extents() const noexcept { return {extents_.data(), rank_}; }
  /// Product of the extents; nullopt where it passes 2^64 - 1.
  std::optional<std::uint64_t> element_count() const noexcept;
  /// Bytes of a dense tensor of this shape, packed types rounded up to a byte; nullopt on overflow.
  std::optional<std::uint64_t> byte_length(DType dtype) const noexcept;
  /// "[3, 4]", "[]".
  std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::uint64_t, kMaxRank> extents_{};
  unsigned rank_ = 0;
};

// TensorLayout: what tells how a tensor's bytes are to be read, and what they are for.
// docs/format/format.md, "Payloads".

/// Persistent: values are part of the format.
enum class Role : std::uint8_t {
  weights = 0,
  homeostatic = 1,
  region_state = 2,
  learning_state = 3,
  oscillator = 4,
  neuromodulator = 5,
  optimizer = 6,
  buffer = 7,
  other = 8,
  bias = 9,
  normalization = 10,
  embedding = 11,
};
inline constexpr std::uint8_t kRoleCount = 12;

/// Persistent: values are part of the format.
enum class Encoding : std::uint8_t {
  dense = 0,
  csr = 1,
  coo = 2,
  quantized = 3,
  same_as_base = 4,
  xor_base = 5,
  sparse_delta = 6,
  low_rank_delta = 7,
  step_delta = 8,
};
inline constexpr std::uint8_t kEncodingCount = 9;

/// True of csr and coo: index arrays say where the stored elements are.
constexpr bool is_sparse(Encoding encoding) noexcept {
  return encoding == Encoding::csr || encoding == Encoding::coo;
}

/// The one place that declares these five; what needs them holds a layout or is made of one.
struct TensorLayout {
  DType dtype = DType::f32;
  Shape shape{};
  Encoding encoding = Encoding::dense;  ///< dense, csr (rank 2) or coo (rank 1 and up)
  std::uint64_t nnz = 0;                ///< stored elements of csr and coo
  bool wide_indices = false;            ///< csr and coo: indices are u64, else u32

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

// What kind of neurons a region has. docs/format/format.md, "Region".

/// Persistent: values are part of the format. `none` marks a region that is no spiking population
/// (a layer of a converted model).
enum class NeuronType : std::uint32_t { lif = 0, conductance_lif = 1, none = 2 };

// What a tensor is for, by its name alone: for files that do not say. docs/format/states.md, "Roles
// of names".
//
//   thalia::role_of_name("model.layers.0.input_layernorm.weight", 1);  // normalization

/// The role of a tensor of this name and rank, as PyTorch, JAX and their optimizers name them;
/// weights where the name tells nothing else. Dots and slashes part the name.
Role role_of_name(std::string_view name, unsigned rank);

/// The role; or, of role weights, what the name tells: programs that know no roles write weights.
/// Whatever rounds tensors without naming them uses this.
Role likely_role(Role role, std::string_view name, unsigned rank);

/// True of weights and embeddings: matrices that are learned, and may be rounded where a command
/// asks for it. Biases and normalizations are too small to be worth it and cost more when they are.
constexpr bool is_weights(Role role) noexcept {
  return role == Role::weights || role == Role::embedding;
}

// Single elements of any type, as C++ has them. docs/format/format.md, "Element types".

/// One element, exactly: every floating-point dtype but f64 and c128 fits float. i2 to i64 and
/// ternary are signed, u2 to u64 unsigned; binary is -1 or 1, signed.
using Element = std::variant<float, double, std::int64_t, std::uint64_t, bool, std::complex<float>,
                             std::complex<double>>;

/// Element `index` of row-major logical bytes; packed dtypes are one bit stream, least significant
/// bit first. The element must lie inside the span. @throws UnsupportedError for a dtype that is
/// not one.
Element decode_element(DType dtype, ByteSpan bytes, std::uint64_t index);

/// Elements under a name, row by row, whose bytes are another's.
struct NamedArray {
  std::string name{};
  DType dtype = DType::f32;
  Shape shape{};
  ByteSpan bytes{};
};

/// What the index of a file says of an array in it.
struct ArrayEntry {
  std::string name{};
  DType dtype = DType::f32;
  Shape shape{};
  std::uint64_t offset = 0;  ///< of its bytes, from the start of the file
};

/// What a header says of the state in the file.
struct FileTotals {
  std::uint64_t timestamp = 0;  ///< seconds since 1970
  std::uint64_t total_neurons = 0;
  std::uint64_t total_synapses = 0;
  std::uint64_t training_steps = 0;

  friend bool operator==(const FileTotals&, const FileTotals&) = default;
};

// What tells a .thalia file from every other: what a delta names its base by.

/// As the save that wrote the file knows it, and the file's header says.
struct FileIdentity {
  Digest256 closing_checksum;
  Uuid file_uuid{};
  std::uint64_t generation = 0;   ///< 1 or more; 0 is no file's
  std::uint64_t file_length = 0;  ///< in bytes; for a delta, of its container
  std::uint64_t training_steps = 0;
  unsigned depth = 0;  ///< deltas from here down to a full file
};

/// The digests of a tensor's logical bytes. docs/format/format.md, "CRC-32" and "Content hash".
struct TensorDigest {
  std::uint32_t crc32 = 0;  ///< 0 where it is not known: a delta need not state it
  Digest128 content_hash;
};

// What the codecs are given, for who builds a codec of his own: bytes of equal significance side by
// side, and differences to other bytes.
//
//   std::vector<std::byte> planes(weights.size());
//   thalia::group_bytes(2, weights, planes);  // bf16: all low bytes, then all high ones
//
// docs/format/format.md, "Chunks"; docs/format/deltas.md, "xor_base".

/// Byte k of little-endian word i goes to grouped[k * n + i], with n = bytes.size() / width; bytes
/// after the last whole word keep their place. Spans may begin at any address, and do not overlap.
/// @param width of a word: 2, 4 or 8 bytes. @throws UsageError (bad_argument) for another width,
/// (size_mismatch) unless both spans have the same size.
void group_bytes(std::size_t width, ByteSpan bytes, MutableByteSpan grouped);
/// The inverse of group_bytes().
void ungroup_bytes(std::size_t width, ByteSpan grouped, MutableByteSpan bytes);

/// bytes ^= other, byte by byte: the difference to a base, and with the same base the bytes again.
/// What did not change becomes zeros. @throws UsageError (size_mismatch) unless both have the same
/// size.
void xor_bytes(MutableByteSpan bytes, ByteSpan other);

}  // namespace thalia
