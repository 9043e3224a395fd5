// What stands before a file's directory besides payloads: metadata, region headers and texts, the
// tables of the connectivity section. As runs of an image, without what is kept in place.
// docs/format.md, "Region".
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "container/write/draft.h"
#include "container/write/file_image.h"
#include "container/write/layout.h"
#include "thalia/format/connectivity.h"
#include "thalia/format/region.h"
#include "thalia/format/state.h"

namespace thalia::container {

/// Of a draft whose tensors are placed; both are borrowed. Lives as long as the image it was added
/// to.
class SectionImage {
 public:
  SectionImage(const Draft& draft, const Layout& layout);
  SectionImage(const SectionImage&) = delete;
  SectionImage& operator=(const SectionImage&) = delete;

  void add_to(FileImage& image);
  /// One entry a region, kept ones among them; docs/format.md, "Region index".
  std::span<const format::RegionIndexEntry> region_index() const noexcept { return index_; }

 private:
  void add_region(std::uint32_t region, FileImage& image);
  void add_connectivity(FileImage& image);

  const Draft& draft_;
  const Layout& layout_;
  std::vector<format::RegionIndexEntry> index_;
  // What the image borrows; a deque, so that growing moves nothing.
  std::deque<format::HomeostaticHeader> homeostatic_headers_;
  format::ConnectivityHeader connectivity_header_{};
  std::vector<format::ConnectionEntry> connection_entries_;
};

}  // namespace thalia::container
