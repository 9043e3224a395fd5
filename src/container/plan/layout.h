// Where everything before the directory lies. This follows from names, types, shapes and
// stored lengths alone; no payload is looked at. For an append, it is where the new parts lie: from
// plan.base.begin on, while kept parts stay in their places. docs/format/format.md, "Placement".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "container/file/block_choice.h"
#include "container/plan/file_plan.h"
#include "format/extent.h"
#include "format/region.h"
#include "format/state.h"

namespace thalia::container {

/// One region's extent and headers; offsets inside the headers are relative to the region, as they
/// are stored.
struct RegionLayout {
  format::Extent extent;
  format::RegionHeader header{};
  format::RegionExtension extension{};
  format::DynamicStateHeader dynamic{};
};

/// Places tensors one after the other in file order, so that a writer may learn a stored length
/// only when it has stored the payload: begin_tensor(), end_tensor() for each of file_order(), then
/// finish().
class Layout {
 public:
  explicit Layout(const FilePlan& plan, BlockGaps gaps = {});

  /// The tensors to be placed, by region; in a region first parameters, then homeostatic, then
  /// dynamic state by role, then the others; within these as declared.
  std::span<const std::uint32_t> file_order() const noexcept { return file_order_; }

  /// @return absolute offset of the payload; its 32-byte header lies directly before.
  std::uint64_t begin_tensor(std::uint32_t tensor);
  void end_tensor(std::uint64_t stored_length);
  void finish();

  // Valid after finish():
  format::Extent metadata() const noexcept { return metadata_; }
  const std::vector<RegionLayout>& regions() const noexcept { return regions_; }
  /// Header, entries and matrices; empty if there are no connections.
  format::Extent connectivity() const noexcept { return connectivity_; }
  /// The next free byte.
  std::uint64_t end() const noexcept { return at_; }

 private:
  void open_region(std::uint32_t region);
  void close_region();
  void open_remaining_regions();
  void open_piece(format::RegionPiece piece);
  void close_piece();
  void open_connectivity();
  void note_first_tensor(Role role, std::uint64_t header_offset);
  std::uint64_t relative(std::uint64_t absolute) const {
    return absolute - regions_[region_].extent.offset;
  }

  const FilePlan& plan_;
  std::vector<std::uint32_t> file_order_;
  std::vector<RegionLayout> regions_;
  format::Extent metadata_;
  format::Extent connectivity_;
  std::uint64_t at_;
  BlockGaps gaps_;
  std::uint32_t region_ = 0;  ///< the one that is open, or kConnectivity
  bool region_open_ = false;
  std::uint32_t opened_ = 0;  ///< regions opened so far
  std::optional<format::RegionPiece> piece_;
  std::uint64_t piece_start_ = 0;
};

/// Places all of layout.file_order() as they are borrowed: raw, or in chunks that are compressed
/// already. For saves that know every stored length beforehand.
void place_tensors(FilePlan& plan, Layout& layout);

}  // namespace thalia::container
