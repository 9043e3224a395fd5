// The fixed parts of 0.1 files. Every offset and length is checked here to lie between the header
// and the checksum, so later readers may use them unchecked. Fields that mean nothing are not
// refused, whatever they hold; they become warnings.
#include "formats/v01/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/fixed_name.h"
#include "format/header.h"
#include "format/v01.h"

namespace thalia::formats {
namespace {

using format::V01RegionEntry;

constexpr std::uint64_t kNameField = sizeof(V01RegionEntry::name);

[[noreturn]] void fail_v01_header(ErrorCode code, std::string_view field, std::size_t offset,
                                  std::string value, std::string bound) {
  fail_field(code, "header", field, offset, std::move(value), std::move(bound));
}

void warn_of_version(const format::V01FileHeader& header, Sentences& warnings) {
  if (header.minor_version != 1 || header.patch_version != 0) {
    warnings.push_back(fmt::format("format version 0.{}.{} is read as 0.1.0",
                                   std::uint16_t{header.minor_version},
                                   std::uint16_t{header.patch_version}));
  }
}

void check_extent(const format::V01FileHeader& header, std::string_view part, format::Extent extent,
                  std::size_t field, std::uint64_t body_bytes) {
  if (format::lies_within(extent, sizeof header, body_bytes)) return;
  fail_v01_header(ErrorCode::out_of_bounds, fmt::format("{}_offset", part), field,
                  fmt::format("{} and a length of {}", extent.offset, extent.length),
                  fmt::format("{} to {}, where the checksum begins", sizeof header, body_bytes));
}

void warn_of_unused_fields(const format::V01FileHeader& header, Sentences& warnings) {
  if (header.checksum_type == 0)
    // The original writes the checksum whatever the field says.
    warnings.push_back("checksum type 0 (none), and the checksum is there and right");
  if (header.flags != 0)
    warnings.push_back(fmt::format("flags {:#06x} mean nothing", std::uint16_t{header.flags}));
  if (header.connectivity_offset != 0 || header.connectivity_length != 0)
    warnings.push_back("a connectivity section that no program wrote is not read");
  if (std::ranges::any_of(header.reserved, [](std::uint8_t byte) { return byte != 0; }))
    warnings.push_back("reserved bytes of the header are not zero");
}

// The original program cut names to 31 bytes, even in the middle of a character, and could not read
// such a name back. What is left of the character is dropped.
std::string whole_characters(std::string_view name, std::uint64_t offset, Sentences& warnings) {
  const std::size_t fault = find_invalid_utf8(name);
  if (fault == std::string_view::npos) return std::string(name);
  const std::string_view whole = name.substr(0, fault);
  // Only a character that the 31 bytes cut off is forgiven, no other fault.
  const bool cut = name.size() == kNameField - 1 && name.size() - fault < 4 &&
                   (static_cast<unsigned char>(name[fault]) & 0xC0) == 0xC0;
  if (!cut) {
    fail_field(ErrorCode::bad_name, "region_index", "name", offset, printable(name), "UTF-8");
  }
  warnings.push_back(
      fmt::format("the name of region '{}' was cut inside a character", printable(whole)));
  return std::string(whole);
}

}  // namespace

format::V01FileHeader to_disk(const V01Header& header) noexcept {
  format::V01FileHeader disk{};
  std::memcpy(disk.magic, format::kMagic, sizeof disk.magic);
  disk.major_version = header.version.major;
  disk.minor_version = header.version.minor;
  disk.patch_version = header.version.patch;
  disk.flags = header.flags;
  disk.timestamp = header.timestamp;
  disk.metadata_offset = sizeof disk;
  disk.connectivity_offset = header.connectivity_offset;
  disk.connectivity_length = header.connectivity_length;
  disk.total_neurons = header.total_neurons;
  disk.total_synapses = header.total_synapses;
  disk.training_steps = header.training_steps;
  disk.checksum_type = header.checksum_type;
  static_assert(sizeof header.reserved == sizeof disk.reserved);
  std::memcpy(disk.reserved, header.reserved.data(), sizeof disk.reserved);
  return disk;
}

V01Header from_disk(const format::V01FileHeader& disk) noexcept {
  V01Header header{{.timestamp = disk.timestamp,
                    .total_neurons = disk.total_neurons,
                    .total_synapses = disk.total_synapses,
                    .training_steps = disk.training_steps},
                   {disk.major_version, disk.minor_version, disk.patch_version},
                   disk.flags,
                   disk.connectivity_offset,
                   disk.connectivity_length,
                   disk.checksum_type};
  std::memcpy(header.reserved.data(), disk.reserved, sizeof disk.reserved);
  return header;
}

bool begins_as_v01(ByteSpan start) noexcept {
  constexpr std::uint8_t kStart[6] = {
      format::kMagic[0], format::kMagic[1], format::kMagic[2], format::kMagic[3], 0, 0};
  return start.size() >= sizeof kStart && std::memcmp(start.data(), kStart, sizeof kStart) == 0;
}

// Runs before the checksum is verified, so it follows no offset.
void require_v01_start(ByteSpan file) {
  if (file.size() < sizeof(format::V01FileHeader)) {
    throw FormatError(ErrorCode::truncated, "no room for the header",
                      {.section = "header",
                       .offset = 0,
                       .value = fmt::format("{} bytes", file.size()),
                       .bound = fmt::format("at least {}", sizeof(format::V01FileHeader))});
  }
  format::V01FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, format::kMagic, sizeof header.magic) != 0) {
    const std::string_view magic(reinterpret_cast<const char*>(header.magic), sizeof header.magic);
    fail_v01_header(ErrorCode::bad_magic, "magic", 0, printable(magic), "THAL");
  }
  if (header.major_version != 0) {
    throw UnsupportedError(ErrorCode::unsupported_version,
                           "another major version than the original program's",
                           {.section = "header",
                            .field = "major_version",
                            .offset = offsetof(format::V01FileHeader, major_version),
                            .value = std::to_string(header.major_version),
                            .bound = "0"});
  }
  if (header.num_regions == 0) {
    fail_v01_header(ErrorCode::bad_value, "num_regions",
                    offsetof(format::V01FileHeader, num_regions), "0", "1 or more");
  }
}

