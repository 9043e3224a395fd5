// safetensors files: a mapped reader and a crash-safe writer that keep the format's rules: no
// holes, no overlap, exact size, a header of at most 100 MB. Where the reference reader takes what
// the format's description forbids or leaves open (repeated keys, unknown fields of a tensor, white
// space before the header), this one refuses: it could not write it back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/detail/held.h"
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
  /// The same. With Access::copied the whole file is read into memory; of the limits
  /// max_file_bytes counts.
  static SafetensorsFile open(const std::filesystem::path& path, const ReadOptions& options,
                              std::uint64_t max_header_bytes = 100'000'000);

  /// The same, where a file may be larger than memory: with Access::copied nothing but the header
  /// is read, and a tensor's bytes hold nothing before touch().
  static SafetensorsFile open_header(const std::filesystem::path& path, const ReadOptions& options,
                                     std::uint64_t max_header_bytes = 100'000'000);
  /// Reads a part of a tensor's bytes, once; does nothing but with Access::copied. @throws IoError;
  /// FormatError (truncated) where the file has become shorter.
  void touch(ByteSpan part) const;

  const std::vector<SafetensorsTensor>& tensors()
      const noexcept;  ///< in the order of their bytes in the file
  /// In the order of the header; empty if there is none.
  const SafetensorsMetadata& metadata() const noexcept;
  bool has_metadata() const noexcept;  ///< true also for an empty "__metadata__"
  std::uint64_t file_bytes() const noexcept;
  /// Says that a part of a tensor's bytes is read next: where such parts follow each other, the
  /// system reads ahead of them.
  void read_ahead(ByteSpan part) const noexcept;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// Writes atomically (temporary, sync, rename) and byte for byte as the reference does (safetensors
/// 0.8): tensors in its descending order of dtypes (U64, I64, F64, C64, F32, …), then by name;
/// header padded with spaces to 8 bytes. `metadata` keeps its order, which the reference leaves to
/// chance; nullopt and an empty map differ as they do there.
/// @throws IoError; UsageError (duplicate, size_mismatch, bad_argument: a tensor "__metadata__",
/// text that is not UTF-8); UnsupportedError for what the format lacks: a dtype, elements that are
/// no whole bytes, a header of more than 100 MB.
/// @param align the tensors' bytes begin at a multiple of this in the file, itself a multiple of 8
/// up to 4 MiB. With another than 8, the header ends in more spaces than the reference's does. Each
/// tensor then begins at a multiple of its elements' size; see docs/format/safetensors.md,
/// "Alignment".
/// @return bytes of the file.
std::uint64_t save_safetensors(const std::filesystem::path& path,
                               std::vector<SafetensorsTensor> tensors,
                               const std::optional<SafetensorsMetadata>& metadata = std::nullopt,
                               const OutputOptions& output = {}, std::uint64_t align = 8);
/// The same bytes into memory: `room` is told how many there are, and gives exactly so many.
/// @throws the same, but for IoError; what `room` throws.
void serialize_safetensors(std::vector<SafetensorsTensor> tensors,
                           const std::optional<SafetensorsMetadata>& metadata,
                           const std::function<MutableByteSpan(std::uint64_t bytes)>& room,
                           std::uint64_t align = 8);

}  // namespace thalia
