// Opening a file, and fetching its tables. Once the constructor returns, header and directory
// header have been checked by all their rules, so every table lies inside the file and has room for
// its count. Every other structure is validated each time it is fetched, before a reference to it
// is returned: a check costs less than remembering it, and opening takes two small reads however
// many tensors there are. Nothing is allocated in proportion to a count in the file.
//
// All bytes are reached through touch() or verified(), as those of a copied file are not in memory
// before. Two structures are returned as they lie: chunk entries, which ChunkReader validates
// together with their neighbours, and side data, of which only the length is known here.
#include "container/file/open_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/file/checked_headers.h"
#include "container/file/commit_records.h"
#include "container/file/delta_prefix.h"
#include "container/file/open_bytes.h"
#include "format/constants.h"
#include "format/foreign_file.h"
#include "format/overlay.h"
#include "format/validate_directory.h"
#include "format/validate_header.h"
#include "io/file/open_descriptor.h"
#include "io/memory/allocation_limit.h"
#include "json/reader.h"

namespace thalia::detail {

// Views hand out payloads as they lie in the file, which is little-endian.
static_assert(std::endian::native == std::endian::little,
              "big-endian hosts need a reader that copies");

namespace {

// An append overwrites the header while readers open the file, and may have made the file longer
// since it was mapped. Another look finds the new header whole, or a newer append. While the size
// of the file changes, there is no limit to the looks. A file that stays as it is for this many is
// damaged.
constexpr int kSameLooks = 3;

// What a thread brings into memory at a time. For less, starting another thread takes longer.
constexpr std::uint64_t kSharedCopy = 4 << 20;

// How the header fails that is being overwritten: by its CRC, or by a file_length beyond what was
// mapped.
bool may_be_an_append(const Error& error) {
  return error.context().section == "header" &&
         (error.code() == ErrorCode::checksum_mismatch || error.code() == ErrorCode::truncated);
}

// A copy of the header or, if it does not hold and the caller asked for it, of the commit record
// that recover() would restore. Changes nothing.
format::Header checked_header(const io::FileBytes& mapping, const ReadOptions& options) {
  const ByteSpan all = mapping.bytes();
  const format::Header header = format::overlay<format::Header>(all, 0, "header");
  try {
    container::check_header(header, all.size(), options.input.limits);
    return header;
  } catch (const Error& error) {
    if (!options.use_commit_record || !container::may_be_recovered(error, all)) throw;
    const auto found = container::find_commit_record(mapping, options.input.limits,
                                                     options.work.threads, options.work.cancel)
                           .best;
    if (!found) throw;
    return found->header;
  }
}

}  // namespace

std::shared_ptr<const OpenFile> OpenFile::open(const io::InputFile& input,
                                               const ReadOptions& options) {
  return with_path(input.path().native(), [&] {
    auto file =
        over(container::open_bytes(input, options.input.access, options.input.limits), options);
    if (file->options().verification == Verification::at_open) file->verify_all();
    return file;
  });
}

std::shared_ptr<const OpenFile> OpenFile::over(std::shared_ptr<const io::FileBytes> mapping,
                                               const ReadOptions& options) {
  for (int same_looks = 1;;) {
    try {
      return std::make_shared<OpenFile>(mapping, options);
    } catch (const Error& error) {
      const bool may_change = mapping->backing() == io::Backing::file;
      if (same_looks == kSameLooks || !may_change || !may_be_an_append(error)) throw;
    }
    stop_if_cancelled(options.work.cancel);
    const std::uint64_t size = mapping->bytes().size();
    mapping = container::contents_of(io::open_again(*mapping), options.input.limits);
    if (mapping->bytes().size() != size) {
      same_looks = 1;
    } else {
      ++same_looks;
      std::this_thread::yield();  // a writer may wait for its processor
    }
  }
}

OpenFile::OpenFile(std::shared_ptr<const io::FileBytes> mapping, const ReadOptions& options)
    : mapping_(std::move(mapping)), options_(options) {
  options_.input.access = mapping_->access();
  // Resolved once, against the bytes on disk. Later checks then hold to this number, whatever size
  // they pass.
  options_.input.limits.max_allocation_bytes =
      io::allocation_limit(options.input.limits, mapping_->disk_bytes());
  const bool partial = mapping_->backing() == io::Backing::partial;
  // A side file was checked as a whole, and has no bytes of most blocks.
  if (partial) options_.verification = Verification::off;
  const ByteSpan all = mapping_->bytes();
  mapping_->touch(0, std::min(all.size(), sizeof(format::Header)));
  if (all.size() < sizeof(format::Header)) {
    format::Header start{};  // a short file may still say that it is not one of ours
    if (all.size() >= offsetof(format::Header, minor_version)) {
      std::memcpy(&start, all.data(), all.size());
      format::validate_identity(start);
    }
    fail_field(ErrorCode::truncated, "header", "", 0, fmt::format("a file of {} bytes", all.size()),
               fmt::format("{} bytes of header", sizeof(format::Header)),
               all.empty() ? format::kEmptyFile : "");
  }
  header_ = checked_header(*mapping_, options_);
  // The header was held against the limit. What lies after its end, and before its beginning,
  // is of the file too.
  io::check_file_bytes("header", mapping_->disk_bytes(), options_.input.limits);
  if (partial && (header_.flags & format::kFlagDelta) != 0) {
    fail_field(ErrorCode::inconsistent, "header", "flags", offsetof(format::Header, flags),
               "those of a delta's container", "bit 6 clear in a side file");
  }
  bytes_ = all.first(header_.file_length);
  touch(header_.directory_offset, sizeof(format::DirectoryHeader));
  touch(header_.file_length - format::kChecksumLength, format::kChecksumLength);
  directory_ = &container::check_directory_header(bytes_, header_, options_.input.limits);
  if (!mapping_->before().empty()) container::check_delta_header(mapping_->before(), header_);
  if (header_.checksum_type == ChecksumType::block_tree) {
    blocks_.emplace(*mapping_, header_, options_.work.threads);
    // Anybody who fetches blocks of the source later verifies them with these leaves.
    if (partial) blocks_->ensure_leaves();
  }
}

// Calls action(offset, length) for the parts of an extent, on several threads if it is long.
template <typename Action>
void OpenFile::for_extents(std::uint64_t offset, std::uint64_t length, Action action) const {
  named([&] {
    if (length <= kSharedCopy) return action(offset, length);
    parallel_for((length + kSharedCopy - 1) / kSharedCopy, options_.work.threads,
                 [&](std::size_t i) {
                   const std::uint64_t begin = i * kSharedCopy;
                   action(offset + begin, std::min(kSharedCopy, length - begin));
                 });
  });
}

void OpenFile::copy_in(std::uint64_t offset, std::uint64_t length) const {
  for_extents(offset, length, [&](auto at, auto count) { mapping_->touch(at, count); });
}

void OpenFile::populate(std::uint64_t offset, std::uint64_t length) const {
  for_extents(offset, length, [&](auto at, auto count) { mapping_->populate(at, count); });
}

std::string_view OpenFile::json(format::Extent extent, std::string_view section,
                                std::string_view field) const {
  // Comes before the text is read or copied: its length is a claim of the file.
  named(
      [&] { io::check_json_length(section, extent.length, options_.input.limits, bytes_.size()); });
  const ByteSpan text = verified(extent.offset, extent.length);
  const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  named([&] {
    try {
      json::check_object(view, options_.input.limits.max_json_depth);
    } catch (const Error& error) {
      throw FormatError(error.code(), error.message(),
                        {.section = std::string(section),
                         .field = std::string(field),
                         .offset = extent.offset,
                         .value = error.context().value,
                         .bound = error.context().bound});
    }
  });
  return view;
}

// The table lies inside the file, and entry `i` inside the table: both were checked against the
// counts in the headers. Structs have alignment 1, so they may be used at any address.
template <typename T>
const T& OpenFile::table_entry(std::uint64_t table, std::uint64_t i, As as) const {
  const ByteSpan entry = fetch(table + i * sizeof(T), sizeof(T), as);
  return *reinterpret_cast<const T*>(entry.data());
}

const format::RegionIndexEntry& OpenFile::region_index_entry(std::uint32_t region) const {
  const auto& entry = table_entry<format::RegionIndexEntry>(header_.region_index_offset, region);
  named([&] { format::validate_region_index_entry(entry, region, header_); });
  return entry;
}

std::uint32_t OpenFile::ordered_region(std::uint32_t i, As as) const {
  const std::uint64_t order = header_.directory_offset + directory_->region_order_offset;
  const std::uint32_t region = table_entry<format::le32>(order, i, as);
  named([&] {
    if (region >= directory_->region_count) {
      fail_field(ErrorCode::out_of_bounds, "directory", "region_order", order + i * 4ull,
                 std::to_string(region),
                 fmt::format("below {}", std::uint32_t{directory_->region_count}));
    }
  });
  return region;
}

const format::DirectoryRegion& OpenFile::directory_region(std::uint32_t region, As as) const {
  const auto& record = table_entry<format::DirectoryRegion>(
      header_.directory_offset + directory_->regions_offset, region, as);
  named([&] { format::validate_directory_region(record, region, *directory_, header_); });
  return record;
}

std::string_view OpenFile::name(const format::le32& offset, const format::le16& length,
                                As as) const {
  const ByteSpan text =
      fetch(header_.directory_offset + directory_->names_offset + offset, length, as);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

OpenFile::RegionHeaders OpenFile::region_headers(std::uint32_t region) const {
  const format::RegionIndexEntry& entry = region_index_entry(region);
  const ByteSpan start =
      verified(entry.data_offset, sizeof(format::RegionHeader) + sizeof(format::RegionExtension));
  const auto& header = *reinterpret_cast<const format::RegionHeader*>(start.data());
  const auto& extension = *reinterpret_cast<const format::RegionExtension*>(
      start.data() + sizeof(format::RegionHeader));
  named([&] {
    format::validate_region_header(header, extension, entry.data_offset, entry.data_length,
                                   options_.input.limits);
  });
  return {header, extension, entry.data_offset};
}

format::Extent OpenFile::owner_extent(std::uint32_t region) const {
  if (region == region_count()) return {header_.connectivity_offset, header_.connectivity_length};
  const format::RegionIndexEntry& entry = region_index_entry(region);
  return {entry.data_offset, entry.data_length};
}

std::uint64_t OpenFile::tensor_entry_offset(std::uint32_t number) const {
  return header_.directory_offset + directory_->tensors_offset +
         std::uint64_t{number} * sizeof(format::TensorEntry);
}

const format::TensorEntry& OpenFile::tensor_entry(std::uint32_t number, As as) const {
  const auto& entry = table_entry<format::TensorEntry>(
      header_.directory_offset + directory_->tensors_offset, number, as);
  named([&] {
    if (!format::lies_within({entry.name_offset, entry.name_length}, 0, directory_->names_length)) {
      fail_field(ErrorCode::out_of_bounds, "directory", "name_offset", tensor_entry_offset(number),
                 fmt::format("[{}, +{})", std::uint32_t{entry.name_offset},
                             std::uint16_t{entry.name_length}),
                 fmt::format("names_length {}", std::uint64_t{directory_->names_length}));
    }
  });
  return entry;
}

std::uint64_t OpenFile::chunk_entry_offset(std::uint32_t number) const {
  return header_.directory_offset + directory_->chunks_offset +
         std::uint64_t{number} * sizeof(format::ChunkEntry);
}

const format::ChunkEntry& OpenFile::chunk_entry(std::uint32_t number) const {
  return table_entry<format::ChunkEntry>(header_.directory_offset + directory_->chunks_offset,
                                         number);
}

ByteSpan OpenFile::side_data(const format::TensorEntry& entry) const {
  return verified(header_.directory_offset + directory_->side_data_offset + entry.side_data_offset,
                  entry.side_data_length);
}

const format::DeltaTensor& OpenFile::delta_tensor(std::uint32_t number) const {
  const format::TensorEntry& entry = tensor_entry(number);
  return named([&]() -> const format::DeltaTensor& {
    if (entry.side_data_length != format::kDeltaTensorLength) {
      fail_field(ErrorCode::bad_value, "directory", "side_data_length",
                 tensor_entry_offset(number) + offsetof(format::TensorEntry, side_data_length),
                 std::to_string(entry.side_data_length),
                 std::to_string(format::kDeltaTensorLength));
    }
    const auto& side = *reinterpret_cast<const format::DeltaTensor*>(side_data(entry).data());
    format::validate_delta_tensor(
        side, header_.directory_offset + directory_->side_data_offset + entry.side_data_offset,
        entry, tensor_entry_offset(number));
    return side;
  });
}

std::uint32_t OpenFile::connection_count() const {
  return named([&]() -> std::uint32_t {
    if (header_.connectivity_length == 0) return 0;
    const ByteSpan start =
        verified(header_.connectivity_offset, sizeof(format::ConnectivityHeader));
    const auto& connectivity = *reinterpret_cast<const format::ConnectivityHeader*>(start.data());
    const std::uint64_t room = (header_.connectivity_length - sizeof(format::ConnectivityHeader)) /
                               sizeof(format::ConnectionEntry);
    if (connectivity.num_connections > room) {
      fail_field(ErrorCode::out_of_bounds, "connectivity", "num_connections",
                 header_.connectivity_offset, std::to_string(connectivity.num_connections),
                 std::to_string(room));
    }
    return connectivity.num_connections;
  });
}

const format::ConnectionEntry& OpenFile::connection_entry(std::uint32_t i) const {
  const std::uint64_t table = header_.connectivity_offset + sizeof(format::ConnectivityHeader);
  const auto& entry = table_entry<format::ConnectionEntry>(table, i);
  named([&] { format::validate_connection_entry(entry, table + i * sizeof entry); });
  return entry;
}

}  // namespace thalia::detail
