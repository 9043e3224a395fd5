// Owns the small structures that the image borrows (headers, index, directory), so it must not move
// and lives as long as the image. Headers and directory have their final size from the start;
// digests are filled in later, in place. docs/format/format.md, "Layout".
#include "container/write/sections.h"

#include <algorithm>

#include "container/file/short_name.h"
#include "format/overlay.h"
#include "format/tensor.h"

namespace thalia::container {

using format::struct_bytes;

Sections::Sections(const FilePlan& plan, const Layout& layout)
    : plan_(plan), layout_(layout), payload_headers_(plan.tensors.size()) {
  for (std::size_t r = 0; r < plan_.regions.size(); ++r) {
    const ShortName name = short_name(plan_.regions[r].spec.name);
    format::RegionIndexEntry& entry = index_.emplace_back();
    std::copy(name.begin(), name.end(), entry.region_name);
    entry.data_offset = layout_.regions()[r].extent.offset;
    entry.data_length = layout_.regions()[r].extent.length;
  }
}

void Sections::add_sections(FilePieces& image, bool payloads) {
  if (!plan_.base.metadata) image.add(layout_.metadata().offset, as_byte_span(plan_.metadata));
  for (std::uint32_t r = 0; r < plan_.regions.size(); ++r) {
    if (!plan_.regions[r].kept) add_region(r, image);
  }
  if (!plan_.connections.empty() && !plan_.base.connectivity) add_connectivity(image);
  for (std::uint32_t i = 0; i < plan_.tensors.size(); ++i) {
    const TensorPlan& tensor = plan_.tensors[i];
    // An append leaves its header in the file, too.
    if (tensor.in_place) continue;
    // For tensors whose digest is known already; others are completed once more.
    complete_header(i);
    image.add(header_offset(i), struct_bytes(payload_headers_[i]));
    if (payloads && !tensor.streamed)
      image.add(tensor.stored_offset, std::span<const ByteSpan>(tensor.pieces));
  }
}

std::uint64_t Sections::build_directory() {
  directory_ = container::build_directory(plan_);
  return directory_.bytes.size();
}

void Sections::add_tables(FilePieces& image, const format::Header& header) {
  image.add(header.directory_offset, directory_.bytes);
  image.add(header.region_index_offset, std::as_bytes(std::span(index_)));
  image.add(header.integrity_offset - sizeof header, struct_bytes(header));  // the commit record
}

std::uint64_t Sections::header_offset(std::uint32_t tensor) const noexcept {
  return plan_.tensors[tensor].stored_offset - sizeof(format::TensorHeader);
}

// Called by any thread, once a tensor; each touches its own header.
void Sections::complete_header(std::uint32_t tensor) {
  payload_headers_[tensor] = payload_header(plan_.tensors[tensor]);
}

void Sections::complete_directory() {
  directory_.set_digests(plan_);
}

void Sections::add_region(std::uint32_t r, FilePieces& image) {
  const RegionSpec& spec = plan_.regions[r].spec;
  const RegionLayout& place = layout_.regions()[r];
  const std::uint64_t start = place.extent.offset;
  image.add(start, struct_bytes(place.header));
  image.add(start + sizeof(format::RegionHeader), struct_bytes(place.extension));
  image.add(start + place.header.config_offset, as_byte_span(spec.config_json));
  if (place.header.homeostatic_length != 0) {
    format::HomeostaticHeader& header = homeostatic_headers_.emplace_back();
    header.n_neurons = spec.n_neurons;
    header.timestamp_updated = spec.homeostatic_updated;
    image.add(start + place.header.homeostatic_offset, struct_bytes(header));
  }
  if (place.extension.dynamic_state_length != 0)
    image.add(start + place.extension.dynamic_state_offset, struct_bytes(place.dynamic));
  image.add(start + place.extension.region_metadata_offset, as_byte_span(spec.metadata_json));
}

void Sections::add_connectivity(FilePieces& image) {
  const std::uint64_t start = layout_.connectivity().offset;
  connectivity_header_.num_connections = static_cast<std::uint32_t>(plan_.connections.size());
  image.add(start, struct_bytes(connectivity_header_));
  // The length in a connection's entry counts the payload header, as the offset points at it.
  const auto matrix = [&](std::uint32_t i, format::le64& offset, format::le64& length) {
    const TensorPlan& tensor = plan_.tensors[i];
    offset = tensor.stored_offset - sizeof(format::TensorHeader) - start;
    length = tensor.stored_length + sizeof(format::TensorHeader);
  };
  for (const ConnectionPlan& connection : plan_.connections) {
    format::ConnectionEntry& entry = connection_entries_.emplace_back();
    const ShortName source = short_name(connection.source);
    const ShortName target = short_name(connection.target);
    std::copy(source.begin(), source.end(), entry.source_region);
    std::copy(target.begin(), target.end(), entry.target_region);
    matrix(connection.weights, entry.weight_offset, entry.weight_length);
    if (connection.delays != ConnectionPlan::kNone)
      matrix(connection.delays, entry.delay_offset, entry.delay_length);
  }
  image.add(start + sizeof connectivity_header_, as_byte_span(connection_entries_));
}

}  // namespace thalia::container
