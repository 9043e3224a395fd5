// Headers of .npy arrays (numpy.lib.format 1.0, 2.0 and 3.0): which elements follow, in which shape
// and order. The header is a Python dict literal; it is read as text and never evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/source/npy_type.h"
#include "thalia/types.h"

namespace thalia::formats {

struct NpyHeader {
  std::string descr;  ///< as the file says it: "<f4"
  NpyType type{};
  bool fortran_order = false;  ///< the first index runs fastest
  Shape shape{};
  unsigned version = 1;            ///< 1, 2 or 3
  std::uint64_t header_bytes = 0;  ///< from the magic to the first element

  std::uint64_t element_bytes() const noexcept {
    return type.opaque != 0 ? type.opaque : dtype_bits(type.dtype) / 8;
  }
  /// The shape of the elements as `type.dtype`: opaque ones of several bytes add a last extent.
  /// @throws UnsupportedError above Shape::kMaxRank.
  Shape logical_shape() const;
};

/// Bytes before the text: magic, version, and how long the text is.
inline constexpr std::size_t kNpyPrelude = 12;
/// As much of an array file as its header can take.
inline constexpr std::size_t kMostNpyHeader = 10'000 + kNpyPrelude;

/// Whether a file or member that begins like this is an array.
bool is_npy(ByteSpan start) noexcept;

/// `start`: the first kMostNpyHeader bytes of an array file, or all that it has. `file_bytes`: of
/// the whole, which has to end where its elements do. @throws FormatError; UnsupportedError for a
/// version, an element type or a rank that is not read.
NpyHeader parse_npy_header(ByteSpan start, std::uint64_t file_bytes);

/// A header as numpy.save writes it, byte for byte. `header_bytes`: with as many spaces in it as
/// another version of it put there; 0, or one that does not fit: as NumPy 1.24 and later.
/// `version`: 1 to 3, of which 1 is NumPy's own choice.
std::string make_npy_header(std::string_view descr, bool fortran_order, const Shape& shape,
                            std::uint64_t header_bytes = 0, unsigned version = 1);

}  // namespace thalia::formats
