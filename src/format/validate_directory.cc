// The rules for everything that the directory leads to, one function a structure. They see bytes
// that nobody has checked, so each field is checked before another check uses it, and sums that
// could wrap go through lies_within(). What passes needs no further checks: indices lie in their
// arrays, extents in their sections, and lengths agree with shapes, of encodings with side data
// once that has passed too. What only two entries together show, such as order and overlaps, is
// left to verify.
#include "format/validate_directory.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/dtype_facts.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "format/constants.h"
#include "format/fixed_name.h"
#include "format/low_rank.h"
#include "format/payload.h"

namespace thalia::format {
namespace {

// Throws FormatErrors about one struct, with its place in the file.
class StructChecks {
 public:
  StructChecks(std::string_view section, std::uint64_t offset)
      : section_(section), offset_(offset) {}

  [[noreturn]] void fail(const char* field, std::size_t at, std::string value, std::string bound,
                         ErrorCode code = ErrorCode::bad_value) const {
    fail_field(code, section_, field, offset_ + at, std::move(value), std::move(bound));
  }
  void zero(const char* field, std::size_t at, std::span<const std::uint8_t> bytes) const {
    if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; })) {
      fail(field, at, "non-zero bytes", "zero");
    }
  }
  void at_most(const char* field, std::size_t at, std::uint64_t value,
               std::uint64_t highest) const {
    if (value > highest) fail(field, at, std::to_string(value), fmt::format("0 to {}", highest));
  }
  void equal(const char* field, std::size_t at, std::uint64_t value, std::uint64_t expected) const {
    if (value != expected) fail(field, at, std::to_string(value), std::to_string(expected));
  }
  void within(const char* field, std::size_t at, Extent extent, std::uint64_t begin,
              std::uint64_t end) const {
    if (!lies_within(extent, begin, end)) {
      fail(field, at, fmt::format("[{}, +{})", extent.offset, extent.length),
           fmt::format("within [{}, {})", begin, end), ErrorCode::out_of_bounds);
    }
  }
  void fixed_name(const char* field, std::size_t at, const std::uint8_t (&name)[32]) const {
    if (!is_fixed_name(name)) {
      fail(field, at, "'" + printable({reinterpret_cast<const char*>(name), sizeof name}) + "'",
           "at most 31 bytes, then NUL to the end of the field", ErrorCode::bad_name);
    }
  }

 private:
  std::string_view section_;
  std::uint64_t offset_;
};

#define AT(Type, field) #field, offsetof(Type, field)

// Floats and integers of 8 and 16 bits.
bool has_steps(DType dtype) {
  const DTypeFacts& facts = dtype_facts(dtype);
  return (facts.bits == 8 || facts.bits == 16) && facts.kind != DTypeKind::boolean &&
         facts.kind != DTypeKind::complex;
}

constexpr const char* kWideIndices = "u64 indices, for an extent or an nnz of 2^32 or more";

}  // namespace

void validate_directory_header(const DirectoryHeader& directory, const Header& header,
                               const ReadLimits& limits) {
  const StructChecks check("directory", header.directory_offset);
  if (std::memcmp(directory.magic, kDirectoryMagic, sizeof kDirectoryMagic) != 0) {
    check.fail(AT(DirectoryHeader, magic),
               "'" + printable({reinterpret_cast<const char*>(directory.magic), 4}) + "'", "'TDIR'",
               ErrorCode::bad_magic);
  }
  check.equal(AT(DirectoryHeader, directory_version), directory.directory_version,
              kDirectoryVersion);
  check.zero(AT(DirectoryHeader, zero_58), directory.zero_58);
  // One more than num_regions if the file has connections: their matrices are a region of the
  // directory.
  if (directory.region_count != header.num_regions &&
      directory.region_count != std::uint64_t{header.num_regions} + 1) {
    check.fail(AT(DirectoryHeader, region_count), std::to_string(directory.region_count),
               fmt::format("num_regions {}, or one more", std::uint32_t{header.num_regions}));
  }
  // The arrays have to come one after the other, so each offset is known from the counts before
  // it. Counts are 32 bits and entries small: these products do not overflow.
  std::uint64_t expected = sizeof(DirectoryHeader);
  const auto array = [&](const char* field, std::size_t at, std::uint64_t offset,
                         std::uint64_t length) {
    check.equal(field, at, offset, expected);
    check.within(field, at, {offset, length}, 0, header.directory_length);
    expected = align_up(offset + length, 8);
  };
  array(AT(DirectoryHeader, regions_offset), directory.regions_offset,
        std::uint64_t{directory.region_count} * sizeof(DirectoryRegion));
  array(AT(DirectoryHeader, region_order_offset), directory.region_order_offset,
        std::uint64_t{directory.region_count} * sizeof(le32));
  array(AT(DirectoryHeader, tensors_offset), directory.tensors_offset,
        std::uint64_t{directory.tensor_count} * sizeof(TensorEntry));
  array(AT(DirectoryHeader, chunks_offset), directory.chunks_offset,
        std::uint64_t{directory.chunk_count} * sizeof(ChunkEntry));
  array(AT(DirectoryHeader, names_offset), directory.names_offset, directory.names_length);
  array(AT(DirectoryHeader, side_data_offset), directory.side_data_offset,
        directory.side_data_length);
  check.equal(AT(DirectoryHeader, side_data_length),
              directory.side_data_offset + directory.side_data_length, header.directory_length);
  // Last: more tensors than the directory has room for are a fault of the file, and no limit to
  // raise.
  if (directory.tensor_count > limits.max_tensors) {
    fail_limit("directory", "max_tensors", directory.tensor_count, limits.max_tensors);
  }
}

