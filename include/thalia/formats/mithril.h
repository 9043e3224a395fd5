// What the original mithril program writes: .mst files and quantized tensors.
// docs/format/mithril.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

// Files of the original mithril program: .mst, and what it wraps other programs' files in.
//
//   const thalia::MstFile file = thalia::MstFile::open("model.mst");
//   const thalia::Tensor w = file.read("w");
//   thalia::MstWriter writer("copy.mst");
//   writer.add("w", w);
//   writer.commit();

/// `offset` is that of the zstd frame.
struct MstTensor : ArrayEntry {
  std::uint64_t compressed_size = 0;
  std::uint64_t uncompressed_size = 0;
};

/// A mapped .mst file: "MST", a zero byte, u32 version (0 or 1), u64 length of a plain JSON header,
/// zstd frames. There are no checksums: damage is found where it breaks a frame. A cheap handle;
/// immutable; any number of threads.
class MstFile {
 public:
  /// @throws IoError; FormatError naming field and bound, also for frames that overlap or lie
  /// outside; UnsupportedError for another version, UnsupportedDtypeError.
  /// With Access::copied the whole file is read into memory.
  static MstFile open(const std::filesystem::path& path, const ReadOptions& options = {});
  /// The same of a file's bytes. `name` is for messages.
  static MstFile from_bytes(StoredBytes bytes, std::string name = {},
                            const ReadLimits& limits = {});

  const std::vector<MstTensor>& tensors() const noexcept;  ///< in the order of their frames
  /// For each name of the header, in its order, the place of its tensor in tensors(). Empty if
  /// that is the order of the header.
  const std::vector<std::size_t>& header_order() const noexcept;
  /// Keys of the header that the format does not have: nothing more is known of them.
  const std::vector<std::string>& unknown_members() const noexcept;
  /// Whether bytes lie between or after the frames, which the original does not look at.
  bool has_other_bytes() const noexcept;
  /// Texts under names, in the order of the header.
  const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept;
  /// Whether bytes of f32, f16 and bf16 elements are grouped.
  bool byte_grouping() const noexcept;
  int level() const noexcept;              ///< of zstd, as the header says
  std::uint32_t version() const noexcept;  ///< 0 or 1
  std::uint64_t file_bytes() const noexcept;

  /// @throws UsageError (not_found); FormatError (bad_compression, limit_exceeded).
  Tensor read(std::string_view name) const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

struct MstWriteOptions {
  int level = 3;  ///< of zstd, 1 to 22; 0: its default, which the header then says
  /// Group bytes of f32, f16 and bf16 elements: bytes of equal significance are together.
  bool byte_grouping = true;
  std::vector<std::pair<std::string, std::string>> metadata{};  ///< UTF-8, keys that differ
  OutputOptions output{};
  /// The stop, and memory_bytes for frames, 256 MiB by default: those beyond it go to a temporary
  /// file in the file's folder, as the header is first in the file, and known last.
  Work work{};
};

/// Writes version 1, which the original reads. Equal input gives equal bytes with one version of
/// libzstd. Compresses while tensors are added. Externally synchronised. Destroyed before commit(),
/// or after a call that failed, it leaves what was at the path.
class MstWriter {
 public:
  /// @throws UsageError (bad_argument) for options, (exists); IoError.
  explicit MstWriter(const std::filesystem::path& path, MstWriteOptions options = {});
  ~MstWriter();
  MstWriter(MstWriter&&) noexcept;
  MstWriter& operator=(MstWriter&&) noexcept;

  /// The tensor is not needed any more after the call. @throws UsageError (duplicate; bad_argument
  /// for a name that is no UTF-8; wrong_state); UnsupportedError for a sparse tensor;
  /// UnsupportedDtypeError for others than f32, f16, bf16, f64, i32, i64, i8, u8 and bool;
  /// CancelledError; IoError.
  void add(std::string name, const Tensor& tensor);
  /// Puts the file in its place. @throws IoError; CancelledError; UsageError (wrong_state) a second
  /// time. @return bytes of the file.
  std::uint64_t commit();

