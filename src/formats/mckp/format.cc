// Bits of the method word (docs/format/mckp.md, "Methods"), and the names of dtypes.
// unpack_method() refuses unknown bits, and bits that contradict each other or the dtype, rather
// than guess.
#include "formats/mckp/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/fail.h"
#include "codec/lossy/code_packing.h"
#include "codec/step/step_kind.h"
#include "format/payload.h"
#include "formats/source/dtype_names.h"

namespace thalia::formats {
namespace {

// The method word: codec, flags, and the plane width in bits 16 to 19.
constexpr std::uint32_t kCodecMask = 0xff;
constexpr std::uint32_t kDelta = 1 << 8;
constexpr std::uint32_t kGrouped = 1 << 9;
constexpr std::uint32_t kQuantized = 1 << 10;
constexpr std::uint32_t kSparse = 1 << 11;
constexpr std::uint32_t kLowRank = 1 << 12;
constexpr std::uint32_t kSteps = 1 << 13;
constexpr unsigned kWidthShift = 16;
constexpr std::uint32_t kWidthMask = 0xf << kWidthShift;
constexpr std::uint32_t kKnown =
    kCodecMask | kDelta | kGrouped | kQuantized | kSparse | kLowRank | kSteps | kWidthMask;

[[noreturn]] void fail_method(std::uint32_t bits, std::string bound, std::string message) {
  throw FormatError(
      ErrorCode::inconsistent, std::move(message),
      {.field = "method", .value = fmt::format("{:#x}", bits), .bound = std::move(bound)});
}

char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

template <typename T>
void append_record(std::string& out, const T& structure) {
  out.append(reinterpret_cast<const char*>(&structure), sizeof(structure));
}

}  // namespace

std::uint32_t pack_method(const MckpMethod& method) noexcept {
  std::uint32_t bits = format::code_of(method.codec);
  if (method.delta) bits |= kDelta;
  if (method.plane_width != 0) bits |= kGrouped | method.plane_width << kWidthShift;
  if (method.quantized) bits |= kQuantized;
  if (method.sparse) bits |= kSparse;
  if (method.low_rank) bits |= kLowRank;
  if (method.steps) bits |= kSteps;
  return bits;
}

MckpMethod unpack_method(std::uint32_t bits, DType dtype) {
  const std::uint32_t codec = bits & kCodecMask;
  // Perhaps a later version's, so not called damage.
  if ((bits & ~kKnown) != 0 || codec >= kCodecCount) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such method",
                           {.field = "method",
                            .value = fmt::format("{:#x}", bits),
                            .bound = "codecs 0 to 4, flags 0x3f00"});
  }
  MckpMethod method{.codec = static_cast<Codec>(codec),
                    .delta = (bits & kDelta) != 0,
                    .plane_width = (bits & kWidthMask) >> kWidthShift,
                    .quantized = (bits & kQuantized) != 0,
                    .sparse = (bits & kSparse) != 0,
                    .low_rank = (bits & kLowRank) != 0,
                    .steps = (bits & kSteps) != 0};
  const bool grouped = (bits & kGrouped) != 0;
  if (grouped != (method.plane_width != 0)) {
    fail_method(bits, "a plane width where bytes are grouped, and nowhere else", {});
  }
  if (grouped && method.plane_width != mckp_plane_width(dtype)) {
    fail_method(bits, fmt::format("a plane width of {}", mckp_plane_width(dtype)),
                fmt::format("bytes of {} grouped", dtype_name(dtype)));
  }
  // Codes are packed bits; neither has a meaning for them.
  if (method.quantized && (grouped || method.delta || method.sparse)) {
    fail_method(bits, "", "codes that are grouped, a delta or sparse");
  }
  if (method.quantized && !mckp_can_quantize(dtype)) {
    fail_method(bits, "f32, f16, bf16 or f64", fmt::format("{} quantized", dtype_name(dtype)));
  }
  if (method.low_rank && (!method.delta || method.codec != Codec::none || grouped ||
                          method.quantized || method.sparse)) {
    fail_method(bits, "a delta with no codec, and nothing else", "of low rank");
  }
  if (method.low_rank && !mckp_can_quantize(dtype)) {
    fail_method(bits, "f32, f16, bf16 or f64", fmt::format("{} of low rank", dtype_name(dtype)));
  }
  if (method.steps && (!method.delta || method.codec != Codec::none || grouped ||
                       method.quantized || method.sparse || method.low_rank)) {
    fail_method(bits, "a delta with no codec, and nothing else", "of steps");
  }
  if (method.steps && !codec::step_kind(dtype)) {
    fail_method(bits, "floats or integers of 8 or 16 bits",
                fmt::format("{} as steps", dtype_name(dtype)));
  }
  if (grouped && method.codec != Codec::none && method.codec != Codec::zstd &&
      method.codec != Codec::lz4) {
    fail_method(bits, "", "grouped bytes of a codec that groups by itself");
  }
  return method;
}

