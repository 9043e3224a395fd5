// All tables of the directory are made in memory and joined at the end. Regions keep the order of
// their numbers; beside them is their order by name. Tensors of a region are sorted by name:
// readers search both in place, by halving. Digests may come later, since directory_crc32 covers
// the directory's header and no entry. docs/format/format.md, "Directory".
#include "container/plan/directory_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/fail.h"
#include "format/chunk.h"
#include "format/directory.h"
#include "format/extent.h"
#include "format/overlay.h"
#include "format/quantized.h"
#include "integrity/crc32.h"

namespace thalia::container {
namespace {

constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

class DirectoryBuilder {
 public:
  explicit DirectoryBuilder(const FilePlan& plan) : plan_(plan) {}

  Directory build() {
    const std::size_t named = plan_.regions.size();
    for (std::size_t r = 0; r < named; ++r)
      add_region(plan_.regions[r].spec.name, plan_.regions[r].tensors, 0);
    if (!plan_.connections.empty())
      // Matrices of connections are found like tensors of a region without a name, after the named
      // ones.
      add_region("", connectivity_tensors(), format::kRegionConnectivity);
    return assemble();
  }

 private:
  std::vector<std::uint32_t> connectivity_tensors() const {
    std::vector<std::uint32_t> out;
    for (const ConnectionPlan& connection : plan_.connections) {
      out.push_back(connection.weights);
      if (connection.delays != ConnectionPlan::kNone) out.push_back(connection.delays);
    }
    return out;
  }

  std::uint32_t add_name(std::string_view name) {
    if (names_.size() + name.size() > kMost32) {
      fail_argument(ErrorCode::bad_argument, "names",
                    fmt::format("{} bytes together", names_.size() + name.size()),
                    std::to_string(kMost32));
    }
    const auto offset = static_cast<std::uint32_t>(names_.size());
    names_ += name;
    return offset;
  }

  void add_region(std::string_view name, std::vector<std::uint32_t> run, std::uint16_t flags) {
    format::DirectoryRegion record{};
    record.name_offset = add_name(name);
    record.name_length = static_cast<std::uint16_t>(name.size());
    record.flags = flags;
    record.first_tensor = static_cast<std::uint32_t>(tensors_.size());
    record.tensor_count = static_cast<std::uint32_t>(run.size());
    region_names_.push_back(name);

    const auto name_of = [&](std::uint32_t i) -> std::string_view {
      return plan_.tensors[i].spec.name;
    };
    // The order of bytes, as readers compare names.
    std::sort(run.begin(), run.end(), [&](auto a, auto b) { return name_of(a) < name_of(b); });
    std::uint64_t logical = 0;
    std::uint64_t stored = 0;
    for (const std::uint32_t i : run) {
      add_tensor(plan_.tensors[i]);
      out_.tensors.push_back(i);
      logical += plan_.tensors[i].logical_length;
      stored += plan_.tensors[i].stored_length;
    }
    record.logical_bytes = logical;
    record.stored_bytes = stored;
    regions_.push_back(record);
  }

  void add_tensor(const TensorPlan& tensor) {
    format::TensorEntry entry{};
    entry.name_offset = add_name(tensor.spec.name);
    entry.name_length = static_cast<std::uint16_t>(tensor.spec.name.size());
    entry.role = tensor.spec.role;
    entry.encoding = tensor.spec.encoding;
    entry.dtype = tensor.spec.dtype;
    entry.ndim = static_cast<std::uint8_t>(tensor.spec.shape.rank());
    entry.flags = tensor.spec.wide_indices ? format::kTensorWideIndices : std::uint16_t{0};
    entry.logical_length = tensor.logical_length;
    entry.stored_offset = tensor.stored_offset;
    entry.stored_length = tensor.stored_length;
    if (chunks_.size() + tensor.chunks.size() > kMost32) {
      fail_argument(ErrorCode::bad_argument, "chunk_bytes",
                    fmt::format("{} chunks", chunks_.size() + tensor.chunks.size()),
                    fmt::format("{}; larger chunks make fewer", kMost32));
    }
    // A raw tensor has no chunks: 0 and 0.
    entry.first_chunk = tensor.chunks.empty() ? 0u : static_cast<std::uint32_t>(chunks_.size());
    entry.chunk_count = static_cast<std::uint32_t>(tensor.chunks.size());
    entry.nnz = tensor.spec.nnz;
    for (unsigned d = 0; d < tensor.spec.shape.rank(); ++d) entry.shape[d] = tensor.spec.shape[d];
    if (tensor.delta) add_side_data(entry, format::struct_bytes(*tensor.delta));
    if (tensor.quantized) add_side_data(entry, format::struct_bytes(*tensor.quantized));
    chunks_.insert(chunks_.end(), tensor.chunks.begin(), tensor.chunks.end());
    tensors_.push_back(entry);
  }