// Overlaps with other regions are left to verify: to find them takes all entries, and a reader that
// only reads comes to no harm by them.
void validate_region_index_entry(const RegionIndexEntry& entry, std::uint32_t k,
                                 const Header& header) {
  const StructChecks check("region_index",
                           header.region_index_offset + k * sizeof(RegionIndexEntry));
  if (entry.data_offset % kAlignment != 0) {
    check.fail(AT(RegionIndexEntry, data_offset), std::to_string(entry.data_offset),
               fmt::format("a multiple of {}", kAlignment));
  }
  check.within(AT(RegionIndexEntry, data_offset), {entry.data_offset, entry.data_length},
               sizeof(Header), header.directory_offset);
  if (entry.data_length < sizeof(RegionHeader) + sizeof(RegionExtension)) {
    check.fail(AT(RegionIndexEntry, data_length), std::to_string(entry.data_length),
               fmt::format("at least {}", sizeof(RegionHeader) + sizeof(RegionExtension)));
  }
  check.fixed_name(AT(RegionIndexEntry, region_name), entry.region_name);
}

void validate_connection_entry(const ConnectionEntry& entry, std::uint64_t entry_offset) {
  const StructChecks check("connectivity", entry_offset);
  check.fixed_name(AT(ConnectionEntry, source_region), entry.source_region);
  check.fixed_name(AT(ConnectionEntry, target_region), entry.target_region);
}

void validate_directory_region(const DirectoryRegion& region, std::uint32_t k,
                               const DirectoryHeader& directory, const Header& header) {
  const StructChecks check("directory", header.directory_offset + directory.regions_offset +
                                            k * sizeof(DirectoryRegion));
  check.within(AT(DirectoryRegion, first_tensor), {region.first_tensor, region.tensor_count}, 0,
               directory.tensor_count);
  check.within(AT(DirectoryRegion, name_offset), {region.name_offset, region.name_length}, 0,
               directory.names_length);
  // Only the region of the connectivity matrices has no name, so that no look-up finds it by one.
  const bool connectivity = k == header.num_regions;
  check.equal(AT(DirectoryRegion, flags), region.flags, connectivity ? kRegionConnectivity : 0);
  if ((region.name_length == 0) != connectivity) {
    check.fail(AT(DirectoryRegion, name_length), std::to_string(region.name_length),
               connectivity ? "0" : "1 or more");
  }
}

