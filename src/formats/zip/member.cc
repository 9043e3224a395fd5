// The header before the data has to say what the directory says: a reader that trusts the one
// must see the same member as a reader that trusts the other.
#include "formats/zip/member.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/zip/deflate.h"
#include "formats/zip/records.h"

namespace thalia::formats::zip {
namespace {

[[noreturn]] void fail_member(ErrorCode code, std::string_view field, std::uint64_t offset,
                              std::string value, std::string bound, std::string message = {}) {
  fail_field(code, "zip member", field, offset, std::move(value), std::move(bound),
             std::move(message));
}

[[noreturn]] void refuse_member(std::string_view field, std::uint64_t offset, std::string value,
                                std::string message) {
  throw UnsupportedError(ErrorCode::unsupported_feature, std::move(message),
                         {.section = "zip member",
                          .field = std::string(field),
                          .offset = offset,
                          .value = std::move(value)});
}

std::string_view text_at(ByteSpan file, std::uint64_t offset, std::size_t length) {
  return {reinterpret_cast<const char*>(file.data()) + offset, length};
}

// What the zip64 part of an extra field holds; nullopt if there is none.
std::optional<ByteSpan> zip64_extra(ByteSpan extra, std::uint64_t offset) {
  std::optional<ByteSpan> found;
  // Less than a header at the end is padding, as some writers leave it.
  while (extra.size() >= sizeof(ExtraHeader)) {
    ExtraHeader header;
    std::memcpy(&header, extra.data(), sizeof(header));
    extra = extra.subspan(sizeof(header));
    if (header.length > extra.size()) {
      fail_member(ErrorCode::out_of_bounds, "extra", offset, std::to_string(header.length),
                  std::to_string(extra.size()), "a part of the extra field passes its end");
    }
    if (header.id == kZip64Extra) {
      if (found) fail_member(ErrorCode::inconsistent, "extra", offset, "two zip64 parts", "one");
      found = extra.first(header.length);
    }
    extra = extra.subspan(header.length);
  }
  return found;
}

// Takes the numbers that the fixed part had no room for, in their order.
class WideNumbers {
 public:
  WideNumbers(ByteSpan extra, std::uint64_t offset)
      : left_(zip64_extra(extra, offset)), offset_(offset) {}

  std::uint64_t of(std::string_view field, std::uint32_t narrow) {
    if (narrow != kInZip64 || !left_) return narrow;
    if (left_->size() < sizeof(format::le64)) {
      fail_member(ErrorCode::out_of_bounds, field, offset_,
                  fmt::format("{} bytes of zip64 numbers left", left_->size()), "8");
    }
    format::le64 wide;
    std::memcpy(&wide, left_->data(), sizeof(wide));
    left_ = left_->subspan(sizeof(wide));
    return wide;
  }

