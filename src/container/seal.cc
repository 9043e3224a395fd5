#include "container/seal.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "base/fail.h"
#include "container/directory_builder.h"
#include "container/file_image.h"
#include "container/image_writer.h"
#include "container/short_name.h"
#include "format/overlay.h"
#include "integrity/block_tree.h"
#include "integrity/crc32.h"
#include "integrity/sha256.h"
#include "io/posix_file.h"
#include "io/random.h"
#include "thalia/format/connectivity.h"
#include "thalia/format/constants.h"
#include "thalia/format/region.h"

namespace thalia::container {
namespace {

using format::struct_bytes;

class Seal {
 public:
  Seal(io::AtomicFile& file, const Draft& draft, const Layout& layout, const SaveOptions& options)
      : file_(file),
        draft_(draft),
        layout_(layout),
        options_(options),
        image_(file.fd(), file.path()) {}

  SaveResult run() {
    add_regions();
    add_connectivity();
    add_tables();
    complete_header();
    io::set_file_size(file_.fd(), header_.file_length, file_.path());
    image_.sort();
    ImageWrite written = write_image(image_, header_.integrity_offset, options_);
    if (written.io == IoMode::direct) {  // whose last extent is a multiple of 4096 bytes
      io::set_file_size(file_.fd(), header_.file_length, file_.path());
    }
    const Digest256 checksum = closing_checksum(written.leaves);
    const std::vector<ByteSpan> tail{written.leaves, as_byte_span(checksum.bytes)};
    io::pwritev_all(file_.fd(), header_.integrity_offset, tail, file_.path());
    io::pwrite_all(file_.fd(), 0, struct_bytes(header_), file_.path());

    SaveResult result;
    result.sync_seconds = file_.commit();
    result.file_bytes = header_.file_length;
    for (const DraftTensor& tensor : draft_.tensors) result.payload_bytes += tensor.logical_length;
    result.regions = header_.num_regions;
    result.tensors = static_cast<std::uint32_t>(draft_.tensors.size());
    result.closing_checksum = checksum;
    result.io = written.io;
    result.io_fallback = std::move(written.io_fallback);
    return result;
  }

 private:
  bool tree() const { return options_.checksum == format::ChecksumType::block_tree; }

  void add_payload(std::uint32_t i) {
    const DraftTensor& tensor = draft_.tensors[i];
    payload_headers_.push_back(payload_header(tensor));
    image_.add(tensor.stored_offset - sizeof(format::TensorHeader),
               struct_bytes(payload_headers_.back()));
    const bool in_file = tensor.streamed || options_.compression != format::Codec::store;
    if (in_file) {
      image_.add_written(tensor.stored_offset, tensor.stored_length);
      return;
    }
    std::uint64_t at = tensor.stored_offset;
    for (const ByteSpan piece : tensor.pieces) {
      image_.add(at, piece);
      at += piece.size();
    }
  }

  void add_regions() {
    image_.add(layout_.metadata().offset, as_byte_span(draft_.metadata));
    for (std::size_t r = 0; r < draft_.regions.size(); ++r) {
      const RegionSpec& spec = draft_.regions[r].spec;
      const RegionPlace& place = layout_.regions()[r];
      const std::uint64_t start = place.extent.offset;
      image_.add(start, struct_bytes(place.header));
      image_.add(start + sizeof(format::RegionHeader), struct_bytes(place.extension));
      image_.add(start + place.header.config_offset, as_byte_span(spec.config_json));
      if (place.header.homeostatic_length != 0) {
        format::HomeostaticHeader& header = homeostatic_headers_.emplace_back();
        header.n_neurons = spec.n_neurons;
        header.timestamp_updated = spec.homeostatic_updated;
        image_.add(start + place.header.homeostatic_offset, struct_bytes(header));
      }
      if (place.extension.dynamic_state_length != 0) {
        image_.add(start + place.extension.dynamic_state_offset, struct_bytes(place.dynamic));
      }
      image_.add(start + place.extension.region_metadata_offset, as_byte_span(spec.metadata_json));
    }
    for (std::uint32_t i = 0; i < draft_.tensors.size(); ++i) add_payload(i);
  }

