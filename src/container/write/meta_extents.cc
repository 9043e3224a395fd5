// Takes places from the file's own structures, so each is checked as it is read. Extents come out
// sorted and without overlap: a side file maps them back to the source's offsets.
#include "container/write/meta_extents.h"

#include <algorithm>

#include "format/connectivity.h"
#include "format/header.h"
#include "format/state.h"

namespace thalia::container {

using format::Extent;

std::vector<Extent> meta_extents(const detail::OpenFile& file) {
  const format::Header& header = file.header();
  std::vector<Extent> out{{0, sizeof header}, {header.metadata_offset, header.metadata_length}};
  for (std::uint32_t r = 0; r < file.region_count(); ++r) {
    const auto [region, extension, start] = file.region_headers(r);
    out.push_back({start, sizeof region + sizeof extension});
    out.push_back({start + region.config_offset, region.config_length});
    if (region.homeostatic_length != 0)
      out.push_back({start + region.homeostatic_offset, sizeof(format::HomeostaticHeader)});
    if (extension.dynamic_state_length != 0)
      out.push_back({start + extension.dynamic_state_offset, sizeof(format::DynamicStateHeader)});
    out.push_back({start + extension.region_metadata_offset, extension.region_metadata_length});
  }
  if (const std::uint64_t count = file.connection_count(); count != 0) {
    out.push_back({header.connectivity_offset,
                   sizeof(format::ConnectivityHeader) + count * sizeof(format::ConnectionEntry)});
  }
  out.push_back({header.directory_offset, header.file_length - header.directory_offset});
  std::erase_if(out, [](const Extent& extent) { return extent.length == 0; });
  std::sort(out.begin(), out.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  // Texts overlap only in a file that misleads. Joined, each byte is still in exactly one extent.
  std::vector<Extent> joined;
  for (const Extent& extent : out) {
    if (joined.empty() || joined.back().offset + joined.back().length < extent.offset) {
      joined.push_back(extent);
    } else {
      Extent& last = joined.back();
      last.length =
          std::max(last.offset + last.length, extent.offset + extent.length) - last.offset;
    }
  }
  return joined;
}

}  // namespace thalia::container