format::V01FileHeader read_v01_header(ByteSpan body, const ReadLimits& limits,
                                      Sentences& warnings) {
  require_v01_start(body);
  format::V01FileHeader header;
  std::memcpy(&header, body.data(), sizeof header);
  warn_of_version(header, warnings);
  if (header.checksum_type > 1) {
    fail_v01_header(ErrorCode::bad_value, "checksum_type",
                    offsetof(format::V01FileHeader, checksum_type),
                    std::to_string(header.checksum_type), "0 or 1");
  }
  const auto part = [&](std::string_view name, std::uint64_t offset, std::uint64_t length,
                        std::size_t field) {
    check_extent(header, name, {offset, length}, field, body.size());
  };
  part("metadata", header.metadata_offset, header.metadata_length,
       offsetof(format::V01FileHeader, metadata_offset));
  part("region_index", header.region_index_offset, header.region_index_length,
       offsetof(format::V01FileHeader, region_index_offset));
  // A rest that makes no whole entry is passed over below, with a warning.
  const std::uint64_t entries = header.region_index_length / sizeof(V01RegionEntry);
  if (entries != header.num_regions) {
    fail_v01_header(ErrorCode::inconsistent, "num_regions",
                    offsetof(format::V01FileHeader, num_regions),
                    std::to_string(header.num_regions),
                    fmt::format("{}, the entries of the region index", entries));
  }
  // After the comparison with the index, which bounds it by the file's length.
  if (header.num_regions > limits.max_regions)
    fail_limit("header", "max_regions", header.num_regions, limits.max_regions);
  if (header.region_index_length % sizeof(V01RegionEntry) != 0) {
    warnings.push_back(fmt::format("{} bytes after the last entry of the region index",
                                   header.region_index_length % sizeof(V01RegionEntry)));
  }
  warn_of_unused_fields(header, warnings);
  return header;
}

std::vector<V01IndexEntry> read_v01_index(ByteSpan body, const format::V01FileHeader& header,
                                          Sentences& warnings) {
  std::vector<V01IndexEntry> index;
  std::unordered_set<std::string> names;
  for (std::uint32_t i = 0; i < header.num_regions; ++i) {
    const std::uint64_t offset = header.region_index_offset + i * sizeof(V01RegionEntry);
    V01RegionEntry entry;
    std::memcpy(&entry, body.data() + offset, sizeof entry);
    const V01Extent json{entry.data_offset, entry.data_length};
    if (!format::lies_within({json.offset, json.length}, sizeof header, body.size())) {
      throw FormatError(ErrorCode::out_of_bounds, {},
                        {.section = "region_index",
                         .field = "data_offset",
                         .region = printable(format::fixed_name(entry.name)),
                         .offset = offset + offsetof(V01RegionEntry, data_offset),
                         .value = fmt::format("{} and a length of {}", json.offset, json.length),
                         .bound = fmt::format("{} to {}, where the checksum begins", sizeof header,
                                              body.size())});
    }
    if (!format::is_fixed_name(entry.name)) {
      fail_field(ErrorCode::bad_name, "region_index", "name", offset,
                 printable({reinterpret_cast<const char*>(entry.name), kNameField}),
                 "at most 31 bytes, then NUL to the end of the field");
    }
    std::string name = whole_characters(format::fixed_name(entry.name), offset, warnings);
    // Both are read; from_v01() takes the last one, as a Python dictionary would.
    if (!names.insert(name).second) {
      warnings.push_back(
          fmt::format("two regions are called '{}': the last one counts", printable(name)));
    }
    index.push_back({std::move(name), json});
  }
  return index;
}

V01RegionEntry make_v01_index_entry(const std::string& name, V01Extent json) {
  const auto refuse = [&](std::string value, std::string bound) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "no name that a region of a 0.1 file can have",
                           {.section = "region_index",
                            .field = "name",
                            .region = printable(name),
                            .value = std::move(value),
                            .bound = std::move(bound)});
  };
  if (name.size() >= kNameField)
    refuse(fmt::format("{} bytes", name.size()), fmt::format("at most {}", kNameField - 1));
  if (!is_valid_utf8(name)) refuse("bytes that are no UTF-8", "UTF-8");
  if (name.find('\0') != std::string::npos) refuse("a NUL byte", "none");
  V01RegionEntry entry{};
  std::memcpy(entry.name, name.data(), name.size());
  entry.data_offset = json.offset;
  entry.data_length = json.length;
  return entry;
}

}  // namespace thalia::formats
