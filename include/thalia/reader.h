// Reader: an open .thalia file, mapped or copied. Opening reads the header and the directory's
// first bytes, and allocates nothing in proportion to regions or tensors.
//
//   thalia::Reader reader = thalia::Reader::open("run.thalia");
//   // A view into the file:
//   std::span<const float> w = reader.region("cortex").at("w_rec").as<float>();
//
// docs/format/format.md, "Reading".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/region.h"
#include "thalia/tensor.h"
#include "thalia/types.h"
#include "thalia/version.h"

namespace thalia {

/// One projection from a region to another; weights and delays are tensors like any other.
struct ConnectionView {
  std::string source;  ///< as stored: full where it fits 31 bytes, else the short form of
                       ///< docs/format/format.md, "Short names"
  std::string target;
  TensorView weights;
  std::optional<TensorView> delays;
};

/// What the flags of a header say that a file has. Persistent: docs/format/format.md, "Header".
struct FileFlags {
  bool compressed = false;
  bool lz4 = false;
  bool homeostatic = false;
  bool neuromodulators = false;
  bool sparse = false;
  bool mixed_precision = false;
  bool delta = false;

  friend bool operator==(const FileFlags&, const FileFlags&) = default;
};

/// What the header of a file says. docs/format/format.md, "Header".
struct FileHeader : FileTotals {
  FormatVersion version{};
  FileFlags flags{};
  ChecksumType checksum = ChecksumType::none;
  // For a file with a block tree:
  LeafAlgorithm leaves = LeafAlgorithm::xxh3_128;
  unsigned block_log2 = 0;  ///< 0 if there is no tree
  /// 1 after a save, one more with each append.
  std::uint64_t generation = 0;
  Uuid file_uuid;
  // For a delta:
  Digest256 base_checksum;
  std::uint64_t base_step = 0;
};

/// What a delta says of the file that it was taken against. docs/format/deltas.md, "Delta files".
struct DeltaBase {
  std::string path;    ///< as stored: from the delta's folder, or absolute
  Digest256 checksum;  ///< the closing checksum that the base has to have
  Uuid uuid;
  std::uint64_t generation = 0;
  std::uint64_t file_bytes = 0;  ///< of the base's container
  std::uint64_t step = 0;        ///< training steps of the base
  unsigned depth = 0;            ///< deltas from this one down to a full file
};

/// A cheap handle to one open file; copies share it. Immutable; any number of threads may use one.
///
/// The file is mapped, unless InputOptions::access says otherwise. Where another process shrinks a
/// mapped file, or its disk fails, touching a view raises SIGBUS. With Access::copied nothing of
/// the file is mapped: its bytes are read into memory when views are asked for, and "in the
/// mapping" means in that memory. What goes wrong then is an error of that call, IoError or
/// FormatError (truncated), with path and offset.
///
/// Files are replaced by rename, which leaves open readers on the old bytes, and appended to in
/// place, which leaves them on the generation that they opened.
class Reader {
 public:
  /// @throws IoError, FormatError, UnsupportedError (another major version, an unknown feature
  /// bit), IntegrityError.
  static Reader open(const std::filesystem::path& path, const ReadOptions& options = {});

  const std::filesystem::path& path() const noexcept;
  /// As it was when the file was opened, whatever was appended since.
  FileHeader header() const noexcept;
  /// Bytes up to the file_length that the header says, without debris; for a delta, those of its
  /// container.
  std::uint64_t file_bytes() const noexcept;
  /// In the mapping; empty if there is none. Checked as JSON, within the limits, at each call.
  std::string_view metadata_json() const;
  Digest256 closing_checksum() const noexcept;  ///< the last 32 bytes: the file's identity
  /// nullopt of a full file. A reader of a delta shows what the delta stores: tensors that need the
  /// base are listed, and thalia/state/delta.h resolves them. Offsets count from the first byte of
  /// the delta's container.
  std::optional<DeltaBase> delta_base() const;

  std::uint32_t region_count() const noexcept;
  std::uint32_t tensor_count() const noexcept;  ///< those of the connectivity section included
  std::uint64_t logical_bytes() const;          ///< of all tensors; reads a record for each region
  /// Bytes that appends left without use and compact() gives back; 0 of a file that was saved
  /// whole. Reads the region index.
  std::uint64_t dead_bytes() const;
  /// Bytes after the end, the debris of an interrupted append, which readers ignore.
  std::uint64_t debris_bytes() const noexcept;
  /// In the order of the region index. @throws UsageError (not_found), FormatError.
  RegionView region(std::uint32_t i) const;
  std::optional<RegionView> find_region(std::string_view name) const;
  /// @throws UsageError (not_found) that names the region.
  RegionView region(std::string_view name) const;

  /// A tensor by its own name wherever it lies, or as "region/tensor". @throws UsageError
  /// (not_found), or (bad_argument) where several regions have one of that name.
  TensorView tensor(std::string_view name) const;
  /// The region that a tensor view of this file came from.
  static std::string_view region_name(const TensorView& tensor) noexcept;

  std::uint32_t connection_count() const;
  ConnectionView connection(std::uint32_t i) const;
  std::optional<ConnectionView> find_connection(std::string_view source,
                                                std::string_view target) const;

  /// Checks every byte against the checksum now; a copied file is then in memory as a whole.
  /// @param cancel ends it, as that of the options does. @throws IntegrityError on the first block
  /// that differs; CancelledError.
  void verify_all(const std::stop_token& cancel = {}) const;
  /// Bytes of the file that this process has in memory: for a mapped file the whole pages in its
  /// page tables, for a copied one what was copied so far, in parts of 64 KiB.
  std::uint64_t resident_bytes() const;

 private:
  friend struct detail::Inside;
  explicit Reader(std::shared_ptr<const detail::OpenFile> file) : file_(std::move(file)) {}
  detail::Shared<const detail::OpenFile> file_;
};

}  // namespace thalia
