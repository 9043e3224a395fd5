// Straight through: a member's data is written once, and only the header before it a second
// time, once CRC and sizes are known. With descriptors nothing is written twice.
#include "formats/zip/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/zip/records.h"
#include "integrity/crc32.h"

namespace thalia::formats::zip {
namespace {

constexpr std::uint32_t kMostAlignment = 32'768;
// What "FB" reads as.
constexpr std::uint16_t kPaddingExtra = 0x4246;

template <typename Record>
void append_record(std::string& out, const Record& record) {
  out.append(reinterpret_cast<const char*>(&record), sizeof(record));
}

template <typename... Numbers>
void append_zip64(std::string& out, Numbers... numbers) {
  append_record(out, ExtraHeader{kZip64Extra, static_cast<std::uint16_t>(8 * sizeof...(numbers))});
  (append_record(out, format::le64(numbers)), ...);
}

std::uint32_t narrow(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, kInZip64));
}

std::uint16_t asking_for_zip64(std::uint16_t version) {
  return static_cast<std::uint16_t>((version & 0xff00) |
                                    std::max<unsigned>(version & 0xff, kVersionOfZip64));
}

}  // namespace
}  // namespace thalia::formats::zip

namespace thalia::formats {

ZipWriter::ZipWriter(OutputFile& out, const ZipStyle& style) : out_(out), style_(style) {
  assert(out.size() == 0);
}

std::string ZipWriter::local_head(const ZipMember& member) const {
  // After the data, they are left out here; of those that torch.save counts in 64 bits, the first
  // is there all the same.
  const bool behind = style_.descriptors;
  std::string extra;
  if (!behind) {
    if (open_.wide) zip::append_zip64(extra, member.raw_bytes, member.stored_bytes);
  } else if (is_wide(member.raw_bytes) && is_wide(member.header_offset)) {
    zip::append_zip64(extra, member.raw_bytes, std::uint64_t{0}, member.header_offset);
  } else if (is_wide(member.raw_bytes)) {
    zip::append_zip64(extra, member.raw_bytes, std::uint64_t{0});
  } else if (is_wide(member.header_offset)) {
    zip::append_zip64(extra, member.header_offset);
  }
  if (open_.options.alignment != 0) {
    const std::uint64_t start = member.header_offset + sizeof(zip::LocalHeader) +
                                member.name.size() + extra.size() + sizeof(zip::ExtraHeader);
    const std::uint64_t alignment = open_.options.alignment;
    const std::uint64_t padding = (alignment - start % alignment) % alignment;
    zip::append_record(extra,
                       zip::ExtraHeader{zip::kPaddingExtra, static_cast<std::uint16_t>(padding)});
    extra.append(padding, 'Z');
  }
  const bool saturated = open_.wide && (style_.strict_zip64 || is_wide(member.raw_bytes) ||
                                        is_wide(member.stored_bytes));
  zip::LocalHeader header{
      .signature = zip::kLocalSignature,
      .version_needed = member.version_needed,
      .flags = member.flags,
      .method = static_cast<std::uint16_t>(member.method),
      .time = member.time,
      .date = member.date,
      .crc32 = behind ? 0 : member.crc32,
      .stored_bytes = saturated ? zip::kInZip64 : zip::narrow(member.stored_bytes),
      .raw_bytes = saturated ? zip::kInZip64 : zip::narrow(member.raw_bytes),
      .name_length = static_cast<std::uint16_t>(member.name.size()),
      .extra_length = static_cast<std::uint16_t>(extra.size())};
  if (behind) header.stored_bytes = header.raw_bytes = 0;
  std::string head;
  zip::append_record(head, header);
  return head + member.name + extra;
}

void ZipWriter::begin(std::string_view name, std::uint64_t raw_bytes, const ZipNewMember& options) {
  assert(!is_open_);
  check_option("alignment", options.alignment, 0u, zip::kMostAlignment);
  const std::string_view fault = zip_name_fault(name);
  if (!fault.empty())
    fail_argument(ErrorCode::bad_argument, "name", printable(name), "", std::string(fault));
  if (!names_.emplace(name).second)
    fail_argument(ErrorCode::duplicate, "name", printable(name), "", "two members have one name");
  open_ = {.options = options, .raw_bytes = raw_bytes};
  // Deflating what cannot be made smaller adds 5 bytes to each 16 KiB, and a few.
  const std::uint64_t most = raw_bytes + (options.deflated ? raw_bytes / 1'000 + 64 : 0);
  open_.wide = options.force_zip64 || is_wide(most);

  ZipMember member{.name = std::string(name),
                   .method = options.deflated ? ZipMethod::deflated : ZipMethod::stored,
                   .raw_bytes = raw_bytes,
                   .header_offset = out_.size(),
                   .version_made_by = style_.made_by,
                   .version_needed = style_.version_needed,
                   .time = 0,
                   .date = style_.date,
                   .external_attributes = style_.external_attributes};
  if (options.deflated) member.version_needed = std::max<std::uint16_t>(member.version_needed, 20);
  if (style_.always_utf8 || !is_zip_ascii(name)) member.flags |= zip::kUtf8;
  if (style_.descriptors && raw_bytes != 0) member.flags |= zip::kDescriptor;
  const std::string head = local_head(member);
  out_.write(as_byte_span(head));
  member.offset = out_.size();
  members_.push_back(std::move(member));
  if (options.deflated) deflate_.emplace(options.level);
  is_open_ = true;
}

void ZipWriter::write(ByteSpan piece) {
  assert(is_open_);
  if (piece.size() > open_.raw_bytes - open_.written) {
    fail_argument(ErrorCode::size_mismatch, "piece",
                  fmt::format("{} bytes", open_.written + piece.size()),
                  std::to_string(open_.raw_bytes));
  }
  ZipMember& member = members_.back();
  member.crc32 = integrity::crc32(piece, member.crc32);
  open_.written += piece.size();
  if (deflate_) return deflate_->write(piece, [&](ByteSpan coded) { out_.write(coded); });
  out_.write(piece);
}

void ZipWriter::end() {
  assert(is_open_);
  ZipMember& member = members_.back();
  if (open_.written != open_.raw_bytes) {
    fail_argument(ErrorCode::size_mismatch, "member", fmt::format("{} bytes", open_.written),
                  std::to_string(open_.raw_bytes));
  }
  if (deflate_) deflate_->finish([&](ByteSpan coded) { out_.write(coded); });
  deflate_.reset();
  member.stored_bytes = out_.size() - member.offset;
  const bool sizes_are_wide = is_wide(member.raw_bytes) || is_wide(member.stored_bytes);
  if (style_.marks_zip64 && open_.wide && (style_.strict_zip64 || sizes_are_wide)) {
    member.version_needed = zip::asking_for_zip64(member.version_needed);
    member.version_made_by = zip::asking_for_zip64(member.version_made_by);
  }
  if (!style_.descriptors) {
    const std::string head = local_head(member);
    out_.overwrite(member.header_offset, as_byte_span(head));
  } else if ((member.flags & zip::kDescriptor) != 0) {
    std::string behind;
    zip::append_record(behind, format::le32(zip::kDescriptorSignature));
    zip::append_record(behind, format::le32(member.crc32));
    if (is_wide(member.raw_bytes) || is_wide(member.header_offset)) {
      zip::append_record(behind, format::le64(member.stored_bytes));
      zip::append_record(behind, format::le64(member.raw_bytes));
    } else {
      zip::append_record(behind, format::le32(zip::narrow(member.stored_bytes)));
      zip::append_record(behind, format::le32(zip::narrow(member.raw_bytes)));
    }
    out_.write(as_byte_span(behind));
  }
  is_open_ = false;
}

void ZipWriter::add(std::string_view name, ByteSpan bytes, const ZipNewMember& options) {
  begin(name, bytes.size(), options);
  write(bytes);
  end();
}

void ZipWriter::write_directory_entry(const ZipMember& member) {
  const bool sizes = is_wide(member.raw_bytes) || is_wide(member.stored_bytes);
  const bool offset = is_wide(member.header_offset);
  std::string extra;
  if (sizes && offset) {
    zip::append_zip64(extra, member.raw_bytes, member.stored_bytes, member.header_offset);
  } else if (sizes) {
    zip::append_zip64(extra, member.raw_bytes, member.stored_bytes);
  } else if (offset) {
    zip::append_zip64(extra, member.header_offset);
  }
  const bool marked = style_.marks_zip64 && !extra.empty();
  const auto version = [&](std::uint16_t own) { return marked ? zip::asking_for_zip64(own) : own; };
  const zip::CentralHeader header{
      .signature = zip::kCentralSignature,
      .version_made_by = version(member.version_made_by),
      .version_needed = version(member.version_needed),
      .flags = member.flags,
      .method = static_cast<std::uint16_t>(member.method),
      .time = member.time,
      .date = member.date,
      .crc32 = member.crc32,
      .stored_bytes = sizes ? zip::kInZip64 : zip::narrow(member.stored_bytes),
      .raw_bytes = sizes ? zip::kInZip64 : zip::narrow(member.raw_bytes),
      .name_length = static_cast<std::uint16_t>(member.name.size()),
      .extra_length = static_cast<std::uint16_t>(extra.size()),
      .comment_length = 0,
      .disk = 0,
      .internal_attributes = 0,
      .external_attributes = member.external_attributes,
      .header_offset = offset ? zip::kInZip64 : zip::narrow(member.header_offset)};
  std::string entry;
  zip::append_record(entry, header);
  entry += member.name;
  entry += extra;
  out_.write(as_byte_span(entry));
}

std::uint64_t ZipWriter::finish() {
  assert(!is_open_);
  const std::uint64_t directory = out_.size();
  for (const ZipMember& member : members_) write_directory_entry(member);
  const std::uint64_t directory_end = out_.size();
  const std::uint64_t bytes = directory_end - directory;
  const std::uint64_t count = members_.size();
  std::string end;
  if (style_.always_zip64_end || count > zip::kCountInZip64 || is_wide(directory) ||
      is_wide(bytes)) {
    zip::append_record(end, zip::End64Record{.signature = zip::kEnd64Signature,
                                             .record_bytes = sizeof(zip::End64Record) - 12,
                                             .version_made_by = style_.end64_made_by,
                                             .version_needed = zip::kVersionOfZip64,
                                             .disk = 0,
                                             .directory_disk = 0,
                                             .members_on_disk = count,
                                             .members = count,
                                             .directory_bytes = bytes,
                                             .directory_offset = directory});
    zip::append_record(end, zip::End64Locator{.signature = zip::kLocatorSignature,
                                              .disk = 0,
                                              .record_offset = directory_end,
                                              .disks = 1});
  }
  const auto members =
      static_cast<std::uint16_t>(std::min<std::uint64_t>(count, zip::kCountInZip64));
  zip::append_record(end, zip::EndRecord{.signature = zip::kEndSignature,
                                         .disk = 0,
                                         .directory_disk = 0,
                                         .members_on_disk = members,
                                         .members = members,
                                         .directory_bytes = zip::narrow(bytes),
                                         .directory_offset = zip::narrow(directory),
                                         .comment_length = 0});
  out_.write(as_byte_span(end));
  return out_.size();
}

}  // namespace thalia::formats
