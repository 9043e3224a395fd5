#include "container/file/dead_bytes.h"

#include <algorithm>

#include "container/file/block_choice.h"
#include "format/constants.h"

namespace thalia::container {

std::uint64_t dead_bytes(const format::Header& header, std::vector<format::Extent> regions) {
  std::vector<format::Extent>& live = regions;
  live.push_back({header.metadata_offset, header.metadata_length});
  live.push_back({header.connectivity_offset, header.connectivity_length});
  live.push_back({header.directory_offset, header.directory_length});
  live.push_back({header.region_index_offset, header.region_index_length});
  live.push_back({header.integrity_offset - sizeof header, sizeof header});
  std::sort(live.begin(), live.end(),
            [](format::Extent a, format::Extent b) { return a.offset < b.offset; });
  // A walk over the live extents in the order of the file. `at` never moves backwards, so extents
  // that overlap, as only a faulty file has, are not counted twice.
  std::uint64_t dead = 0;
  std::uint64_t at = sizeof header;
  for (const format::Extent extent : live) {
    if (extent.length == 0) continue;
    const std::uint64_t next = format::align_up(at, format::kAlignment);
    if (extent.offset > next && !is_gap(at, extent.offset)) dead += extent.offset - next;
    at = std::max(at, extent.offset + extent.length);
  }
  return dead;
}

}  // namespace thalia::container