 private:
  std::optional<ByteSpan> left_;
  std::uint64_t offset_;
};

void check_flags(std::uint16_t flags, std::uint64_t offset) {
  if ((flags & (kEncrypted | kStrongEncryption | kMaskedHeaders)) != 0)
    refuse_member("flags", offset, fmt::format("{:#06x}", flags), "the member is encrypted");
  if ((flags & kPatched) != 0)
    refuse_member("flags", offset, fmt::format("{:#06x}", flags), "the member is a patch");
}

std::string_view method_name(std::uint16_t method) {
  switch (method) {
    case 1:
      return " (shrunk)";
    case 6:
      return " (imploded)";
    case 9:
      return " (deflate64)";
    case 12:
      return " (bzip2)";
    case 14:
      return " (lzma)";
    case 93:
      return " (zstd)";
    case 95:
      return " (xz)";
    case 99:
      return " (AES encryption)";
    default:
      return "";
  }
}

ZipMethod checked_method(std::uint16_t method, std::uint64_t offset) {
  if (method != kStored && method != kDeflated) {
    refuse_member("method", offset, fmt::format("{}{}", method, method_name(method)),
                  "only stored (0) and deflated (8) members are read");
  }
  return static_cast<ZipMethod>(method);
}

std::string checked_name(std::string_view name, std::uint16_t flags, std::uint64_t offset) {
  if ((flags & kUtf8) == 0 && !is_zip_ascii(name))
    refuse_member("name", offset, printable(name), "the name is neither ASCII nor UTF-8");
  const std::string_view fault = zip_name_fault(name);
  if (!fault.empty())
    fail_member(ErrorCode::bad_name, "name", offset, printable(name), "", std::string(fault));
  return std::string(name);
}

void check_sizes(const ZipMember& member, std::uint64_t offset) {
  if (member.method == ZipMethod::stored) {
    if (member.raw_bytes != member.stored_bytes) {
      fail_member(ErrorCode::inconsistent, "raw_bytes", offset, std::to_string(member.raw_bytes),
                  std::to_string(member.stored_bytes), "a stored member of two sizes");
    }
  } else if (member.raw_bytes / kMostInflation > member.stored_bytes) {
    throw CompressionError(
        "deflate", "more content than the member's bytes can hold",
        {.section = "zip member",
         .field = "raw_bytes",
         .offset = offset,
         .value = std::to_string(member.raw_bytes),
         .bound = fmt::format("{} times {}", kMostInflation, member.stored_bytes)});
  }
}

// The header before the data says the same as the directory. Where CRC and sizes follow
// the data, it does not have them.
void check_local(const LocalHeader& local, const ZipMember& member, ByteSpan extra) {
  const std::uint64_t offset = member.header_offset;
  const auto agree = [&](std::string_view field, std::uint64_t here, std::uint64_t expected) {
    if (here == expected) return;
    fail_member(ErrorCode::inconsistent, field, offset, std::to_string(here),
                fmt::format("{}, as the directory says", expected));
  };
  // Others say how a stream was made, or what the name is encoded in, and the name is the same.
  constexpr std::uint16_t kThatCount =
      kEncrypted | kDescriptor | kPatched | kStrongEncryption | kMaskedHeaders;
  agree("flags", local.flags & kThatCount, member.flags & kThatCount);
  agree("method", local.method, static_cast<std::uint16_t>(member.method));
  if ((member.flags & kDescriptor) != 0) return;
  agree("crc32", local.crc32, member.crc32);
  WideNumbers wide(extra, offset);
  const std::uint64_t raw = wide.of("raw_bytes", local.raw_bytes);
  agree("raw_bytes", raw, member.raw_bytes);
  agree("stored_bytes", wide.of("stored_bytes", local.stored_bytes), member.stored_bytes);
}

// Finds the member's data by the header before it, all before `end`.
void place(ByteSpan file, std::uint64_t end, std::string_view name, ZipMember& member) {
  const std::uint64_t offset = member.header_offset;
  if (end < sizeof(LocalHeader) || offset > end - sizeof(LocalHeader)) {
    fail_member(ErrorCode::out_of_bounds, "header_offset", offset, std::to_string(offset),
                fmt::format("{} bytes before {}", sizeof(LocalHeader), end));
  }
  LocalHeader local;
  std::memcpy(&local, file.data() + offset, sizeof(local));
  if (local.signature != kLocalSignature)
    fail_member(ErrorCode::bad_magic, "signature", offset, "other bytes", "PK and the bytes 3, 4");
  std::uint64_t left = end - offset - sizeof(LocalHeader);
  const std::uint64_t names = std::uint64_t{local.name_length} + local.extra_length;
  if (names > left) {
    fail_member(ErrorCode::out_of_bounds, "name_length", offset, std::to_string(names),
                std::to_string(left));
  }
  const std::uint64_t name_offset = offset + sizeof(LocalHeader);
  const std::string_view here = text_at(file, name_offset, local.name_length);
  if (here != name) {
    fail_member(ErrorCode::inconsistent, "name", offset, printable(here),
                fmt::format("{}, as the directory says", printable(name)));
  }
  member.local_extra = file.subspan(name_offset + local.name_length, local.extra_length);
  member.local_version_needed = local.version_needed;
  check_local(local, member, member.local_extra);
  left -= names;
  if (member.stored_bytes > left) {
    fail_member(ErrorCode::out_of_bounds, "stored_bytes", offset,
                std::to_string(member.stored_bytes), std::to_string(left));
  }
  member.offset = name_offset + names;
}

}  // namespace
}  // namespace thalia::formats::zip