unsigned mckp_plane_width(DType dtype) noexcept {
  return mckp_can_quantize(dtype) ? dtype_bits(dtype) / 8 : 0;
}

bool mckp_can_quantize(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f64;
}

std::string mckp_dtype_name(DType dtype) {
  // Names that safetensors has come first, so that other programs can read them.
  std::string name(safetensors_dtype_name(dtype));
  if (!name.empty()) return name;
  name = dtype_name(dtype);
  std::transform(name.begin(), name.end(), name.begin(), upper);
  return name;
}

std::optional<DType> mckp_dtype_from_name(std::string_view name) {
  if (const auto dtype = safetensors_dtype_from_name(name)) return dtype;
  for (unsigned i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (mckp_dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

unsigned mckp_code_bits(unsigned bits) noexcept {
  // Other widths would put a code across two bytes.
  return bits == 1 || bits == 2 || bits == 4 ? bits : 8;
}

std::uint64_t mckp_codes_length(std::uint64_t count, unsigned bits) noexcept {
  return codec::packed_bytes(count, mckp_code_bits(bits));
}

std::uint64_t mckp_coded_length(const MckpTensor& tensor) noexcept {
  if (tensor.method.low_rank || tensor.method.steps) return tensor.compressed_size;
  if (!tensor.method.quantized) return tensor.original_size;
  return mckp_codes_length(tensor.original_size / (dtype_bits(tensor.dtype) / 8),
                           tensor.quantization->bits);
}

std::uint64_t mckp_values_begin(const MckpTensor& tensor) noexcept {
  return tensor.sparse ? format::sparse_parts(tensor.layout())->values.offset : 0;
}

void check_mckp_indices(const Tensor& tensor) {
  if (tensor.is_dense()) return;
  if (tensor.encoding() == Encoding::csr) {
    static_cast<void>(tensor.csr());
  } else {
    static_cast<void>(tensor.coo());
  }
  const format::SparseParts parts = *format::sparse_parts(tensor.layout());
  const std::uint64_t end = parts.indices.offset + parts.indices.length;
  const ByteSpan padding = tensor.bytes().subspan(end, parts.values.offset - end);
  if (std::ranges::any_of(padding, [](std::byte byte) { return byte != std::byte{0}; }))
    throw FormatError(ErrorCode::bad_value, "padding that is not zero",
                      {.section = "payload", .field = "padding", .bound = "0"});
}

std::string_view mckp_digests_name(LeafAlgorithm digests) noexcept {
  return digests == LeafAlgorithm::sha256 ? "sha256" : "xxh3_128";
}

std::string mckp_block_header_bytes(const MckpTensor& tensor) {
  std::string bytes;
  append_record(bytes, format::le32(static_cast<std::uint32_t>(tensor.name.size())));
  bytes += tensor.name;
  append_record(bytes, MckpBlockSizes{.compressed_size = tensor.compressed_size,
                                      .original_size = tensor.original_size,
                                      .method = pack_method(tensor.method)});
  return bytes;
}

}  // namespace thalia::formats