 private:
  struct Impl;
  detail::Owned<Impl> impl_;
};

/// What the original's `compress` writes of one tensor: a zstd frame of bytes that are XORed with
/// `previous`, unless that is empty, and grouped. Nothing in it says so: the caller has to know.
/// @param raw_bytes of the tensor. @throws FormatError; UsageError (size_mismatch) for a previous
/// tensor of another size, or bytes that are no whole elements.
std::vector<std::byte> decode_mithril_stream(ByteSpan stream, DType dtype, std::uint64_t raw_bytes,
                                             ByteSpan previous = {}, bool byte_grouping = true,
                                             const ReadLimits& limits = {});

/// Files that the original wraps whole.
enum class MithrilWrapper {
  dcp,        ///< "MCPT": a file of PyTorch's distributed checkpoints
  deepspeed,  ///< "MDSC": what torch.save wrote
};
/// By the first bytes.
std::optional<MithrilWrapper> mithril_wrapper(ByteSpan start) noexcept;
/// The file in a wrapper, which is a Python pickle: nothing here opens it. @throws FormatError
/// where `file` is no wrapper, or damaged; UnsupportedError for another version.
std::vector<std::byte> unwrap_mithril(ByteSpan file, const ReadLimits& limits = {});

// Quantized tensors as the original mithril program stores them: one tensor a file, as a zstd frame
// of Rust's bincode. docs/format/mithril.md, "Quantized tensors".
//
//   const thalia::MithrilQuantized weights = thalia::open_mithril_quantized("w.zst");
//   const thalia::Tensor numbers = weights.dequantized();

/// Persistent: values are part of the format.
enum class MithrilMethod : std::uint32_t {
  int8_linear = 0,   ///< number = code * scale
  nf4 = 1,           ///< number = level[code] * the scale of its group
  int4 = 2,          ///< number = (code - zero point) * scale
  dynamic_int8 = 3,  ///< as int8_linear; the original writes that one's number instead
};
/// "int8_linear", …
std::string_view mithril_method_name(MithrilMethod method) noexcept;

/// What decode_mithril_quantized() returns fits together: as many codes, scales and zero points as
/// shape and method ask for.
struct MithrilQuantized {
  MithrilMethod method = MithrilMethod::int8_linear;
  DType original_dtype = DType::f32;  ///< of the numbers before
  Shape shape{};
  /// Elements a scale is for, in nf4.
  std::optional<std::uint64_t> group_size{};
  /// In row-major order: i8 of both int8 methods, u4 of nf4 and int4.
  Tensor codes{};
  std::vector<float> scales{};  ///< one, or in nf4 one a group
  std::optional<std::vector<std::int8_t>> zero_points{};

  /// F32, whatever the original dtype: bit for bit what the original computes. For int4 these are
  /// not the numbers that were quantized, unless 0 lies between their least and greatest: the
  /// original stores codes that count from the least number, and a zero point that is clamped.
  /// @throws FormatError (limit_exceeded) where they take more than `limits` allow for the bytes of
  /// the codes; UsageError (bad_argument) for parts that do not fit together.
  Tensor dequantized(const ReadLimits& limits = {}) const;
};

/// @throws FormatError for what is no such frame, or does not fit together (truncated, bad_value,
/// inconsistent, limit_exceeded, bad_compression); UnsupportedError for a rank above 8.
MithrilQuantized decode_mithril_quantized(ByteSpan file, const ReadLimits& limits = {});
MithrilQuantized open_mithril_quantized(const std::filesystem::path& path,
                                        const ReadOptions& options = {});
/// The file's bytes: with the level that the original was called with, 3 by default, and the same
/// version of libzstd, the original's. @param level 1 to 22. @throws UsageError (bad_argument,
/// size_mismatch) for what does not fit together.
std::vector<std::byte> encode_mithril_quantized(const MithrilQuantized& tensor, int level = 3);
/// The level that the frame's window tells, as far as it does: 1, 2, 3, 9, 19, 20, 21 or 22. 3
/// where it tells nothing.
int mithril_quantized_level(ByteSpan file) noexcept;

}  // namespace thalia
