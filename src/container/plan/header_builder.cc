// The header is filled in three steps: what the plan says, where the tables lie, and what the
// options give (time, uuid). Its CRC comes last, over all of it. docs/format/format.md, "Header".
#include "container/plan/header_builder.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "container/file/block_choice.h"
#include "format/chunk.h"
#include "format/constants.h"
#include "format/extent.h"
#include "format/overlay.h"
#include "format/region.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "integrity/crc32.h"
#include "io/system/random.h"

namespace thalia::container {
namespace {

// For an append, the plan holds kept tensors too, so flags and totals are those of the whole file.
std::uint16_t flags_of(const FilePlan& plan) {
  std::uint16_t flags = 0;
  bool half = false;
  bool full = false;
  for (const TensorPlan& tensor : plan.tensors) {
    if (!tensor.chunks.empty()) flags |= format::kFlagCompressed;
    for (const format::ChunkEntry& chunk : tensor.chunks) {
      if (chunk.codec == Codec::lz4) flags |= format::kFlagLz4;
    }
    if (tensor.spec.role == Role::homeostatic) flags |= format::kFlagHomeostatic;
    if (tensor.spec.role == Role::neuromodulator) flags |= format::kFlagNeuromodulators;
    if (is_sparse(tensor.result_encoding())) flags |= format::kFlagSparse;
    half |= tensor.spec.dtype == DType::f16 || tensor.spec.dtype == DType::bf16;
    full |= tensor.spec.dtype == DType::f32;
  }
  if (half && full) flags |= format::kFlagMixedPrecision;
  if (plan.delta) flags |= format::kFlagDelta;
  return flags;
}

// Stored elements of the tensor that a reader gets.
std::uint64_t synapses_of(const TensorPlan& tensor) {
  if (!is_sparse(tensor.result_encoding())) return *tensor.spec.shape.element_count();
  return tensor.delta ? std::uint64_t{tensor.delta->nnz} : tensor.spec.nnz;
}

}  // namespace

format::Header build_header(const FilePlan& plan, const Layout& layout) {
  format::Header header{};
  std::copy(std::begin(format::kMagic), std::end(format::kMagic), header.magic);
  header.major_version = format::kMajorVersion;
  header.minor_version = format::kMinorVersion;
  header.patch_version = format::kPatchVersion;
  header.flags = flags_of(plan);
  header.metadata_offset = layout.metadata().offset;
  header.metadata_length = layout.metadata().length;
  header.connectivity_offset = layout.connectivity().offset;
  header.connectivity_length = layout.connectivity().length;
  header.training_steps = plan.training_steps;
  header.num_regions = static_cast<std::uint32_t>(plan.regions.size());
  header.generation = 1;
  std::uint64_t neurons = plan.base.neurons;
  for (const RegionPlan& region : plan.regions) neurons += region.spec.n_neurons;
  header.total_neurons = neurons;
  std::uint64_t synapses = 0;
  for (const TensorPlan& tensor : plan.tensors) {
    if (tensor.spec.role == Role::weights) synapses += synapses_of(tensor);
  }
  header.total_synapses = synapses;
  if (plan.delta) {
    header.base_checksum = plan.delta->base_checksum;
    header.base_step = plan.delta->base_step;
  }
  return header;
}

void place_tables(format::Header& header, std::uint64_t end, std::uint64_t directory_length,
                  ChecksumType checksum, LeafAlgorithm leaves, std::optional<unsigned> block_log2) {
  header.directory_offset = format::align_up(end, format::kAlignment);
  header.directory_length = directory_length;
  end = header.directory_offset + directory_length;
  if (header.num_regions != 0) {
    header.region_index_offset = format::align_up(end, format::kAlignment);
    header.region_index_length =
        std::uint64_t{header.num_regions} * sizeof(format::RegionIndexEntry);
    end = header.region_index_offset + header.region_index_length;
  }
  // The commit record, a copy of the header, comes directly before the integrity table, where
  // recover() looks for it.
  header.integrity_offset = format::align_up(end, format::kAlignment) + sizeof(format::Header);
  header.checksum_type = checksum;
  if (checksum == ChecksumType::block_tree) {
    const unsigned log2 = block_log2.value_or(block_log2_for(header.integrity_offset));
    header.integrity_block_log2 = static_cast<std::uint8_t>(log2);
    header.leaf_algorithm = leaves;
    header.integrity_length =
        integrity::block_count(header.integrity_offset, log2) * integrity::leaf_length(leaves);
  }
  header.file_length = header.integrity_offset + header.integrity_length + format::kChecksumLength;
}

namespace {

void set_version(format::Header& header, unsigned version) {
  header.file_uuid[6] = static_cast<std::uint8_t>((header.file_uuid[6] & 0x0F) | version << 4);
  header.file_uuid[8] = static_cast<std::uint8_t>((header.file_uuid[8] & 0x3F) | 0x80);
}

}  // namespace

void set_random_uuid(format::Header& header) {
  io::fill_random(std::as_writable_bytes(std::span(header.file_uuid)));
  set_version(header, 4);
}

// Not from the payloads: they are hashed later. The closing checksum tells files of different
// payloads apart, and anybody who asks for a file by its identity asks for both.
void set_derived_uuid(format::Header& header) {
  const Digest128 digest = integrity::content_digest(format::struct_bytes(header), 1).hash;
  std::ranges::copy(digest.bytes, std::span(header.file_uuid).begin());
  set_version(header, 8);
}

void set_header_crc(format::Header& header) {
  header.header_crc32 = std::uint32_t{0};
  header.header_crc32 = integrity::crc32(format::struct_bytes(header));
}

}  // namespace thalia::container
