// An open .thalia file as readers, regions and views share it: checked access to every structure,
// nothing copied.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "container/file/short_name.h"
#include "container/file/verified_blocks.h"
#include "format/chunk.h"
#include "format/connectivity.h"
#include "format/constants.h"
#include "format/delta.h"
#include "format/directory.h"
#include "format/extent.h"
#include "format/header.h"
#include "format/overlay.h"
#include "format/quantized.h"
#include "format/region.h"
#include "format/tensor.h"
#include "io/file/file_bytes.h"
#include "io/file/input_file.h"
#include "io/system/process.h"
#include "thalia/error.h"
#include "thalia/options.h"

namespace thalia {

class RegionView;
class TensorView;

}  // namespace thalia

namespace thalia::detail {

/// Immutable but for what it remembers of checks and reads; any number of threads. Everything it
/// returns but the header lies in the mapping, or in the memory that the file is copied into.
class OpenFile : public std::enable_shared_from_this<OpenFile> {
 public:
  /// Checks the header and the directory's header, and the whole file where the options say so.
  static std::shared_ptr<const OpenFile> open(const io::InputFile& input,
                                              const ReadOptions& options);
  /// Opens a file whose bytes are at hand already, whatever the options say of access. Where an
  /// append changed the header meanwhile, the file is opened anew. @throws as the constructor.
  static std::shared_ptr<const OpenFile> over(std::shared_ptr<const io::FileBytes> mapping,
                                              const ReadOptions& options);

  const io::FileBytes& mapping() const noexcept { return *mapping_; }
  const ReadOptions& options() const noexcept { return options_; }
  const format::Header& header() const noexcept { return header_; }
  const format::DirectoryHeader& directory() const noexcept { return *directory_; }
  /// Bytes before header().file_length, as they lie in the file: not verified. @throws
  /// IoError, FormatError, of a copied file.
  ByteSpan unverified(std::uint64_t offset, std::uint64_t length) const {
    touch(offset, length);
    return bytes_.subspan(offset, length);
  }
  /// The 32 bytes before header().file_length, whatever the checksum type. Not compared here.
  const Digest256& closing_checksum() const {
    return format::overlay<Digest256>(bytes_, bytes_.size() - format::kChecksumLength, "checksum");
  }
  /// Structures, not verified. @throws FormatError (truncated) if they pass
  /// header().file_length.
  template <typename T>
  std::span<const T> structures(std::uint64_t offset, std::uint64_t count,
                                std::string_view section) const {
    return named([&] {
      const auto found = format::overlay_array<T>(bytes_, offset, count, section);
      touch(offset, count * sizeof(T));
      return found;
    });
  }
  template <typename T>
  const T& structure(std::uint64_t offset, std::string_view section) const {
    return structures<T>(offset, 1, section).front();
  }
  /// [offset, offset + length), which lies before the integrity table, verified as the options
  /// say.
  ByteSpan verified(std::uint64_t offset, std::uint64_t length) const;
  /// How a structure is fetched: verified, to be believed and handed out; or as it lies, by a
  /// search that verifies the place where it ends.
  enum class As { verified, it_lies };
  /// As verified(), for bytes that are looked at once: of a copied file that is not verified, they
  /// are read into `buffer` and kept nowhere else. Valid until `buffer` is used again.
  ByteSpan verified_once(std::uint64_t offset, std::uint64_t length,
                         std::vector<std::byte>& buffer) const;
  /// Calls visit(offset, bytes) with parts of an extent, of 1 MiB at most, from verified_once().
  template <typename Visit>
  void pass_over(std::uint64_t offset, std::uint64_t length, Visit visit) const {
    std::vector<std::byte> buffer;
    const std::uint64_t end = offset + length;
    for (constexpr std::uint64_t kPart = 1 << 20; offset < end;
         offset += std::min(kPart, end - offset))
      visit(offset, verified_once(offset, std::min(kPart, end - offset), buffer));
  }
  /// Copies verified bytes into `out`. Those of a copied file are not kept in its own memory too,
  /// if that can be avoided.
  void read_verified(std::uint64_t offset, MutableByteSpan out) const;
  /// Part of a tensor's payload, verified as the options and the checksum type say.
  ByteSpan verified_payload(const format::TensorEntry& entry, std::uint64_t offset,
                            std::uint64_t length) const;
  /// Reads a raw tensor of which a block is damaged. False, and `out` as it comes, unless it has
  /// the entry's CRC-32 and content hash all the same, and the options let that count.
  bool read_despite_blocks(const format::TensorEntry& entry, MutableByteSpan out) const;
  /// A chunk's stored bytes, verified by their block or not: the chunk has a CRC-32 of its own.
  ByteSpan chunk_bytes(const format::ChunkEntry& chunk, std::vector<std::byte>& buffer) const;
  /// Which blocks of the tree were checked; null if the file has no tree, or tensors are checked
  /// instead of blocks.
  container::VerifiedBlocks* blocks() const noexcept {
    return blocks_ && options_.verification != Verification::by_tensor ? &*blocks_ : nullptr;
  }
  /// Brings an extent into memory, on several threads. @throws IoError, FormatError.
  void populate(std::uint64_t offset, std::uint64_t length) const;
  /// A JSON text, checked once more each time it is asked for.
  /// @param field of the section that it is, for messages.
  std::string_view json(format::Extent extent, std::string_view section,
                        std::string_view field = {}) const;
  /// Checks every byte. @throws IntegrityError.
  void verify_all(const std::stop_token& cancel = {}) const;
  /// Checks what an append carries over without reading it again: leaves against the closing
  /// checksum, and the block in which the old bytes end; without a tree the whole file. @throws
  /// IntegrityError.
  void verify_for_append() const;