void validate_region_header(const RegionHeader& region, const RegionExtension& extension,
                            std::uint64_t region_offset, std::uint64_t length,
                            const ReadLimits& limits) {
  const StructChecks check("region", region_offset);
  const StructChecks extended("region", region_offset + sizeof(RegionHeader));
  const std::uint64_t headers = sizeof(RegionHeader) + sizeof(RegionExtension);
  check.at_most(AT(RegionHeader, neuron_type), code_of(NeuronType{region.neuron_type}),
                code_of(NeuronType::none));
  check.at_most(AT(RegionHeader, encoding_type), region.encoding_type, 1);
  extended.equal(AT(RegionExtension, extension_length), extension.extension_length,
                 kRegionExtensionLength);
  extended.equal(AT(RegionExtension, zero_04), extension.zero_04, 0);
  extended.zero(AT(RegionExtension, zero_48), extension.zero_48);

  // Pieces that are absent are skipped; those that are there may not move backwards.
  std::uint64_t behind = headers;
  const auto section = [&](const StructChecks& checks, const char* field, std::size_t at,
                           Extent extent) {
    if (extent.offset == 0 && extent.length == 0) return;
    checks.within(field, at, extent, behind, length);
    behind = extent.offset + extent.length;
  };
  section(check, AT(RegionHeader, config_offset), {region.config_offset, region.config_length});
  section(check, AT(RegionHeader, weights_offset), {region.weights_offset, region.weights_length});
  section(check, AT(RegionHeader, homeostatic_offset),
          {region.homeostatic_offset, region.homeostatic_length});
  if (region.homeostatic_length != 0 && region.homeostatic_length < 16) {
    check.fail(AT(RegionHeader, homeostatic_length), std::to_string(region.homeostatic_length),
               "at least 16");
  }
  const std::uint64_t dynamic_begin = extension.dynamic_state_offset;
  section(extended, AT(RegionExtension, dynamic_state_offset),
          {dynamic_begin, extension.dynamic_state_length});
  if (extension.dynamic_state_length != 0 && extension.dynamic_state_length < 32) {
    extended.fail(AT(RegionExtension, dynamic_state_length),
                  std::to_string(extension.dynamic_state_length), "at least 32");
  }
  const std::uint64_t dynamic_end = dynamic_begin + extension.dynamic_state_length;
  // 32 bytes: the payload header of the first tensor of the role.
  const auto component = [&](const char* field, std::size_t at, std::uint64_t offset) {
    if (offset != 0) extended.within(field, at, {offset, 32}, dynamic_begin, dynamic_end);
  };
  component(AT(RegionExtension, oscillator_offset), extension.oscillator_offset);
  component(AT(RegionExtension, neuromodulator_offset), extension.neuromodulator_offset);
  section(extended, AT(RegionExtension, other_offset),
          {extension.other_offset, extension.other_length});
  section(extended, AT(RegionExtension, region_metadata_offset),
          {extension.region_metadata_offset, extension.region_metadata_length});
  for (const std::uint64_t json :
       {std::uint64_t{region.config_length}, std::uint64_t{extension.region_metadata_length}}) {
    if (json > limits.max_json_bytes)
      fail_limit("region", "max_json_bytes", json, limits.max_json_bytes);
  }
}

