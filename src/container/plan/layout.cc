// Invariant: at_ is the first free byte and only grows. Tensors are placed in file order, one after
// the other, and no offset depends on anything that comes later: so a raw save knows all offsets
// before it writes a byte, and a compressed one may learn each stored length when the tensor is
// stored. At most one region is open, and in it at most one piece. Regions are opened by number,
// those without tensors too, so that each gets its headers. The payload's alignment decides where a
// tensor lies; its 32-byte header is squeezed in directly in front. docs/format/format.md,
// "Placement" and "Region".
#include "container/plan/layout.h"

#include <algorithm>
#include <tuple>

#include "format/connectivity.h"
#include "format/constants.h"
#include "format/payload.h"
#include "format/tensor.h"

namespace thalia::container {

using format::align_up;
using format::RegionPiece;

Layout::Layout(const FilePlan& plan, BlockGaps gaps)
    : plan_(plan), regions_(plan.regions.size()), at_(plan.base.begin), gaps_(gaps) {
  for (std::uint32_t i = 0; i < plan.tensors.size(); ++i) {
    if (!plan.tensors[i].in_place) file_order_.push_back(i);
  }
  // Gaps keep damage to a payload out of the blocks of tables. There is no payload here.
  if (file_order_.empty()) gaps_ = {};
  // Only dynamic state is ordered by role, because its header points at the first tensor of each
  // role. In the other pieces the order of declaration stays.
  const auto key = [&](std::uint32_t i) {
    const TensorPlan& tensor = plan.tensors[i];
    if (tensor.region == kConnectivity) return std::tuple(kConnectivity, 0, Role::weights, i);
    const RegionPiece piece = format::piece_of(tensor.spec.role);
    const Role role = piece == RegionPiece::dynamic_state ? tensor.spec.role : Role::weights;
    return std::tuple(tensor.region, static_cast<int>(piece), role, i);
  };
  std::sort(file_order_.begin(), file_order_.end(),
            [&](auto a, auto b) { return key(a) < key(b); });

  // The metadata comes first. An append leaves the old text where it is, unless there is a new one.
  metadata_ = plan.base.metadata.value_or(format::Extent{at_, plan.metadata.size()});
  if (!plan.base.metadata) at_ += plan.metadata.size();
}

// A region that an append keeps is not opened: it has its place and its headers in the file.
void Layout::open_region(std::uint32_t region) {
  opened_ = region + 1;
  RegionLayout& place = regions_[region];
  if (plan_.regions[region].kept) {
    place.extent = *plan_.regions[region].kept;
    return;
  }
  at_ = gaps_.behind(align_up(at_, format::kAlignment));
  region_ = region;
  region_open_ = true;
  const RegionSpec& spec = plan_.regions[region].spec;
  place.extent.offset = at_;
  place.header.n_neurons = spec.n_neurons;
  place.header.n_inputs = spec.n_inputs;
  place.header.neuron_type = spec.neuron_type;
  place.extension.extension_length = format::kRegionExtensionLength;
  // Pieces that stay empty keep offset and length 0.
  at_ += sizeof(format::RegionHeader) + sizeof(format::RegionExtension);
  place.header.config_offset = relative(at_);
  place.header.config_length = spec.config_json.size();
  at_ += spec.config_json.size();
}

void Layout::close_region() {
  if (!region_open_) return;
  close_piece();
  RegionLayout& place = regions_[region_];
  const std::string& metadata = plan_.regions[region_].spec.metadata_json;
  if (!metadata.empty()) {
    at_ = align_up(at_, format::kAlignment);
    place.extension.region_metadata_offset = relative(at_);
    place.extension.region_metadata_length = metadata.size();
    at_ += metadata.size();
  }
  place.extent.length = at_ - place.extent.offset;
  region_open_ = false;
}

// Regions after the last tensor's have no tensors, and their headers and texts all the same.
void Layout::open_remaining_regions() {
  close_region();
  while (opened_ < regions_.size()) {
    open_region(opened_);
    close_region();
  }
}

void Layout::open_piece(RegionPiece piece) {
  piece_ = piece;
  piece_start_ = 0;  // unknown: weights and other begin with their first tensor's header
  if (piece == RegionPiece::homeostatic) {
    // The piece's header has 16 bytes, the tensor's has 32: so the first payload follows on a
    // multiple of 64 without a gap.
    piece_start_ = align_up(at_ + 48, format::kAlignment) - 48;
    at_ = piece_start_ + sizeof(format::HomeostaticHeader);
  } else if (piece == RegionPiece::dynamic_state) {
    piece_start_ = align_up(at_, format::kAlignment);
    at_ = piece_start_ + sizeof(format::DynamicStateHeader);
  }
}

void Layout::close_piece() {
  if (!piece_) return;
  RegionLayout& place = regions_[region_];
  const std::uint64_t offset = relative(piece_start_);
  const std::uint64_t length = at_ - piece_start_;
  switch (*piece_) {
    case RegionPiece::weights:
      place.header.weights_offset = offset;
      place.header.weights_length = length;
      break;
    case RegionPiece::homeostatic:
      place.header.homeostatic_offset = offset;
      place.header.homeostatic_length = length;
      break;
    case RegionPiece::dynamic_state:
      place.extension.dynamic_state_offset = offset;
      place.extension.dynamic_state_length = length;
      break;
    case RegionPiece::other:
      place.extension.other_offset = offset;
      place.extension.other_length = length;
      break;
  }
  piece_.reset();
}

// All matrices follow the list of connections, whose length is known from their number.
void Layout::open_connectivity() {
  at_ = gaps_.behind(align_up(at_, format::kAlignment));
  region_ = kConnectivity;
  connectivity_.offset = at_;
  at_ += sizeof(format::ConnectivityHeader) +
         plan_.connections.size() * sizeof(format::ConnectionEntry);
  // Damage to a matrix must not make the list unreadable. So the first payload begins on a block of
  // its own; its header still fits in front.
  at_ = gaps_.behind(at_ + sizeof(format::TensorHeader)) - sizeof(format::TensorHeader);
}

// The headers point at the first tensor of each role of dynamic state. A program that does not read
// the directory finds it there.
void Layout::note_first_tensor(Role role, std::uint64_t header_offset) {
  RegionLayout& place = regions_[region_];
  const std::uint64_t offset = relative(header_offset);
  if (role == Role::region_state && place.dynamic.has_region_state == 0) {
    place.dynamic.has_region_state = 1;
    place.dynamic.region_state_offset = offset;
  } else if (role == Role::learning_state && place.dynamic.has_learning_state == 0) {
    place.dynamic.has_learning_state = 1;
    place.dynamic.learning_state_offset = offset;
  } else if (role == Role::oscillator && place.dynamic.has_oscillators == 0) {
    place.dynamic.has_oscillators = 1;
    place.extension.oscillator_offset = offset;
  } else if (role == Role::neuromodulator && place.dynamic.has_neuromodulators == 0) {
    place.dynamic.has_neuromodulators = 1;
    place.extension.neuromodulator_offset = offset;
  }
}

std::uint64_t Layout::begin_tensor(std::uint32_t tensor) {
  const TensorPlan& plan = plan_.tensors[tensor];
  // Everything that lies before the tensor is placed now: regions without tensors, the
  // region's own headers, the piece's.
  if (plan.region == kConnectivity) {
    if (connectivity_.offset == 0) {
      open_remaining_regions();
      open_connectivity();
    }
  } else {
    if (region_ != plan.region) close_region();
    while (opened_ <= plan.region) {
      close_region();
      open_region(opened_);
    }
    const RegionPiece piece = format::piece_of(plan.spec.role);
    if (piece != piece_) {
      close_piece();
      open_piece(piece);
    }
  }
  const std::uint64_t payload =
      align_up(at_ + sizeof(format::TensorHeader), format::payload_alignment(plan.logical_length));
  const std::uint64_t header = payload - sizeof(format::TensorHeader);
  if (plan.region != kConnectivity) {
    if (piece_start_ == 0) {
      piece_start_ = header;
      if (piece_ == RegionPiece::weights)
        regions_[region_].header.encoding_type = plan.result_encoding() == Encoding::csr;
    }
    note_first_tensor(plan.spec.role, header);
  }
  at_ = payload;
  return payload;
}

void Layout::end_tensor(std::uint64_t stored_length) {
  at_ += stored_length;
}

void Layout::finish() {
  open_remaining_regions();
  if (plan_.base.connectivity) {
    connectivity_ = *plan_.base.connectivity;
  } else if (!plan_.connections.empty()) {
    connectivity_.length = at_ - connectivity_.offset;
  }
  // The directory is a table that every reader needs: it gets a block of its own, too.
  at_ = gaps_.behind(at_);
}

void place_tensors(FilePlan& plan, Layout& layout) {
  for (const std::uint32_t i : layout.file_order()) {
    TensorPlan& tensor = plan.tensors[i];
    tensor.stored_offset = layout.begin_tensor(i);
    if (tensor.in_chunks) {
      // These are compressed already, so their stored length is known.
      tensor.move_chunks(tensor.stored_offset);
    } else {
      tensor.stored_length = tensor.logical_length;
    }
    layout.end_tensor(tensor.stored_length);
  }
  layout.finish();
}

}  // namespace thalia::container