  void add_connectivity() {
    if (draft_.connections.empty()) return;
    const std::uint64_t start = layout_.connectivity().offset;
    connectivity_header_.num_connections = static_cast<std::uint32_t>(draft_.connections.size());
    image_.add(start, struct_bytes(connectivity_header_));
    const auto matrix = [&](std::uint32_t i, format::le64& offset, format::le64& length) {
      const DraftTensor& tensor = draft_.tensors[i];
      offset = tensor.stored_offset - sizeof(format::TensorHeader) - start;
      length = tensor.stored_length + sizeof(format::TensorHeader);
    };
    for (const DraftConnection& connection : draft_.connections) {
      format::ConnectionEntry& entry = connection_entries_.emplace_back();
      const ShortName source = short_name(connection.source);
      const ShortName target = short_name(connection.target);
      std::copy(source.begin(), source.end(), entry.source_region);
      std::copy(target.begin(), target.end(), entry.target_region);
      matrix(connection.weights, entry.weight_offset, entry.weight_length);
      if (connection.delays != DraftConnection::kNone)
        matrix(connection.delays, entry.delay_offset, entry.delay_length);
    }
    image_.add(start + sizeof connectivity_header_, as_byte_span(connection_entries_));
  }

  void add_tables() {
    directory_ = build_directory(draft_);
    header_.directory_offset = format::align_up(layout_.end(), format::kAlignment);
    header_.directory_length = directory_.size();
    image_.add(header_.directory_offset, directory_);
    std::uint64_t end = header_.directory_offset + header_.directory_length;
    for (std::size_t r = 0; r < draft_.regions.size(); ++r) {
      const ShortName name = short_name(draft_.regions[r].spec.name);
      format::RegionIndexEntry& entry = index_.emplace_back();
      std::copy(name.begin(), name.end(), entry.region_name);
      entry.data_offset = layout_.regions()[r].extent.offset;
      entry.data_length = layout_.regions()[r].extent.length;
    }
    if (!index_.empty()) {
      header_.region_index_offset = format::align_up(end, format::kAlignment);
      header_.region_index_length = index_.size() * sizeof(format::RegionIndexEntry);
      image_.add(header_.region_index_offset, as_byte_span(index_));
      end = header_.region_index_offset + header_.region_index_length;
    }
    header_.integrity_offset = format::align_up(end, format::kAlignment) + sizeof(format::Header);
  }

  std::uint16_t flags() const {
    std::uint16_t flags = 0;
    bool half = false;
    bool full = false;
    for (const DraftTensor& tensor : draft_.tensors) {
      if (!tensor.chunks.empty()) flags |= format::kFlagCompressed;
      if (tensor.spec.role == Role::homeostatic) flags |= format::kFlagHomeostatic;
      if (tensor.spec.role == Role::neuromodulator) flags |= format::kFlagNeuromodulators;
      if (tensor.spec.encoding != Encoding::dense) flags |= format::kFlagSparse;
      half |= tensor.spec.dtype == DType::f16 || tensor.spec.dtype == DType::bf16;
      full |= tensor.spec.dtype == DType::f32;
    }
    if (half && full) flags |= format::kFlagMixedPrecision;
    if ((flags & format::kFlagCompressed) && options_.compression == format::Codec::lz4)
      flags |= format::kFlagLz4;
    return flags;
  }

  void set_uuid() {
    if (options_.file_uuid) {
      std::copy(options_.file_uuid->begin(), options_.file_uuid->end(), header_.file_uuid);
      return;
    }
    io::fill_random(std::as_writable_bytes(std::span(header_.file_uuid)));
    // RFC 9562: version 4, variant 1.
    header_.file_uuid[6] = static_cast<std::uint8_t>((header_.file_uuid[6] & 0x0F) | 0x40);
    header_.file_uuid[8] = static_cast<std::uint8_t>((header_.file_uuid[8] & 0x3F) | 0x80);
  }