Shape validate_tensor_entry(const TensorEntry& entry, std::uint64_t entry_offset,
                            const DirectoryHeader& directory, Extent owner) {
  const StructChecks check("directory", entry_offset);
  check.within(AT(TensorEntry, name_offset), {entry.name_offset, entry.name_length}, 0,
               directory.names_length);
  check.at_most(AT(TensorEntry, role), code_of(entry.role), kRoleCount - 1);
  check.at_most(AT(TensorEntry, encoding), code_of(entry.encoding), kEncodingCount - 1);
  check.at_most(AT(TensorEntry, dtype), code_of(entry.dtype), kDTypeCount - 1);
  check.at_most(AT(TensorEntry, ndim), entry.ndim, kMaxDimensions);
  check.at_most(AT(TensorEntry, flags), entry.flags, kKnownTensorFlags);
  check.equal(AT(TensorEntry, zero_54), entry.zero_54, 0);
  check.zero(AT(TensorEntry, zero_98), entry.zero_98);

  for (unsigned i = entry.ndim; i < kMaxDimensions; ++i) {
    if (entry.shape[i] != 0) {
      check.fail("shape", offsetof(TensorEntry, shape) + 8 * i, std::to_string(entry.shape[i]),
                 "0 after ndim");
    }
  }
  const TensorLayout layout = layout_of(entry);
  const auto& [dtype, shape, encoding, nnz, wide] = layout;
  const bool sparse = is_sparse(encoding);
  // As if it were dense, whatever the encoding, so that sizes of its dense form do not overflow.
  if (!shape.element_count() || !shape.byte_length(dtype)) {
    check.fail(AT(TensorEntry, shape), shape.to_string(), "fewer than 2^64 bytes",
               ErrorCode::out_of_bounds);
  }
  if (!sparse) {
    if (encoding != Encoding::sparse_delta) check.equal(AT(TensorEntry, nnz), entry.nnz, 0);
    check.equal(AT(TensorEntry, flags), entry.flags, 0);
  }
  if (sparse || encoding == Encoding::dense) {
    // Lengths of the other encodings follow from their side data, and are checked with it.
    const auto expected = payload_length(layout);
    if (!expected) {
      check.fail(
          AT(TensorEntry, encoding), std::to_string(code_of(encoding)),
          fmt::format("an encoding that a {} tensor of shape {} with {} stored elements can have",
                      dtype_name(dtype), shape.to_string(), nnz));
    }
    check.equal(AT(TensorEntry, logical_length), entry.logical_length, *expected);
    if (!wide && !narrow_indices_fit(layout))
      check.fail(AT(TensorEntry, flags), std::to_string(entry.flags), kWideIndices);
    check.equal(AT(TensorEntry, side_data_length), entry.side_data_length, 0);
  }
  // The payload header comes before the payload, and inside as well.
  check.within(AT(TensorEntry, stored_offset), {entry.stored_offset, entry.stored_length},
               owner.offset + sizeof(TensorHeader), owner.offset + owner.length);
  // By the logical length, so that compressing a tensor does not change where it may lie.
  if (entry.stored_offset % payload_alignment(entry.logical_length) != 0) {
    check.fail(AT(TensorEntry, stored_offset), std::to_string(entry.stored_offset),
               fmt::format("a multiple of {}", payload_alignment(entry.logical_length)));
  }
  if (entry.chunk_count == 0) {
    check.equal(AT(TensorEntry, first_chunk), entry.first_chunk, 0);
    if (sparse || encoding == Encoding::dense) {
      check.equal(AT(TensorEntry, stored_length), entry.stored_length, entry.logical_length);
    }
  }
  check.within(AT(TensorEntry, first_chunk), {entry.first_chunk, entry.chunk_count}, 0,
               directory.chunk_count);
  if (entry.side_data_length == 0)
    check.equal(AT(TensorEntry, side_data_offset), entry.side_data_offset, 0);
  check.within(AT(TensorEntry, side_data_offset), {entry.side_data_offset, entry.side_data_length},
               0, directory.side_data_length);
  return shape;
}

void validate_chunk_entry(const ChunkEntry& chunk, std::uint32_t i, const TensorEntry& tensor,
                          std::uint64_t expected_offset, std::uint64_t raw_left,
                          std::uint32_t first_raw_length, std::uint64_t entry_offset) {
  const StructChecks check("directory", entry_offset);
  check.equal(AT(ChunkEntry, offset), chunk.offset, expected_offset);
  const std::uint64_t end = tensor.stored_offset + tensor.stored_length;
  if (!lies_within({chunk.offset, chunk.stored_length}, tensor.stored_offset, end)) {
    check.fail(AT(ChunkEntry, stored_length), std::to_string(chunk.stored_length),
               fmt::format("up to {}, the end of the payload", end));
  }
  if (chunk.stored_length == 0) check.fail(AT(ChunkEntry, stored_length), "0", "1 or more");
  // Equal lengths are what makes the chunk of an element a division.
  const bool last = i + 1 == tensor.chunk_count;
  check.equal(AT(ChunkEntry, raw_length), chunk.raw_length, last ? raw_left : first_raw_length);
  if (chunk.raw_length == 0 || chunk.raw_length > raw_left) {
    check.fail(AT(ChunkEntry, raw_length), std::to_string(chunk.raw_length),
               fmt::format("1 to {}", raw_left));
  }
  check.at_most(AT(ChunkEntry, codec), code_of(chunk.codec), kCodecCount - 1);
  check.at_most(AT(ChunkEntry, filter), code_of(chunk.filter), kFilterCount - 1);
  check.equal(AT(ChunkEntry, zero_16), chunk.zero_16, 0);
  if (chunk.codec == Codec::none) {
    check.equal(AT(ChunkEntry, stored_length), chunk.stored_length, chunk.raw_length);
  }
}

