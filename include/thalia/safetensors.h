// safetensors files: a mapped reader and a crash-safe writer that keep the reference's rules: no
// holes, no overlap, exact size, a header of at most 100 MB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/shape.h"

namespace thalia {

struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  ByteSpan bytes;  ///< reading: in the mapping, valid as long as the file object; writing: borrowed
                   ///< until the save returns
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// A mapped safetensors file. Immutable after open.
class SafetensorsFile {
 public:
  /// @throws IoError, FormatError naming the tensor and field, UnsupportedError (unknown dtype,
  /// rank above 8).
  static SafetensorsFile open(const std::filesystem::path& path,
                              std::uint64_t max_header_bytes = 100'000'000);

  const std::vector<SafetensorsTensor>& tensors()
      const noexcept;  ///< in the order of their bytes in the file
  const SafetensorsMetadata& metadata() const noexcept;  ///< in the order of the header
  std::uint64_t file_bytes() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Writes atomically (temporary, sync, rename) and as the reference does: tensors by descending
/// alignment of their dtype, then by name; header padded with spaces to 8 bytes.
/// @throws IoError; UsageError (duplicate, size_mismatch); UnsupportedError for a dtype that the
/// format lacks.
/// @return bytes of the file.
std::uint64_t save_safetensors(const std::filesystem::path& path,
                               std::vector<SafetensorsTensor> tensors,
                               const SafetensorsMetadata& metadata = {},
                               Durability durability = Durability::full);

}  // namespace thalia
