// A plan as pieces of a file's image, before the integrity table: metadata, regions,
// connectivity, payloads, and the tables after them. What is kept in place, and the header, are no
// part of it. docs/format/format.md, "Layout".
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "container/plan/directory_builder.h"
#include "container/plan/file_plan.h"
#include "container/plan/layout.h"
#include "container/write/file_pieces.h"
#include "format/connectivity.h"
#include "format/header.h"
#include "format/region.h"
#include "format/state.h"
#include "format/tensor.h"

namespace thalia::container {

/// For a plan whose tensors are placed; plan and layout are borrowed. Lives as long as the image
/// it was added to. It may be added before digests are known; then payload headers and directory
/// are completed before their extents are written.
class Sections {
 public:
  Sections(const FilePlan& plan, const Layout& layout);
  Sections(const Sections&) = delete;
  Sections& operator=(const Sections&) = delete;

  /// Adds what lies before the tables. @param payloads the borrowed payloads too; else only
  /// the header before each.
  void add_sections(FilePieces& image, bool payloads);
  /// @return its bytes, as place_tables() asks for them. @throws as build_directory().
  std::uint64_t build_directory();
  /// Directory, region index and commit record, where the header says. @param header borrowed.
  void add_tables(FilePieces& image, const format::Header& header);

  /// Where the header before a tensor's payload is.
  std::uint64_t header_offset(std::uint32_t tensor) const noexcept;
  void complete_header(std::uint32_t tensor);
  void complete_directory();

 private:
  void add_region(std::uint32_t region, FilePieces& image);
  void add_connectivity(FilePieces& image);

  const FilePlan& plan_;
  const Layout& layout_;
  std::vector<format::RegionIndexEntry> index_;  ///< one entry a region, kept ones among them
  std::vector<format::TensorHeader> payload_headers_;
  Directory directory_;
  // What the image borrows; a deque, so that growing moves nothing.
  std::deque<format::HomeostaticHeader> homeostatic_headers_;
  format::ConnectivityHeader connectivity_header_{};
  std::vector<format::ConnectionEntry> connection_entries_;
};

}  // namespace thalia::container