  // Tables. An entry is validated when it is fetched.
  std::uint32_t region_count() const noexcept { return header_.num_regions; }
  const format::RegionIndexEntry& region_index_entry(std::uint32_t region) const;
  const format::DirectoryRegion& directory_region(std::uint32_t region, As as = As::verified) const;
  /// Number of the region at a place in the order of their names.
  std::uint32_t ordered_region(std::uint32_t i, As as = As::verified) const;
  std::string_view name(const format::le32& offset, const format::le16& length,
                        As as = As::verified) const;
  /// A region's first bytes, validated.
  struct RegionHeaders {
    const format::RegionHeader& header;
    const format::RegionExtension& extension;
    std::uint64_t offset;
  };
  RegionHeaders region_headers(std::uint32_t region) const;
  /// Extent that the payloads of a directory region must lie in.
  format::Extent owner_extent(std::uint32_t region) const;
  const format::TensorEntry& tensor_entry(std::uint32_t number, As as = As::verified) const;
  std::uint64_t tensor_entry_offset(std::uint32_t number) const;
  const format::ChunkEntry& chunk_entry(std::uint32_t number) const;
  std::uint64_t chunk_entry_offset(std::uint32_t number) const;
  ByteSpan side_data(const format::TensorEntry& entry) const;
  /// The side data of a tensor that needs a base and that tensor_view() accepted: what comes out of
  /// it. Checked against the entry. @throws FormatError.
  const format::DeltaTensor& delta_tensor(std::uint32_t number) const;

  /// The side data of a quantized tensor that tensor_view() accepted, checked against the entry.
  /// @throws FormatError.
  const format::QuantizedSideData& quantized_tensor(const format::TensorEntry& entry) const;
  /// The same of a view; null if it is not quantized.
  static const format::QuantizedSideData* quantization_of(const TensorView& view);

  std::optional<std::uint32_t> find_region(std::string_view name) const;
  /// Number of the tensor in the table.
  std::optional<std::uint32_t> find_tensor(std::uint32_t region, std::string_view name) const;
  /// Region number of tensor `number`: the connectivity section's is region_count().
  TensorView tensor_view(std::uint32_t region, std::uint32_t number) const;
  RegionView region_view(std::uint32_t region) const;

  std::uint32_t connection_count() const;
  const format::ConnectionEntry& connection_entry(std::uint32_t i) const;
  /// The first connection between regions of these short names. The first call reads all entries,
  /// and each one after as many as a binary search.
  std::optional<std::uint32_t> find_connection(const container::ShortName& source,
                                               const container::ShortName& target) const;

  /// Runs `action`; an error that passes gets the file's path.
  template <typename Action>
  decltype(auto) named(Action action) const {
    return with_path(mapping_->path().native(), action);
  }

  OpenFile(std::shared_ptr<const io::FileBytes> mapping, const ReadOptions& options);

 private:
  // Comes before every look at bytes that verified() does not return: ends the work where a stop
  // was requested, and copies the bytes in if the file is copied.
  void touch(std::uint64_t offset, std::uint64_t length) const {
    stop_if_cancelled(options_.work.cancel);
    if (options_.input.access == Access::copied) copy_in(offset, length);
  }
  void copy_in(std::uint64_t offset, std::uint64_t length) const;
  template <typename Action>
  void for_extents(std::uint64_t offset, std::uint64_t length, Action action) const;
  ByteSpan fetch(std::uint64_t offset, std::uint64_t length, As as) const {
    return as == As::verified ? verified(offset, length) : unverified(offset, length);
  }
  template <typename T>
  const T& table_entry(std::uint64_t table, std::uint64_t i, As as = As::verified) const;
  template <typename NameAt>
  std::optional<std::uint32_t> find_name(std::uint32_t first, std::uint32_t last,
                                         std::string_view wanted, NameAt name_at) const;
  bool checks_blocks() const noexcept {
    return blocks_ && options_.verification == Verification::on_first_touch;
  }
  // Leaves of SHA-256 are there to find intent, against which CRC-32 and content hash are no
  // defence.
  bool may_do_without_blocks() const noexcept {
    return checks_blocks() && header_.leaf_algorithm == LeafAlgorithm::xxh3_128;
  }
  void verify_tensor_once(const format::TensorEntry& entry) const;
  bool is_sound(const format::TensorEntry& entry) const;
  void verify_whole_checksum(const std::stop_token& cancel) const;

  std::shared_ptr<const io::FileBytes> mapping_;
  ReadOptions options_;
  ByteSpan bytes_;
  // A copy: an append in place overwrites the one in the file, and this one goes on describing what
  // lies where it lay.
  format::Header header_{};
  const format::DirectoryHeader* directory_ = nullptr;
  mutable std::optional<container::VerifiedBlocks> blocks_;
  // Where tensors are checked in place of blocks: one flag a tensor, allocated at the first check.
  mutable io::Once tensors_once_;
  mutable std::unique_ptr<std::atomic<bool>[]> tensors_verified_;
  mutable io::Once connections_once_;
  mutable std::vector<std::uint32_t> connections_by_names_;
};

}  // namespace thalia::detail