void validate_delta_tensor(const DeltaTensor& side, std::uint64_t side_offset,
                           const TensorEntry& entry, std::uint64_t entry_offset) {
  const StructChecks check("directory", side_offset);
  const StructChecks stored("directory", entry_offset);
  check.at_most(AT(DeltaTensor, encoding), code_of(side.encoding), code_of(Encoding::coo));
  check.at_most(AT(DeltaTensor, flags), side.flags, kTensorWideIndices | kDeltaBrief);
  check.zero(AT(DeltaTensor, zero_02), side.zero_02);
  check.zero(AT(DeltaTensor, zero_38), side.zero_38);
  const bool brief = (side.flags & kDeltaBrief) != 0;
  if (brief) {
    check.equal(AT(DeltaTensor, crc32), side.crc32, 0);
    check.zero(AT(DeltaTensor, base_content_hash), side.base_content_hash.bytes);
  }
  const Encoding result = side.encoding;
  if (result == Encoding::dense) {
    check.equal(AT(DeltaTensor, flags), side.flags & kTensorWideIndices, 0);
    check.equal(AT(DeltaTensor, nnz), side.nnz, 0);
  }
  const DType dtype = entry.dtype;
  const Shape shape = shape_of(entry);
  const TensorLayout layout = layout_of(side, dtype, shape);
  const std::uint64_t elements = shape.element_count().value_or(0);
  // A delta stores none of these elements, so no payload limits nnz; the shape does.
  check.at_most(AT(DeltaTensor, nnz), side.nnz, elements);
  const auto length = payload_length(layout);
  if (!length) {
    check.fail(AT(DeltaTensor, encoding), std::to_string(code_of(result)),
               fmt::format("an encoding that a {} tensor of shape {} can have", dtype_name(dtype),
                           shape.to_string()));
  }
  if ((side.flags & kTensorWideIndices) == 0 && !narrow_indices_fit(layout))
    check.fail(AT(DeltaTensor, flags), std::to_string(side.flags), kWideIndices);
  check.equal(AT(DeltaTensor, logical_length), side.logical_length, *length);

  std::uint64_t expected = 0;
  if (entry.encoding == Encoding::same_as_base) {
    // Nothing is stored: `expected` stays 0, and the base has to be what comes out.
    if (!brief && side.content_hash != side.base_content_hash)
      check.fail(AT(DeltaTensor, content_hash), "another than the base's", "the base's");
  } else if (entry.encoding == Encoding::xor_base) {
    expected = side.logical_length;
  } else if (entry.encoding == Encoding::low_rank_delta) {
    const bool has_factors =
        dtype == DType::f32 || dtype == DType::f16 || dtype == DType::f64 || dtype == DType::bf16;
    if (result != Encoding::dense || shape.rank() != 2 || !has_factors) {
      check.fail(AT(DeltaTensor, encoding), std::to_string(code_of(result)),
                 "dense, of rank 2 and f32, f16, f64 or bf16, for a low_rank_delta");
    }
    // The length follows from the widths in the payload; read_low_rank() checks it.
    if (entry.logical_length < kLowRankHeaderLength) {
      stored.fail(AT(TensorEntry, logical_length), std::to_string(entry.logical_length),
                  fmt::format("{} or more", kLowRankHeaderLength));
    }
    expected = entry.logical_length;
  } else if (entry.encoding == Encoding::step_delta) {
    if (result != Encoding::dense || !has_steps(dtype)) {
      check.fail(AT(DeltaTensor, encoding), std::to_string(code_of(result)),
                 "dense, of bf16, f16, f8 or integers of 8 or 16 bits, for a step_delta");
    }
    // The length follows from the chunks' lengths in the payload; read_step_delta() checks it.
    if (entry.logical_length < kStepDeltaHeaderLength) {
      stored.fail(AT(TensorEntry, logical_length), std::to_string(entry.logical_length),
                  fmt::format("{} or more", kStepDeltaHeaderLength));
    }
    expected = entry.logical_length;
  } else {
    const auto parts = sparse_delta_parts(dtype, shape, entry.nnz);
    if (!parts || result != Encoding::dense)
      check.fail(AT(DeltaTensor, encoding), std::to_string(code_of(result)),
                 "dense, of no packed type, for a sparse_delta");
    stored.at_most(AT(TensorEntry, nnz), entry.nnz, elements);
    expected = parts->length;
  }
  stored.equal(AT(TensorEntry, logical_length), entry.logical_length, expected);
  if (entry.chunk_count == 0)
    stored.equal(AT(TensorEntry, stored_length), entry.stored_length, expected);
}

#undef AT

}  // namespace thalia::format
