// One array of a file: what its header says of it, and its elements as a tensor.
#pragma once

#include <memory>
#include <string>

#include "formats/source/npy_header.h"
#include "formats/zip/member.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::formats::npz {

struct NpyArray {
  /// The name of an archive's member without its ".npy"; for an .npy file, the file's name without
  /// it.
  std::string name;
  /// The type of what read() gives. Elements that are bytes without a meaning ("|V8") are u8, and
  /// of several bytes the last extent says how many.
  DType dtype = DType::f32;
  Shape shape;
  std::string descr;           ///< NumPy's name of the element type, as the file says it: "<f4"
  bool fortran_order = false;  ///< the first index runs fastest in the file; never in what is read
  bool deflated = false;       ///< by numpy.savez_compressed
  /// Where its elements lie in the file, or the deflated stream with the header and them.
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
};

/// Where the array lies in its file is the caller's to fill in.
NpyArray describe_array(std::string name, const NpyHeader& header);

/// Whether elements in the file are not those of a tensor as they lie there.
bool is_converted(const NpyHeader& header) noexcept;

/// Elements that lie in memory as in the file: viewed, or converted. @throws FormatError
/// (limit_exceeded).
Tensor view_elements(const NpyHeader& header, ByteSpan elements,
                     const std::shared_ptr<const void>& owner, const ReadLimits& limits);

/// Inflates a deflated member and compares its CRC-32. @throws CompressionError, IntegrityError;
/// FormatError (limit_exceeded).
Tensor inflate_elements(const NpyHeader& header, const ZipMember& member, ByteSpan deflated,
                        const ReadLimits& limits);

}  // namespace thalia::formats::npz