  void add_side_data(format::TensorEntry& entry, ByteSpan structure) {
    entry.side_data_offset = side_data_.size();
    entry.side_data_length = static_cast<std::uint32_t>(structure.size());
    side_data_.insert(side_data_.end(), structure.begin(), structure.end());
  }

  Directory assemble() {
    std::vector<std::uint32_t> order(regions_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return region_names_[a] < region_names_[b]; });
    const std::vector<format::le32> stored_order(order.begin(), order.end());

    format::DirectoryHeader header{};
    std::copy(std::begin(format::kDirectoryMagic), std::end(format::kDirectoryMagic), header.magic);
    header.directory_version = format::kDirectoryVersion;
    header.region_count = static_cast<std::uint32_t>(regions_.size());
    header.tensor_count = static_cast<std::uint32_t>(tensors_.size());
    header.chunk_count = static_cast<std::uint32_t>(chunks_.size());

    std::vector<std::byte>& out = out_.bytes;
    out.resize(sizeof header);
    const auto append = [&](ByteSpan bytes) {
      // Not needed to read them (fields have alignment 1), but what the format asks for.
      out.resize(format::align_up(out.size(), 8));
      const std::uint64_t offset = out.size();
      out.insert(out.end(), bytes.begin(), bytes.end());
      return offset;
    };
    header.regions_offset = append(as_byte_span(regions_));
    header.region_order_offset = append(as_byte_span(stored_order));
    header.tensors_offset = out_.tensors_offset = append(as_byte_span(tensors_));
    header.chunks_offset = append(as_byte_span(chunks_));
    header.names_offset = append(as_byte_span(names_));
    header.names_length = names_.size();
    header.side_data_offset = append(as_byte_span(side_data_));
    header.side_data_length = side_data_.size();
    header.directory_crc32 = integrity::crc32(format::struct_bytes(header));
    std::memcpy(out.data(), &header, sizeof header);
    out_.set_digests(plan_);
    return std::move(out_);
  }

  const FilePlan& plan_;
  std::vector<format::DirectoryRegion> regions_;
  std::vector<std::string_view> region_names_;
  std::vector<format::TensorEntry> tensors_;
  std::vector<format::ChunkEntry> chunks_;
  std::string names_;
  std::vector<std::byte> side_data_;
  Directory out_;
};

// The 32-byte header has room for three dimensions: the third stands for all that follow. 2^64 - 1
// if the product is larger.
std::uint64_t trailing_product(const Shape& shape) {
  if (shape.rank() <= 2) return 1;
  return Shape(shape.extents().subspan(2))
      .element_count()
      .value_or(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

// Entries are overwritten in place; on-disk structures have alignment 1, so they may be anywhere in
// the bytes.
void Directory::set_digests(const FilePlan& plan) {
  auto* entry = reinterpret_cast<format::TensorEntry*>(bytes.data() + tensors_offset);
  for (const std::uint32_t i : tensors) {
    const integrity::ContentDigest& digest = plan.tensors[i].digest;
    entry->crc32 = digest.crc32;
    entry->content_hash = digest.hash;
    ++entry;
  }
}

Directory build_directory(const FilePlan& plan) {
  return DirectoryBuilder(plan).build();
}

format::TensorHeader payload_header(const TensorPlan& tensor) {
  const Shape& shape = tensor.spec.shape;
  // The header describes the stored encoding, for programs that find weights without the directory.
  if (tensor.spec.encoding == Encoding::csr) {
    format::CsrHeader header{};
    header.dtype = tensor.spec.dtype;
    header.n_rows = shape[0];
    header.n_cols = shape[1];
    header.nnz = tensor.spec.nnz;
    header.checksum = tensor.digest.crc32;
    return std::bit_cast<format::TensorHeader>(header);
  }
  format::TensorHeader header{};
  header.dtype = tensor.spec.dtype;
  header.ndim = static_cast<std::uint8_t>(shape.rank());
  if (tensor.spec.encoding == Encoding::coo) header.reserved = format::kCooMark;
  if (tensor.spec.encoding == Encoding::quantized) header.reserved = format::kQuantizedMark;
  header.shape[0] = shape.rank() > 0 ? shape[0] : 1;
  header.shape[1] = shape.rank() > 1 ? shape[1] : 1;
  header.shape[2] = trailing_product(shape);
  header.checksum = tensor.digest.crc32;
  return header;
}

}  // namespace thalia::container
