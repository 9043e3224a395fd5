// The fixed parts of an MCKP file. docs/format/mckp.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/little_endian.h"
#include "thalia/formats/mckp.h"

namespace thalia::formats {

inline constexpr std::string_view kMckpMagic = "MCKP";
inline constexpr std::uint32_t kMckpVersion = 1;

inline constexpr std::uint32_t kMckpFlagDelta = 1 << 0;
inline constexpr std::uint32_t kMckpFlagGrouped = 1 << 1;
inline constexpr std::uint32_t kMckpFlagQuantized = 1 << 2;
inline constexpr std::uint32_t kMckpFlagSparse = 1 << 3;
inline constexpr std::uint32_t kMckpFlagLowRank = 1 << 4;
inline constexpr std::uint32_t kMckpFlagSteps = 1 << 5;
inline constexpr std::uint32_t kMckpKnownFlags = 63;

struct MckpPrelude {
  char magic[4];
  format::le32 version;
  format::le32 flags;
  format::le32 header_length;
};
static_assert(sizeof(MckpPrelude) == 16);

struct MckpFooter {
  format::le64 checksum;
  format::le64 total_compressed_size;
};
static_assert(sizeof(MckpFooter) == 16);

/// A block's header: u32 length of the name, the name, then this.
struct MckpBlockSizes {
  format::le64 compressed_size;
  format::le64 original_size;
  format::le32 method;
};
inline constexpr std::uint64_t kMckpNameLength = 4;
inline constexpr std::uint64_t kMckpBlockSizes = 20;
static_assert(sizeof(MckpBlockSizes) == kMckpBlockSizes);

inline constexpr std::uint64_t kMckpMaxHeader = 256 << 20;  ///< of the JSON text, in bytes
inline constexpr std::uint32_t kMckpMaxName = 65535;
/// Bytes of each piece of a payload but the last, before compressing. The format asks for such
/// pieces in all codecs but store and zstd.
inline constexpr std::uint64_t kMckpPiece = 4 << 20;
inline constexpr unsigned kMckpMaxChain = 1024;

std::uint32_t pack_method(const MckpMethod& method) noexcept;
/// @throws UnsupportedError for bits that version 1 does not know, FormatError for those that
/// contradict each other or the dtype.
MckpMethod unpack_method(std::uint32_t bits, DType dtype);

/// Bytes of an element whose bytes can be grouped: 2, 4 or 8 for f16, bf16, f32 and f64, else 0.
unsigned mckp_plane_width(DType dtype) noexcept;
bool mckp_can_quantize(DType dtype) noexcept;

/// "F32", "BF16", …: the names of safetensors, and the same in capitals for what that lacks.
std::string mckp_dtype_name(DType dtype);
std::optional<DType> mckp_dtype_from_name(std::string_view name);

/// Bytes of a payload before its codec: those of the tensor, of its codes, or, of a delta of low
/// rank, compressed_size.
std::uint64_t mckp_coded_length(const MckpTensor& tensor) noexcept;
std::uint64_t mckp_codes_length(std::uint64_t count, unsigned bits) noexcept;
/// Bits that a code takes: 1, 2, 4, or 8 for all other widths.
unsigned mckp_code_bits(unsigned bits) noexcept;

/// Length of a block's header.
inline std::uint64_t mckp_block_header(std::string_view name) noexcept {
  return kMckpNameLength + name.size() + kMckpBlockSizes;
}
/// Where the elements begin in a tensor's bytes: 0, or after the indices of a sparse one.
std::uint64_t mckp_values_begin(const MckpTensor& tensor) noexcept;
/// @throws FormatError for bytes of a sparse tensor whose indices or padding break the rules.
void check_mckp_indices(const Tensor& tensor);

/// As the header spells it.
std::string_view mckp_digests_name(LeafAlgorithm digests) noexcept;

/// The bytes of a block's header.
std::string mckp_block_header_bytes(const MckpTensor& tensor);

}  // namespace thalia::formats