  std::uint64_t timestamp() const {
    using namespace std::chrono;
    const auto now = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
    return options_.timestamp.value_or(static_cast<std::uint64_t>(now));
  }

  void complete_header() {
    std::copy(std::begin(format::kMagic), std::end(format::kMagic), header_.magic);
    header_.major_version = format::kMajorVersion;
    header_.minor_version = format::kMinorVersion;
    header_.patch_version = format::kPatchVersion;
    header_.flags = flags();
    header_.timestamp = timestamp();
    header_.metadata_offset = layout_.metadata().offset;
    header_.metadata_length = layout_.metadata().length;
    header_.connectivity_offset = layout_.connectivity().offset;
    header_.connectivity_length = layout_.connectivity().length;
    header_.training_steps = draft_.training_steps;
    header_.num_regions = static_cast<std::uint32_t>(draft_.regions.size());
    header_.checksum_type = static_cast<std::uint32_t>(options_.checksum);
    header_.generation = 1;
    set_uuid();
    std::uint64_t neurons = 0;
    for (const DraftRegion& region : draft_.regions) neurons += region.spec.n_neurons;
    std::uint64_t synapses = 0;
    for (std::uint32_t i = 0; i < draft_.tensors.size(); ++i) {
      const TensorSpec& spec = draft_.tensors[i].spec;
      if (spec.role == Role::weights)
        synapses += draft_.is_sparse(i) ? spec.nnz : *spec.shape.element_count();
    }
    header_.total_neurons = neurons;
    header_.total_synapses = synapses;
    if (tree()) {
      header_.integrity_block_log2 = static_cast<std::uint8_t>(options_.block_log2);
      header_.leaf_algorithm = static_cast<std::uint8_t>(options_.leaves);
      header_.integrity_length =
          integrity::block_count(header_.integrity_offset, options_.block_log2) *
          integrity::leaf_length(options_.leaves);
    }
    header_.file_length =
        header_.integrity_offset + header_.integrity_length + format::kChecksumLength;
    header_.header_crc32 = integrity::crc32(struct_bytes(header_));
    image_.add(header_.integrity_offset - sizeof header_,
               struct_bytes(header_));  // the commit record
  }

  Digest256 closing_checksum(ByteSpan leaves) const {
    Digest256 out{};
    switch (options_.checksum) {
      case format::ChecksumType::none:
        break;
      case format::ChecksumType::block_tree:
        return integrity::closing_checksum(header_, leaves);
      case format::ChecksumType::sha256: {
        integrity::Sha256 hasher;
        hasher.update(struct_bytes(header_));
        image_.for_each(sizeof header_, header_.integrity_offset,
                        [&](ByteSpan piece) { hasher.update(piece); });
        return hasher.finish();
      }
      case format::ChecksumType::crc32: {
        std::uint32_t crc = integrity::crc32(struct_bytes(header_));
        image_.for_each(sizeof header_, header_.integrity_offset,
                        [&](ByteSpan piece) { crc = integrity::crc32(piece, crc); });
        const format::le32 stored = crc;
        std::memcpy(out.bytes, &stored, sizeof stored);
        break;
      }
    }
    return out;
  }

  io::AtomicFile& file_;
  const Draft& draft_;
  const Layout& layout_;
  const SaveOptions& options_;
  FileImage image_;
  format::Header header_{};
  // What the image borrows; deques, so that growing moves nothing.
  std::deque<format::TensorHeader> payload_headers_;
  std::deque<format::HomeostaticHeader> homeostatic_headers_;
  format::ConnectivityHeader connectivity_header_{};
  std::vector<format::ConnectionEntry> connection_entries_;
  std::vector<format::RegionIndexEntry> index_;
  std::vector<std::byte> directory_;
};

}  // namespace

SaveResult seal_file(io::AtomicFile& file, const Draft& draft, const Layout& layout,
                     const SaveOptions& options) {
  return Seal(file, draft, layout, options).run();
}

}  // namespace thalia::container
