// NumPy's files: .npy, one array, and .npz, a zip archive of arrays under names.
// docs/format/npz.md.
//
//   const thalia::NpzFile file = thalia::NpzFile::open("model.npz");
//   const thalia::Tensor w = file.read("w");
//   thalia::save_npz("copy.npz", {{.name = "w", .tensor = w}});
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/detail/held.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/shape.h"
#include "thalia/storage.h"
#include "thalia/tensor_value.h"

namespace thalia {

struct NpyArray {
  /// An archive's member, or the name of an .npy file, without ".npy".
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

/// A mapped .npy file of version 1.0, 2.0 or 3.0. A cheap handle; immutable; any number of threads.
class NpyFile {
 public:
  /// @throws IoError; FormatError naming field and bound; UnsupportedError for pickled objects,
  /// texts, dates, records of several fields, ranks above 8. Of the options, the input and
  /// the stop token count.
  static NpyFile open(const std::filesystem::path& path, const ReadOptions& options = {});
  /// The same of a file's bytes. `name` is for messages.
  static NpyFile from_bytes(StoredBytes bytes, std::string name = {},
                            const ReadOptions& options = {});

  const NpyArray& array() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// In the mapping, and holds the file open then; a copy where elements are in Fortran order, or
  /// have the most significant byte first. In the mapping, the address is any that the file has for
  /// it: Tensor::owned() brings it to one that as<T>() takes. @throws FormatError (limit_exceeded).
  Tensor read() const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// A mapped .npz file. A cheap handle; immutable; any number of threads.
class NpzFile {
 public:
  /// @throws as NpyFile::open(), for any array of the archive; CompressionError.
  static NpzFile open(const std::filesystem::path& path, const ReadOptions& options = {});
  static NpzFile from_bytes(StoredBytes bytes, std::string name = {},
                            const ReadOptions& options = {});

  const std::vector<NpyArray>& arrays() const noexcept;  ///< in the order of the archive
  /// Names of the members that are no arrays.
  const std::vector<std::string>& others() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// As NpyFile::read(), inflated where the array is deflated. The first read of an array compares
  /// the CRC-32 of its member, unless the options said Verification::off; that of a deflated one is
  /// compared at every read. @throws UsageError (not_found); IntegrityError; FormatError
  /// (bad_compression, limit_exceeded).
  Tensor read(std::string_view name) const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

struct NpzTensor {
  std::string name;
  Tensor tensor;
};

struct NpzSaveOptions {
  bool compressed = false;  ///< deflated, as by numpy.savez_compressed
  OutputOptions output{};
  Work work{};  ///< progress and the stop
};

/// Writes atomically what numpy.savez writes of the same arrays, byte for byte (of NumPy 1.24 or
/// later with Python 3.11.4 or later): numpy.load gives them back. It lacks types: it shows bf16 as
/// V2 and floats of 8 bits as V1, which the package ml_dtypes makes numbers of.
/// @throws IoError; UsageError (duplicate); UnsupportedError for packed dtypes, sparse tensors, and
/// names that an archive cannot have. @return bytes of the file.
std::uint64_t save_npz(const std::filesystem::path& path, const std::vector<NpzTensor>& tensors,
                       const NpzSaveOptions& options = {});
/// The same as numpy.save does. @throws as save_npz().
std::uint64_t save_npy(const std::filesystem::path& path, const Tensor& tensor,
                       const OutputOptions& output = {});

}  // namespace thalia
