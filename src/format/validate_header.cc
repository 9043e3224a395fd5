// Checks the header in an order in which each field rests on those before: lengths against the
// file, then the tail from the end of the file inwards, then the sections before it. So no sum
// of offsets wraps, and each section that passes lies inside the file. The caller has checked the
// CRC; what is wrong here was written so, and says nothing about damage. Limits of the caller come
// last, as a length that the file cannot have is a fault of the file and not a limit to raise.
#include "format/validate_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/connectivity.h"
#include "format/constants.h"
#include "format/directory.h"
#include "format/extent.h"
#include "format/foreign_file.h"
#include "format/region.h"

namespace thalia::format {
namespace {

#define HEADER_AT(field) "header", #field, offsetof(Header, field)

void check_zero(const char* field, std::size_t at, std::span<const std::uint8_t> bytes) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; });
  if (bad != bytes.end()) {
    fail_field(ErrorCode::bad_value, "header", field,
               at + static_cast<std::size_t>(bad - bytes.begin()), std::to_string(*bad), "0");
  }
}

// A walk over sections that follow each other: each on a multiple of 64 and after the one before.
// An absent section has offset 0 and length 0.
class SectionWalk {
 public:
  SectionWalk(std::uint64_t begin, std::uint64_t end) : behind_(begin), end_(end) {}

  void optional(const char* field, std::size_t at, Extent section) {
    if (section.length != 0) return required(field, at, section);
    if (section.offset == 0) return;
    fail_field(ErrorCode::bad_value, "header", field, at, std::to_string(section.offset),
               "0 of a section that is absent");
  }
  void required(const char* field, std::size_t at, Extent section) {
    if (section.offset % kAlignment != 0) {
      fail_field(ErrorCode::bad_value, "header", field, at, std::to_string(section.offset),
                 fmt::format("a multiple of {}", kAlignment));
    }
    if (!lies_within(section, behind_, end_)) {
      fail_field(ErrorCode::out_of_bounds, "header", field, at,
                 fmt::format("[{}, +{})", section.offset, section.length),
                 fmt::format("within [{}, {})", behind_, end_));
    }
    behind_ = section.offset + section.length;
  }
  std::uint64_t behind() const { return behind_; }

 private:
  std::uint64_t behind_;
  std::uint64_t end_;
};

void validate_checksum_fields(const Header& header) {
  const std::uint32_t type = code_of(ChecksumType{header.checksum_type});
  if (type > code_of(ChecksumType::block_tree)) {
    fail_field(ErrorCode::bad_value, HEADER_AT(checksum_type), std::to_string(type), "0 to 3");
  }
  const bool tree = header.checksum_type == ChecksumType::block_tree;
  const unsigned lowest_log2 = tree ? kMinBlockLog2 : 0;
  const unsigned highest_log2 = tree ? kMaxBlockLog2 : 0;
  if (header.integrity_block_log2 < lowest_log2 || header.integrity_block_log2 > highest_log2) {
    fail_field(ErrorCode::bad_value, HEADER_AT(integrity_block_log2),
               std::to_string(header.integrity_block_log2),
               fmt::format("{} to {}", lowest_log2, highest_log2));
  }
  const LeafAlgorithm leaves = header.leaf_algorithm;
  if (tree ? leaves != LeafAlgorithm::xxh3_128 && leaves != LeafAlgorithm::sha256
           : leaves != LeafAlgorithm{}) {
    fail_field(ErrorCode::bad_value, HEADER_AT(leaf_algorithm), std::to_string(code_of(leaves)),
               tree ? "1 (XXH3-128) or 2 (SHA-256)" : "0");
  }
}

std::uint64_t expected_integrity_length(const Header& header) {
  if (header.checksum_type != ChecksumType::block_tree) return 0;
  const std::uint64_t block = 1ull << header.integrity_block_log2;
  // Divides, as a sum with the size of a block could wrap. The offset lies inside the file by now,
  // so the product below does not.
  const std::uint64_t blocks =
      header.integrity_offset / block + (header.integrity_offset % block != 0);
  return blocks * (header.leaf_algorithm == LeafAlgorithm::sha256 ? 32 : 16);
}

// From the end of the file inwards: closing checksum, integrity table, and room before them
// for the commit record and the header.
void validate_tail(const Header& header) {
  if (header.file_length < 2 * sizeof(Header) + kChecksumLength) {
    fail_field(ErrorCode::truncated, HEADER_AT(file_length), std::to_string(header.file_length),
               fmt::format("at least {}", 2 * sizeof(Header) + kChecksumLength));
  }
  const std::uint64_t tail = header.file_length - kChecksumLength;
  if (!lies_within({header.integrity_offset, header.integrity_length}, 2 * sizeof(Header), tail) ||
      header.integrity_offset + header.integrity_length != tail) {
    fail_field(ErrorCode::out_of_bounds, HEADER_AT(integrity_offset),
               fmt::format("[{}, +{})", std::uint64_t{header.integrity_offset},
                           std::uint64_t{header.integrity_length}),
               fmt::format("ends at the checksum, {}", tail));
  }
  const std::uint64_t expected = expected_integrity_length(header);
  if (header.integrity_length != expected) {
    fail_field(ErrorCode::bad_value, HEADER_AT(integrity_length),
               std::to_string(header.integrity_length), std::to_string(expected));
  }
}

