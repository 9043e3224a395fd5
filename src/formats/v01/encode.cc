// Writing whole 0.1 files: thalia/formats/v01.h. All offsets are known before the first byte is
// written, as the header comes first and the checksum covers it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/v01.h"
#include "formats/v01/header.h"
#include "formats/v01/json.h"
#include "formats/v01/tree.h"
#include "formats/v01/wrapper.h"
#include "integrity/sha256.h"
#include "thalia/files.h"
#include "thalia/formats/v01.h"

namespace thalia {
namespace {

// Everything of a file but the payloads of its tensors, with all offsets final.
struct Plan {
  format::V01FileHeader header;
  std::string metadata;
  std::vector<formats::PlannedTree> trees;
  std::vector<format::V01RegionEntry> index;
  std::uint64_t body_bytes = 0;
};

Plan make_plan(const V01Document& document, bool aligned) {
  // Better refused than written and never read.
  if (document.entries.empty()) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature, "the original program reads no file without regions",
        {.section = "header", .field = "num_regions", .value = "0", .bound = "1 or more"});
  }
  Plan plan{.header = formats::to_disk(document.header)};
  plan.metadata = formats::python_json(document.metadata);
  std::uint64_t offset = sizeof plan.header + plan.metadata.size();
  for (const V01Entry& entry : document.entries) {
    try {
      if (!entry.state.is_object()) {
        fail_argument(ErrorCode::bad_argument, "state", std::string(kind_name(entry.state.kind())),
                      "object");
      }
      plan.trees.push_back(formats::plan_v01_tree(entry.state, aligned, offset));
      const std::uint64_t length = plan.trees.back().json.size();
      plan.index.push_back(formats::make_v01_index_entry(entry.name, {offset, length}));
      offset += length;
    } catch (Error& error) {
      error.add_section("region");
      error.add_region(printable(entry.name));
      throw;
    }
  }
  // The order of the original: header, metadata, regions, index, checksum.
  plan.header.metadata_offset = sizeof plan.header;
  plan.header.metadata_length = plan.metadata.size();
  plan.header.region_index_offset = offset;
  plan.header.region_index_length = plan.index.size() * sizeof(format::V01RegionEntry);
  plan.header.num_regions = static_cast<std::uint32_t>(plan.index.size());
  plan.body_bytes = offset + plan.header.region_index_length;
  return plan;
}

void write_body(const Plan& plan, const formats::WriteBytes& write) {
  write(std::as_bytes(std::span(&plan.header, 1)));
  write(as_byte_span(plan.metadata));
  for (const formats::PlannedTree& tree : plan.trees) formats::write_v01_tree(tree, write);
  write(as_byte_span(plan.index));
}

std::vector<std::byte> body_bytes(const Plan& plan) {
  std::vector<std::byte> body(plan.body_bytes);
  std::byte* at = body.data();
  write_body(plan, [&](ByteSpan piece) { at = std::ranges::copy(piece, at).out; });
  return body;
}

// Streams the body to the file, without a copy of it in memory. Frames need the whole body.
std::uint64_t write_plain(const std::filesystem::path& path, const Plan& plan,
                          const V01WriteOptions& options) {
  OutputFile sink(path, options.output, options.work.cancel);
  integrity::Sha256 sha;
  write_body(plan, [&](ByteSpan piece) {
    sha.update(piece);
    sink.write(piece);
  });
  sink.write(as_byte_span(sha.finish().bytes));
  sink.commit();
  return sink.size();
}

}  // namespace

std::vector<std::byte> encode_v01(const V01Document& document, const V01WriteOptions& options) {
  // Before the body is made, which may take long.
  const auto frame = formats::wanted_v01_frame(options);
  return formats::wrap_v01_body(body_bytes(make_plan(document, options.aligned)), frame,
                                options.checksum_inside);
}

std::uint64_t write_v01(const std::filesystem::path& path, const V01Document& document,
                        const V01WriteOptions& options) {
  return with_path(path.native(), [&] {
    const auto frame = formats::wanted_v01_frame(options);
    const Plan plan = make_plan(document, options.aligned);
    if (!frame) return write_plain(path, plan, options);
    const auto file = formats::wrap_v01_body(body_bytes(plan), frame, options.checksum_inside);
    OutputFile sink(path, options.output, options.work.cancel);
    sink.write(file);
    sink.commit();
    return file.size();
  });
}

void count_v01_totals(V01Document& document) noexcept {
  std::uint64_t neurons = 0;
  std::uint64_t synapses = 0;
  for (const V01Entry& entry : document.entries) {
    // The original counts neurons and synapses of regions alone.
    if (entry.name.starts_with("pathway:")) continue;
    const Value* neuron_state = entry.state.find("neuron_state");
    const Value* membrane = neuron_state == nullptr ? nullptr : neuron_state->find("membrane");
    if (membrane != nullptr && membrane->is_tensor())
      neurons += membrane->as_tensor().element_count();
    const Value* weights = entry.state.find("weights");
    if (weights == nullptr || !weights->is_object()) continue;
    for (const auto& [name, weight] : weights->members())
      if (weight.is_tensor()) synapses += weight.as_tensor().element_count();
  }
  document.header.total_neurons = neurons;
  document.header.total_synapses = synapses;
}

}  // namespace thalia
