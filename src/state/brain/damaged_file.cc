// If the input is not long enough for its tables, or they come from a side file, a copy without
// a name is made as long as the file once was, with the side file's extents laid over it. From then
// on all cases are one: an open file, and how many of its bytes are real.
#include "state/brain/damaged_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "container/append/copied_tensor.h"
#include "container/file/checked_headers.h"
#include "container/file/meta_file.h"
#include "container/file/open_bytes.h"
#include "container/read/stored_connection.h"
#include "format/overlay.h"
#include "io/file/open_descriptor.h"
#include "io/file/posix_file.h"
#include "io/output/unnamed_file.h"
#include "thalia/files.h"
#include "thalia/region.h"

namespace thalia::state {

bool is_damage(const Error& error) {
  if (error.code() == ErrorCode::limit_exceeded) return false;
  return dynamic_cast<const FormatError*>(&error) != nullptr ||
         dynamic_cast<const IntegrityError*>(&error) != nullptr;
}

std::string reason_of(const Error& error) {
  const std::string details = error.details();
  return details.empty()
             ? error.message()
             : fmt::format("{}{}{}", error.message(), error.message().empty() ? "" : ": ", details);
}

namespace {

using std::filesystem::path;

// The most that a cut file may say it was, 16 TiB: an address space has room for that.
constexpr std::uint64_t kLongestFile = 1ull << 44;

class SalvageInput {
 public:
  SalvageInput(path input, const path& output, const SalvageOptions& options)
      : path_(std::move(input)), folder_(folder_of(output)), options_(options) {
    side_path_ = options.side_file;
    if (!side_path_.empty()) return;
    path beside = path_;
    beside += ".meta";
    if (is_file(beside)) side_path_ = beside;
  }

  DamagedFile open() {
    DamagedFile found = find();
    found.fault = fault_;
    found.tables_verified = tables_verified_;
    return found;
  }

 private:
  DamagedFile find() {
    auto own = attempt([&] { return open_own(); });
    if (own && (tables_verified_ = tables_hold(*own))) return *own;
    if (auto by_side = attempt([&] { return open_by_side_file(); })) {
      // All of a side file was held against its closing checksum when it was opened. Blocks say
      // nothing: those at a table's ends may reach into payloads that are lost.
      tables_verified_ = true;
      return *by_side;
    }
    if (own) return *own;
    if (auto cut = attempt([&] { return open_cut(); })) return *cut;
    if (auto by_record = attempt([&] { return open_by_record(); })) {
      tables_verified_ = tables_hold(*by_record);
      return *by_record;
    }
    throw IntegrityError(
        ErrorCode::checksum_mismatch,
        fmt::format("nothing can be got: {}; no commit record in it holds; {}", fault_,
                    side_path_.empty() ? "there is no side file" : "its side file does not hold"));
  }

  ReadOptions read(Verification verification) const {
    return {.input = options_.input, .verification = verification, .work = options_.save.work};
  }

  // nullopt if that fails for the bytes that are there. The first fault is the file's own.
  template <typename Open>
  std::optional<DamagedFile> attempt(const Open& open) {
    try {
      return open();
    } catch (const Error& error) {
      if (!is_damage(error) && !(dynamic_cast<const UnsupportedError*>(&error) && may_be_damage()))
        throw;
      if (fault_.empty()) fault_ = reason_of(error);
      return std::nullopt;
    }
  }

  // Whether a damaged byte may be why the file says that it is of another version.
  bool may_be_damage() const {
    const auto file = io::FileBytes::open(path_, options_.input.access);
    if (file->bytes().size() < sizeof(format::Header)) return false;
    const ByteSpan start = file->touched(0, sizeof(format::Header));
    try {
      container::require_plain(start, path_);
    } catch (const UnsupportedError&) {
      return false;
    }
    return !container::header_crc_holds(format::overlay<format::Header>(start, 0, "header"));
  }

  std::optional<DamagedFile> open_own() const {
    const auto bytes = container::open_bytes(path_, options_.input.access, options_.input.limits);
    // A side file holds no tensors. What is compressed is there as it was, where its frames hold.
    if (bytes->backing() == io::Backing::partial) container::require_plain(*bytes);
    auto file = std::make_shared<const detail::OpenFile>(bytes, read(Verification::off));
    return DamagedFile{file, bytes->bytes().size(), SalvageTables::header};
  }