// Before the directory, in any order: an append puts new metadata after connections that stay
// where they are. So each is walked alone, and then compared with the other.
void validate_data_sections(const Header& header) {
  const Extent metadata{header.metadata_offset, header.metadata_length};
  const Extent connectivity{header.connectivity_offset, header.connectivity_length};
  if (connectivity.length != 0 && connectivity.length < sizeof(ConnectivityHeader)) {
    fail_field(ErrorCode::bad_value, HEADER_AT(connectivity_length),
               std::to_string(connectivity.length),
               fmt::format("0, or {} or more", sizeof(ConnectivityHeader)));
  }
  SectionWalk(sizeof(Header), header.directory_offset)
      .optional("metadata_offset", offsetof(Header, metadata_offset), metadata);
  SectionWalk(sizeof(Header), header.directory_offset)
      .optional("connectivity_offset", offsetof(Header, connectivity_offset), connectivity);
  if (metadata.offset < connectivity.offset + connectivity.length &&
      connectivity.offset < metadata.offset + metadata.length) {
    fail_field(ErrorCode::out_of_bounds, HEADER_AT(connectivity_offset),
               fmt::format("[{}, +{})", connectivity.offset, connectivity.length),
               fmt::format("apart from the metadata, [{}, +{})", metadata.offset, metadata.length));
  }
}

void validate_sections(const Header& header) {
  if (header.directory_length < sizeof(DirectoryHeader)) {
    fail_field(ErrorCode::bad_value, HEADER_AT(directory_length),
               std::to_string(header.directory_length),
               fmt::format("{} or more", sizeof(DirectoryHeader)));
  }
  SectionWalk walk(sizeof(Header), header.integrity_offset - sizeof(Header));
  walk.required("directory_offset", offsetof(Header, directory_offset),
                {header.directory_offset, header.directory_length});
  // One number is left for the region of the connections' matrices.
  constexpr std::uint32_t kMost = 0xffff'fffe;
  if (header.num_regions > kMost) {
    fail_field(ErrorCode::bad_value, HEADER_AT(num_regions), std::to_string(header.num_regions),
               fmt::format("at most {}", kMost));
  }
  const std::uint64_t index_length = std::uint64_t{header.num_regions} * sizeof(RegionIndexEntry);
  if (header.region_index_length != index_length) {
    fail_field(ErrorCode::bad_value, HEADER_AT(region_index_length),
               std::to_string(header.region_index_length),
               fmt::format("{} for {} regions", index_length, std::uint32_t{header.num_regions}));
  }
  walk.optional("region_index_offset", offsetof(Header, region_index_offset),
                {header.region_index_offset, header.region_index_length});
  // No room for choice here: recovery finds a commit record by its place, 256 bytes before
  // integrity_offset, and nothing may hide between it and the tables.
  const std::uint64_t integrity_offset = align_up(walk.behind(), kAlignment) + sizeof(Header);
  if (header.integrity_offset != integrity_offset) {
    fail_field(ErrorCode::bad_value, HEADER_AT(integrity_offset),
               std::to_string(header.integrity_offset),
               fmt::format("{}, directly after the commit record", integrity_offset));
  }
  validate_data_sections(header);
}

}  // namespace

void validate_identity(const Header& header) {
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    const std::string_view what = foreign_file(std::as_bytes(std::span(&header, 1)));
    fail_field(ErrorCode::bad_magic, HEADER_AT(magic),
               "'" + printable({reinterpret_cast<const char*>(header.magic), 4}) + "'", "'THAL'",
               what.empty() ? "this is no .thalia file"
                            : fmt::format("this is no .thalia file but {}", what));
  }
  if (header.major_version != kMajorVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, "this format version cannot be read",
                           {.section = "header",
                            .field = "major_version",
                            .offset = offsetof(Header, major_version),
                            .value = fmt::format("{}.{}.{}", std::uint16_t{header.major_version},
                                                 std::uint16_t{header.minor_version},
                                                 std::uint16_t{header.patch_version}),
                            .bound = fmt::format("{}.x", kMajorVersion)});
  }
}

void validate_header(const Header& header, std::uint64_t file_size, const ReadLimits& limits) {
  validate_identity(header);
  if ((header.flags & ~kKnownFlags) != 0) {
    fail_field(ErrorCode::bad_value, HEADER_AT(flags),
               fmt::format("{:#06x}", std::uint16_t{header.flags}), "bits 7 to 15 zero");
  }
  if ((header.incompatible_features & ~kKnownIncompatible) != 0) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature, "the file uses a feature that this version does not know",
        {.section = "header",
         .field = "incompatible_features",
         .offset = offsetof(Header, incompatible_features),
         .value = fmt::format("{:#010x}", std::uint32_t{header.incompatible_features}),
         .bound = fmt::format("bits within {:#010x}", kKnownIncompatible)});
  }
  check_zero("zero_d2", offsetof(Header, zero_d2), header.zero_d2);
  check_zero("zero_dc", offsetof(Header, zero_dc), header.zero_dc);
  if (header.generation == 0)
    fail_field(ErrorCode::bad_value, HEADER_AT(generation), "0", "1 or more");
  if (header.file_length > file_size) {
    fail_field(ErrorCode::truncated, HEADER_AT(file_length), fmt::format("{} bytes", file_size),
               std::to_string(header.file_length), "the file is cut short");
  }
  validate_checksum_fields(header);
  validate_tail(header);
  validate_sections(header);
  // Last: a length that the file has no room for is damage, and no limit to raise.
  if (limits.max_file_bytes != 0 && header.file_length > limits.max_file_bytes) {
    fail_limit("header", "max_file_bytes", header.file_length, limits.max_file_bytes);
  }
  if (header.num_regions > limits.max_regions) {
    fail_limit("header", "max_regions", header.num_regions, limits.max_regions);
  }
  if (header.metadata_length > limits.max_json_bytes) {
    fail_limit("metadata", "max_json_bytes", header.metadata_length, limits.max_json_bytes);
  }
}

#undef HEADER_AT

}  // namespace thalia::format