namespace thalia::formats {

ZipMember read_zip_member(ByteSpan file, std::uint64_t& offset, std::uint64_t end,
                          std::uint64_t directory) {
  if (end - offset < sizeof(zip::CentralHeader)) {
    zip::fail_member(ErrorCode::truncated, "directory", offset,
                     fmt::format("{} bytes", end - offset),
                     std::to_string(sizeof(zip::CentralHeader)));
  }
  zip::CentralHeader header;
  std::memcpy(&header, file.data() + offset, sizeof(header));
  if (header.signature != zip::kCentralSignature)
    zip::fail_member(ErrorCode::bad_magic, "signature", offset, "other bytes",
                     "PK and the bytes 1, 2");
  const std::uint64_t left = end - offset - sizeof(header);
  const std::uint64_t tail =
      std::uint64_t{header.name_length} + header.extra_length + header.comment_length;
  if (tail > left) {
    zip::fail_member(ErrorCode::out_of_bounds, "name_length", offset, std::to_string(tail),
                     std::to_string(left));
  }
  const std::uint64_t name_offset = offset + sizeof(header);
  const std::string_view name = zip::text_at(file, name_offset, header.name_length);
  try {
    zip::check_flags(header.flags, offset);
    ZipMember member{.name = zip::checked_name(name, header.flags, offset),
                     .method = zip::checked_method(header.method, offset),
                     .crc32 = header.crc32,
                     .flags = header.flags,
                     .version_made_by = header.version_made_by,
                     .version_needed = header.version_needed,
                     .time = header.time,
                     .date = header.date,
                     .external_attributes = header.external_attributes};
    zip::WideNumbers wide(file.subspan(name_offset + header.name_length, header.extra_length),
                          offset);
    member.raw_bytes = wide.of("raw_bytes", header.raw_bytes);
    member.stored_bytes = wide.of("stored_bytes", header.stored_bytes);
    member.header_offset = wide.of("header_offset", header.header_offset);
    if (header.disk != 0 && header.disk != zip::kCountInZip64)
      zip::refuse_member("disk", offset, std::to_string(header.disk),
                         "the member lies on another disk");
    zip::check_sizes(member, offset);
    zip::place(file, directory, name, member);
    offset = name_offset + tail;
    return member;
  } catch (Error& error) {
    error.add_tensor(printable(name));
    throw;
  }
}

bool is_zip_ascii(std::string_view name) noexcept {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Nothing is unpacked to a path, so an absolute one is a name like any other, as it is to NumPy.
std::string_view zip_name_fault(std::string_view name) noexcept {
  if (name.empty()) return "a member without a name";
  if (name.find('\0') != std::string_view::npos) return "a zero byte in the name";
  if (!is_valid_utf8(name)) return "the name is no valid UTF-8";
  if (name.size() > 65'535) return "the name is longer than 65535 bytes";
  return {};
}

void check_zip_crc(const ZipMember& member, std::uint32_t actual) {
  if (actual == member.crc32) return;
  throw IntegrityError(ErrorCode::checksum_mismatch,
                       "the member's bytes are not those that were written",
                       {.section = "zip member",
                        .field = "crc32",
                        .tensor = printable(member.name),
                        .offset = member.offset,
                        .value = fmt::format("{:08x}", actual),
                        .bound = fmt::format("{:08x}", member.crc32)});
}

}  // namespace thalia::formats