  std::optional<DamagedFile> open_by_side_file() const {
    if (side_path_.empty()) return std::nullopt;
    const auto side = container::MetaFile::open(
        *io::FileBytes::open(side_path_, options_.input.access), options_.input.limits);
    return over_copy(side->bytes().size(), side.get(), SalvageTables::side_file);
  }

  // By the header of a file that ends before its end: if its directory is there, it may do.
  std::optional<DamagedFile> open_cut() const {
    const auto file = io::FileBytes::open(path_, options_.input.access);
    if (file->bytes().size() < sizeof(format::Header)) return std::nullopt;
    const auto header =
        format::overlay<format::Header>(file->touched(0, sizeof(format::Header)), 0, "header");
    if (!container::header_crc_holds(header) || header.file_length <= file->bytes().size() ||
        header.file_length > kLongestFile || header.directory_offset >= file->bytes().size())
      return std::nullopt;
    return over_copy(header.file_length, nullptr, SalvageTables::header);
  }

  std::optional<DamagedFile> open_by_record() const {
    ReadOptions options = read(Verification::off);
    options.use_commit_record = true;
    const auto bytes = io::FileBytes::open(path_, options_.input.access);
    container::require_plain(*bytes);
    if (bytes->bytes().size() < 2 * sizeof(format::Header)) return std::nullopt;
    auto file = std::make_shared<const detail::OpenFile>(bytes, options);
    return DamagedFile{file, bytes->bytes().size(), SalvageTables::commit_record};
  }

  DamagedFile over_copy(std::uint64_t length, const container::MetaFile* side,
                        SalvageTables tables) const {
    const io::UniqueFd from = io::open_for_reading(path_);
    io::UniqueFd to = io::create_unnamed_file(folder_);
    std::vector<std::byte> piece(1 << 20);
    const std::uint64_t available = std::min(length, io::file_size(from.get(), path_));
    for (std::uint64_t at = 0; at < available; at += piece.size()) {
      stop_if_cancelled(options_.save.work.cancel);
      const MutableByteSpan part = std::span(piece).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), available - at)));
      io::pread_all(from.get(), at, part, path_);
      io::pwrite_all(to.get(), at, part, path_);
    }
    io::set_file_size(to.get(), length, path_);
    if (side) {
      for (const format::Extent& extent : side->extents())
        io::pwrite_all(to.get(), extent.offset, side->touched(extent.offset, extent.length), path_);
    }
    auto file = std::make_shared<const detail::OpenFile>(
        io::open_descriptor(std::move(to), path_, options_.input.access), read(Verification::off));
    return {file, available, tables};
  }

  // Whether every table, name and text is what was written: by the blocks of the tree, or if the
  // file has none by its one checksum.
  bool tables_hold(const DamagedFile& damaged) {
    try {
      ReadOptions options = read(Verification::on_first_touch);
      // As the other: a header that does not hold was replaced.
      options.use_commit_record = damaged.tables == SalvageTables::commit_record;
      const auto bytes =
          std::shared_ptr<const io::FileBytes>(damaged.file, &damaged.file->mapping());
      touch_tables(std::make_shared<const detail::OpenFile>(bytes, options));
      return true;
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      if (fault_.empty()) fault_ = reason_of(error);
      return false;
    }
  }

  static void touch_tables(const std::shared_ptr<const detail::OpenFile>& file) {
    const format::Header& header = file->header();
    if (header.checksum_type != ChecksumType::block_tree) file->verify_all();
    if (header.metadata_length != 0)
      static_cast<void>(file->json({header.metadata_offset, header.metadata_length}, "metadata"));
    for (std::uint32_t r = 0; r < file->region_count(); ++r) {
      const RegionView region = file->region_view(r);
      static_cast<void>(container::region_spec(region));
      for (std::uint32_t i = 0; i < region.tensor_count(); ++i)
        static_cast<void>(region.tensor(i).name());
    }
    for (std::uint32_t i = 0; i < file->connection_count(); ++i)
      static_cast<void>(container::stored_connection(*file, i));
  }

  path path_;
  path folder_;
  path side_path_;  ///< empty: there is none
  const SalvageOptions& options_;
  std::string fault_;
  bool tables_verified_ = false;
};

}  // namespace

DamagedFile open_damaged(const path& input, const path& output, const SalvageOptions& options) {
  return SalvageInput(input, output, options).open();
}

}  // namespace thalia::state
