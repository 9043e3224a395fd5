// One function describes the columns for both directions; where a reader has to make what a writer
// has, kReads says so. Numbers are held against what a structure can hold, and lengths that follow
// from others are computed by the rules of the encodings. The rest is checked where the contents
// are opened, as of any file.
#include "container/pack/head.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "container/pack/columns.h"
#include "container/read/tensor_reading.h"
#include "format/chunk.h"
#include "format/constants.h"
#include "format/delta.h"
#include "format/directory.h"
#include "format/payload.h"
#include "format/quantized.h"
#include "format/tensor.h"

namespace thalia::container {
namespace {

// What a tensor takes of the contents at least: its entry, and the header before its payload.
constexpr std::uint64_t kTensorBytes = sizeof(format::TensorEntry) + sizeof(format::TensorHeader);
constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

bool has_count(Encoding encoding) {
  return is_sparse(encoding) || encoding == Encoding::sparse_delta;
}

// Nothing tells how long the stored bytes of these are.
bool has_length(Encoding encoding) {
  return encoding == Encoding::quantized || encoding > Encoding::sparse_delta;
}

/// Tensors and connections of a plan that is read, before their columns.
struct Counts {
  std::vector<std::uint64_t> tensors;  ///< of each region
  std::uint64_t named = 0;             ///< of all regions
};

Counts counts_of(const FilePlan& plan) {
  Counts out;
  for (const RegionPlan& region : plan.regions) {
    out.tensors.push_back(region.tensors.size());
    out.named += region.tensors.size();
  }
  return out;
}

template <typename Columns>
void visit_regions(Columns& columns, FilePlan& plan, Counts& counts) {
  for (RegionPlan& region : plan.regions) columns.text(region.spec.name);
  for (std::size_t r = 0; r < plan.regions.size(); ++r) {
    RegionSpec& spec = plan.regions[r].spec;
    columns.number(spec.n_neurons, kMost32);
    columns.number(spec.n_inputs, kMost32);
    columns.number(spec.neuron_type, format::code_of(NeuronType::none));
    columns.number(spec.homeostatic_updated);
    columns.number(counts.tensors[r], counts.named);
  }
  for (RegionPlan& region : plan.regions) columns.text(region.spec.config_json);
  for (RegionPlan& region : plan.regions) columns.text(region.spec.metadata_json);
}

// The numbers of a connection's regions, and whether it has delays.
template <typename Columns>
void visit_connections(Columns& columns, FilePlan& plan) {
  const std::uint64_t last = plan.regions.empty() ? 0 : plan.regions.size() - 1;
  const auto region = [&](std::string& name) {
    std::uint64_t number = 0;
    if constexpr (!Columns::kReads) {
      while (number < last && plan.regions[number].spec.name != name) ++number;
    }
    columns.number(number, last);
    if (Columns::kReads) name = plan.regions[number].spec.name;
  };
  for (ConnectionPlan& connection : plan.connections) {
    region(connection.source);
    region(connection.target);
    std::uint32_t delays = connection.delays != ConnectionPlan::kNone;
    columns.number(delays, 1);
    if (Columns::kReads) connection.delays = delays != 0 ? 0 : ConnectionPlan::kNone;
  }
}

template <typename Columns>
void visit_shapes(Columns& columns, std::vector<TensorPlan*>& tensors) {
  std::vector<unsigned> ranks;
  ranks.reserve(tensors.size());
  for (const TensorPlan* tensor : tensors) {
    unsigned& rank = ranks.emplace_back(tensor->spec.shape.rank());
    columns.number(rank, Shape::kMaxRank);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Shape& shape = tensors[i]->spec.shape;
    std::array<std::uint64_t, Shape::kMaxRank> extents{};
    for (unsigned d = 0; d < ranks[i]; ++d) {
      if (d < shape.rank()) extents[d] = shape[d];
      columns.number(extents[d]);
    }
    if (Columns::kReads) shape = Shape(std::span(extents).first(ranks[i]));
  }
}

template <typename Columns>
void visit_side_data(Columns& columns, std::vector<TensorPlan*>& tensors) {
  for (TensorPlan* tensor : tensors) {
    if (!needs_base(tensor->spec.encoding)) continue;
    if (Columns::kReads)
      tensor->delta = std::make_unique<format::DeltaTensor>(format::DeltaTensor{});
    columns.number(tensor->delta->encoding, format::code_of(Encoding::coo));
    columns.number(tensor->delta->flags, format::kTensorWideIndices | format::kDeltaBrief);
  }
  for (TensorPlan* tensor : tensors) {
    if (!tensor->delta || !is_sparse(tensor->delta->encoding)) continue;
    std::uint64_t nnz = tensor->delta->nnz;
    columns.number(nnz);
    tensor->delta->nnz = nnz;
  }
  for (TensorPlan* tensor : tensors) {
    if (tensor->spec.encoding != Encoding::quantized) continue;
    if (Columns::kReads) tensor->quantized = std::make_unique<format::QuantizedSideData>();
    columns.object(*tensor->quantized);
  }
}

template <typename Columns>
void visit_chunks(Columns& columns, std::vector<TensorPlan*>& tensors) {
  std::uint64_t all = 0;
  for (TensorPlan* tensor : tensors) {
    std::uint64_t count = tensor->chunks.size();
    columns.count(count);
    if constexpr (Columns::kReads) {
      all += count;
      // Each takes three bytes or more of what is left.
      if (all > columns.left()) {
        columns.fail(fmt::format("{} chunks", all),
                     fmt::format("as many as {} bytes hold", columns.left()));
      }
      tensor->in_chunks = count != 0;
      tensor->chunks.resize(count);
    }
  }
  for (TensorPlan* tensor : tensors) {
    if (tensor->chunks.empty()) continue;
    std::uint32_t length = tensor->chunks.front().raw_length;
    columns.number(length, kMost32);
    tensor->chunks.front().raw_length = length;
  }
  for (TensorPlan* tensor : tensors) {
    for (format::ChunkEntry& chunk : tensor->chunks) {
      std::uint32_t length = chunk.stored_length;
      columns.number(length, kMost32);
      chunk.stored_length = length;
      columns.number(chunk.codec, 255);
      columns.number(chunk.filter, 255);
    }
  }
}

// In a name that begins with its region's, a byte is in place of that. No UTF-8 has it.
template <typename Columns>
void visit_names(Columns& columns, PackedHead& head, std::uint64_t named, std::uint64_t most) {
  constexpr char kRegion = '\xFE';
  std::uint64_t sum = 0;  // of at most 2^26 names of less than 2^27 bytes each
  for (std::uint64_t i = 0; i < named; ++i) {
    std::string& name = head.tensors[i]->spec.name;
    const std::string& region = head.plan->regions[head.tensors[i]->region].spec.name;
    if constexpr (Columns::kReads) {
      columns.name(name);
      const bool is_cut = name.starts_with(kRegion);
      sum += name.size() + (is_cut ? region.size() : 0);
      if (sum > most)
        columns.fail(fmt::format("names of {} bytes", sum), fmt::format("at most {}", most));
      if (is_cut) name.replace(0, 1, region);
    } else {
      std::string text = name;
      if (text.starts_with(region)) text.replace(0, region.size(), 1, kRegion);
      columns.name(text);
    }
  }
}

// A level falls by two where its first class is one more, so that their sum varies little.
template <typename Columns>
void visit_step_headers(Columns& columns, PackedHead& head) {
  auto& headers = head.step_headers;
  if constexpr (Columns::kReads) {
    headers.resize(static_cast<std::size_t>(std::ranges::count_if(
        head.tensors, [](const TensorPlan* t) { return has_step_header(*t); })));
  }
  std::vector<std::uint8_t> sums;
  sums.reserve(headers.size());
  for (const format::StepDeltaHeader& header : headers) {
    std::uint8_t& sum =
        sums.emplace_back(static_cast<std::uint8_t>(header.table + 2 * header.first_class));
    columns.object(sum);
  }
  for (format::StepDeltaHeader& header : headers) columns.object(header.first_class);
  for (format::StepDeltaHeader& header : headers) columns.object(header.lanes_log2);
  for (format::StepDeltaHeader& header : headers) columns.object(header.chunk_log2);
  for (std::size_t i = 0; i < headers.size(); ++i)
    headers[i].table = static_cast<std::uint8_t>(sums[i] - 2 * headers[i].first_class);
}

template <typename Columns>
void visit_tensors(Columns& columns, std::vector<TensorPlan*>& tensors, std::uint64_t named) {
  for (std::uint64_t i = 0; i < named; ++i) columns.number(tensors[i]->spec.role, kRoleCount - 1);
  for (TensorPlan* tensor : tensors) columns.number(tensor->spec.encoding, kEncodingCount - 1);
  for (TensorPlan* tensor : tensors) columns.number(tensor->spec.dtype, kDTypeCount - 1);
  for (TensorPlan* tensor : tensors) columns.number(tensor->spec.wide_indices, 1);
  visit_shapes(columns, tensors);
  for (TensorPlan* tensor : tensors) {
    if (has_count(tensor->spec.encoding)) columns.number(tensor->spec.nnz);
  }
  for (TensorPlan* tensor : tensors) {
    if (has_length(tensor->spec.encoding)) columns.number(tensor->logical_length);
  }
  visit_side_data(columns, tensors);
  visit_chunks(columns, tensors);
}

void make_tensors(PackedHead& head, const Counts& counts) {
  FilePlan& plan = *head.plan;
  const auto add = [&](std::uint32_t region) {
    TensorPlan& tensor = plan.tensors.emplace_back();
    tensor.region = region;
    head.tensors.push_back(&tensor);  // a deque: it stays there
    return static_cast<std::uint32_t>(plan.tensors.size() - 1);
  };
  for (std::uint32_t r = 0; r < plan.regions.size(); ++r) {
    for (std::uint64_t i = 0; i < counts.tensors[r]; ++i) plan.regions[r].tensors.push_back(add(r));
  }
  for (std::size_t i = 0; i < plan.connections.size(); ++i) {
    ConnectionPlan& connection = plan.connections[i];
    connection.weights = add(kConnectivity);
    plan.tensors.back().spec.name = fmt::format("{}.weights", i);
    plan.tensors.back().spec.role = Role::weights;
    if (connection.delays == ConnectionPlan::kNone) continue;
    connection.delays = add(kConnectivity);
    plan.tensors.back().spec.name = fmt::format("{}.delays", i);
    plan.tensors.back().spec.role = Role::other;
  }
}

template <typename Columns>
void visit(Columns& columns, PackedHead& head, std::uint64_t contents_length) {
  const std::uint64_t most_tensors = contents_length / kTensorBytes;
  FilePlan& plan = *head.plan;
  columns.number(head.block_log2, format::kMaxBlockLog2);
  columns.number(head.leaves, 255);
  columns.number(head.timestamp);
  columns.number(plan.training_steps);
  columns.number(head.base_step);
  columns.number(head.base_length);
  columns.number(head.base_generation);
  columns.number(head.depth, kMost32);
  columns.text(head.path);
  columns.text(plan.metadata);
  Counts counts = counts_of(plan);
  std::uint64_t regions = plan.regions.size();
  std::uint64_t connections = plan.connections.size();
  columns.count(regions);
  columns.count(connections);
  columns.count(counts.named);
  if constexpr (Columns::kReads) {
    // A region and a connection take at least as much of the contents as a tensor.
    for (const std::uint64_t count : {regions, connections, counts.named}) {
      if (count > most_tensors) columns.fail(std::to_string(count), std::to_string(most_tensors));
    }
    if (regions == 0 && connections != 0) columns.fail("connections", "no regions, and so none");
    plan.regions.resize(regions);
    plan.connections.resize(connections);
    counts.tensors.resize(regions);
  }
  visit_regions(columns, plan, counts);
  visit_connections(columns, plan);
  if constexpr (Columns::kReads) {
    std::uint64_t sum = 0;  // of numbers that are no more than counts.named each
    for (const std::uint64_t count : counts.tensors) sum += count;
    if (sum != counts.named)
      columns.fail(fmt::format("{} tensors of all regions", sum), std::to_string(counts.named));
    make_tensors(head, counts);
  }
  visit_names(columns, head, counts.named, contents_length);
  visit_tensors(columns, head.tensors, counts.named);
  visit_step_headers(columns, head);
}

template <typename Columns>
void visit_digests(Columns& columns, PackedHead& head) {
  columns.object(head.closing_checksum);
  columns.object(head.base_checksum);
  columns.object(head.file_uuid);
  columns.object(head.base_uuid);
  columns.object(head.prefix_crc32);
  for (TensorPlan* tensor : head.tensors) {
    if (tensor->delta) columns.object(tensor->delta->content_hash);
  }
  for (TensorPlan* tensor : head.tensors) {
    if (!tensor->delta || (tensor->delta->flags & format::kDeltaBrief) != 0) continue;
    columns.object(tensor->delta->crc32);
    columns.object(tensor->delta->base_content_hash);
  }
  for (TensorPlan* tensor : head.tensors) {
    if (tensor->chunks.empty()) continue;
    format::le32 crc32;
    crc32 = tensor->digest.crc32;
    columns.object(crc32);
    tensor->digest.crc32 = crc32;
    columns.object(tensor->digest.hash);
  }
}

}  // namespace

std::vector<std::byte> write_head(PackedHead& head) {
  ColumnWriter columns;
  visit(columns, head, 0);
  return std::move(columns).finish();
}

std::vector<std::byte> write_digests(PackedHead& head) {
  ColumnWriter columns;
  visit_digests(columns, head);
  return std::move(columns).finish();
}

void read_head(PackedHead& head, ByteSpan bytes, std::uint64_t contents_length) {
  ColumnReader columns(bytes, "head");
  visit(columns, head, contents_length);
  columns.finish();
  for (TensorPlan* tensor : head.tensors) derive_lengths(*tensor, columns);
}

std::uint64_t read_digests(PackedHead& head, ByteSpan bytes) {
  ColumnReader columns(bytes, "digests");
  visit_digests(columns, head);
  return columns.taken();
}

}  // namespace thalia::container
