// Numbers of the .thalia format that belong to no single structure. docs/format/format.md,
// "Conventions" and "Layout".
#pragma once

#include <cstdint>

namespace thalia::format {

inline constexpr std::uint16_t kMajorVersion = 1;
inline constexpr std::uint16_t kMinorVersion = 0;
inline constexpr std::uint16_t kPatchVersion = 0;

/// Sections, regions and payloads start on multiples of this many bytes.
inline constexpr std::uint64_t kAlignment = 64;
/// A payload of a tensor of kPageThreshold logical bytes or more starts on a multiple of
/// kPageAlignment, compressed or not: the logical length is known before anything is compressed.
inline constexpr std::uint64_t kPageAlignment = 4096;
inline constexpr std::uint64_t kPageThreshold = 64 * 1024;

/// The digest that closes every file, whatever the checksum type.
inline constexpr std::uint64_t kChecksumLength = 32;
/// Bytes of char[32] names that can carry text: the last one is always NUL.
inline constexpr std::uint64_t kShortNameCapacity = 31;
inline constexpr std::uint64_t kMaxNameLength = 65535;
inline constexpr unsigned kMaxDimensions = 8;

inline constexpr unsigned kMinBlockLog2 = 12;
inline constexpr unsigned kMaxBlockLog2 = 30;
inline constexpr unsigned kDefaultBlockLog2 = 20;

/// The content hash of a tensor is taken over the digests of pieces of this many logical bytes.
inline constexpr std::uint64_t kContentPiece = 1 << 20;

}  // namespace thalia::format
