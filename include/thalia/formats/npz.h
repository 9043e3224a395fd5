// NumPy's files: .npy, one array, and .npz, a zip archive of arrays under names.
// docs/format/npz.md.
//
//   const thalia::Tensor w = thalia::open_any("model.npz").read("w");
//   thalia::save_npz("copy.npz", {{.name = "w", .tensor = w}});
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/tensor_value.h"

namespace thalia {

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
