#include "container/write/section_image.h"

#include <algorithm>

#include "container/file/short_name.h"
#include "format/overlay.h"
#include "thalia/format/tensor.h"

namespace thalia::container {

using format::struct_bytes;

SectionImage::SectionImage(const Draft& draft, const Layout& layout)
    : draft_(draft), layout_(layout) {
  for (std::size_t r = 0; r < draft_.regions.size(); ++r) {
    const ShortName name = short_name(draft_.regions[r].spec.name);
    format::RegionIndexEntry& entry = index_.emplace_back();
    std::copy(name.begin(), name.end(), entry.region_name);
    entry.data_offset = layout_.regions()[r].extent.offset;
    entry.data_length = layout_.regions()[r].extent.length;
  }
}

void SectionImage::add_to(FileImage& image) {
  if (!draft_.base.metadata) image.add(layout_.metadata().offset, as_byte_span(draft_.metadata));
  for (std::uint32_t r = 0; r < draft_.regions.size(); ++r) {
    if (!draft_.regions[r].kept) add_region(r, image);
  }
  if (!draft_.connections.empty() && !draft_.base.connectivity) add_connectivity(image);
}

void SectionImage::add_region(std::uint32_t r, FileImage& image) {
  const RegionSpec& spec = draft_.regions[r].spec;
  const RegionPlace& place = layout_.regions()[r];
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

void SectionImage::add_connectivity(FileImage& image) {
  const std::uint64_t start = layout_.connectivity().offset;
  connectivity_header_.num_connections = static_cast<std::uint32_t>(draft_.connections.size());
  image.add(start, struct_bytes(connectivity_header_));
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
  image.add(start + sizeof connectivity_header_, as_byte_span(connection_entries_));
}

}  // namespace thalia::container
