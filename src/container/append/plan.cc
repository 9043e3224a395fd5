// Three lists make the new state: the file's regions with their fates, its connections, and a plan
// of what is new. Kept regions are never copied: the result only says where they lie. added_ knows
// the names that will be in the file, old ones included, so that it refuses duplicates; every
// change keeps it so. A region keeps its number while it exists, new ones come last.
// docs/format/writing.md, "In-place append".
#include "container/append/plan.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/append/copied_tensor.h"
#include "container/file/short_name.h"
#include "container/read/stored_connection.h"
#include "format/constants.h"
#include "format/directory.h"
#include "format/extent.h"
#include "format/header.h"

namespace thalia::container {

AppendPlan::AppendPlan(std::shared_ptr<const detail::OpenFile> file)
    : file_(std::move(file)), regions_(file_->region_count()) {
  for (std::uint32_t r = 0; r < regions_.size(); ++r) {
    const format::DirectoryRegion& record = file_->directory_region(r);
    added_.note_region(file_->name(record.name_offset, record.name_length));
  }
  for (std::uint32_t i = 0; i < file_->connection_count(); ++i) {
    const StoredConnection stored = stored_connection(*file_, i);
    added_.note_connection(stored.source, stored.target);
    kept_connections_.emplace(std::pair(stored.source, stored.target), connections_.size());
    connections_.push_back({stored.source, stored.target});
  }
}

void AppendPlan::set_metadata(std::string json) {
  added_.set_metadata(std::move(json));
  // The plan has checked it. Kept apart, since a plan has a default where nobody set anything.
  metadata_ = added_.metadata;
}

std::uint32_t AppendPlan::find_kept(std::string_view name) const {
  const auto found = file_->find_region(name);
  if (!found || regions_[*found].fate != Fate::kept) {
    fail_argument(ErrorCode::not_found, "region name", fmt::format("'{}'", printable(name)),
                  "a region of the file that was not replaced or removed before");
  }
  return *found;
}

std::uint32_t AppendPlan::replace_region(RegionSpec spec) {
  const std::uint32_t region = find_kept(spec.name);
  const std::string name = spec.name;
  // The name is free for the new region only; if that is refused, the old one has it again.
  added_.forget_region(name);
  try {
    const std::uint32_t id = added_.add_region(std::move(spec));
    regions_[region] = {Fate::replaced, id};
    return id;
  } catch (...) {
    added_.note_region(name);
    throw;
  }
}

// Connections that were added in this append know their regions by name.
void AppendPlan::check_unused(std::string_view name) const {
  for (const ConnectionPlan& connection : added_.connections) {
    if (connection.source != name && connection.target != name) continue;
    fail_argument(ErrorCode::wrong_state, "region name", fmt::format("'{}'", printable(name)),
                  "a region that no connection of this append names");
  }
}

void AppendPlan::remove_region(std::string_view name) {
  const std::uint32_t region = find_kept(name);
  check_unused(name);
  // Connections in the file know regions by short names.
  const std::string stored = short_name_string(name);
  for (OldConnection& connection : connections_) {
    if (connection.source != stored && connection.target != stored) continue;
    if (connection.kept) added_.forget_connection(connection.source, connection.target);
    connection.kept = false;
    kept_connections_.erase({connection.source, connection.target});
  }
  added_.forget_region(name);
  regions_[region].fate = Fate::removed;
}

void AppendPlan::remove_connection(std::string_view source, std::string_view target) {
  const auto found = kept_connections_.find({short_name_string(source), short_name_string(target)});
  if (found == kept_connections_.end()) {
    fail_argument(ErrorCode::not_found, "connection",
                  fmt::format("'{}' to '{}'", printable(source), printable(target)),
                  "a connection of the file that was not removed before");
  }
  connections_[found->second].kept = false;
  kept_connections_.erase(found);
  added_.forget_connection(source, target);
}

std::uint32_t AppendPlan::copy_region(RegionSpec spec, std::vector<TensorPlan> tensors) {
  const auto there = file_->find_region(spec.name);
  // A region that was replaced or removed before in this append is not the file's any more: then
  // the name is new, or refused as a duplicate.
  const bool replaces = there && regions_[*there].fate == Fate::kept;
  const std::uint32_t id =
      replaces ? replace_region(std::move(spec)) : added_.add_region(std::move(spec));
  add_copied(added_, id, std::move(tensors));
  return id;
}

// The file's total less what goes, so that no region that stays has to be read.
std::uint64_t AppendPlan::kept_neurons() const {
  std::uint64_t neurons = file_->header().total_neurons;
  for (std::uint32_t r = 0; r < regions_.size(); ++r) {
    if (regions_[r].fate == Fate::kept) continue;
    const std::uint32_t gone = file_->region_headers(r).header.n_neurons;
    if (gone > neurons) {
      fail_field(ErrorCode::inconsistent, "header", "total_neurons",
                 offsetof(format::Header, total_neurons),
                 std::to_string(file_->header().total_neurons), "the sum over the regions");
    }
    neurons -= gone;
  }
  return neurons;
}

void AppendPlan::keep_region(std::uint32_t r, FilePlan& out) const {
  const format::DirectoryRegion& record = file_->directory_region(r);
  RegionPlan& region = out.regions.emplace_back();
  region.spec.name = file_->name(record.name_offset, record.name_length);
  region.kept = file_->owner_extent(r);
  for (std::uint32_t i = record.first_tensor; i < record.first_tensor + record.tensor_count; ++i) {
    region.tensors.push_back(static_cast<std::uint32_t>(out.tensors.size()));
    out.tensors.push_back(tensor_in_place(*file_, r, i));
    out.tensors.back().region = static_cast<std::uint32_t>(out.regions.size() - 1);
  }
}

// Numbers in the added plan are not those of the file to be: tensors get their new ones here.
void AppendPlan::move_region(std::uint32_t added, FilePlan& out) {
  RegionPlan& region = out.regions.emplace_back(std::move(added_.regions[added]));
  for (std::uint32_t& i : region.tensors) {
    TensorPlan& tensor = out.tensors.emplace_back(std::move(added_.tensors[i]));
    tensor.region = static_cast<std::uint32_t>(out.regions.size() - 1);
    i = static_cast<std::uint32_t>(out.tensors.size() - 1);
  }
}

// The connectivity section is one extent, and its matrices are named by number. If a connection
// comes or goes, all of it is written anew, and old matrices are copied; else all stays in place.
void AppendPlan::compose_connections(FilePlan& out) {
  const bool stays = added_.connections.empty() &&
                     std::all_of(connections_.begin(), connections_.end(),
                                 [](const OldConnection& connection) { return connection.kept; });
  const format::Header& header = file_->header();
  if (stays && !connections_.empty())
    out.base.connectivity = {header.connectivity_offset, header.connectivity_length};
  for (std::uint32_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i].kept)
      add_stored_connection(out, *file_, i, stays ? tensor_in_place : tensor_to_copy);
  }
  for (const ConnectionPlan& added : added_.connections) {
    out.connections.push_back({.source = added.source, .target = added.target});
    set_matrices(out, std::move(added_.tensors[added.weights]),
                 added.delays == ConnectionPlan::kNone
                     ? std::nullopt
                     : std::optional(std::move(added_.tensors[added.delays])));
  }
}

FilePlan AppendPlan::compose() {
  added_.check_complete();
  const format::Header& header = file_->header();
  FilePlan out;
  out.training_steps = training_steps_.value_or(header.training_steps);
  out.base.begin = format::align_up(header.file_length, format::kAlignment);
  out.base.neurons = kept_neurons();
  if (metadata_) {
    out.metadata = std::move(*metadata_);
  } else {
    out.base.metadata = {header.metadata_offset, header.metadata_length};
  }
  // Regions of the file first, in their order; a replacement takes the old one's number.
  std::vector<bool> moved(added_.regions.size());
  for (std::uint32_t r = 0; r < regions_.size(); ++r) {
    if (regions_[r].fate == Fate::kept) keep_region(r, out);
    if (regions_[r].fate == Fate::replaced) {
      move_region(regions_[r].replacement, out);
      moved[regions_[r].replacement] = true;
    }
  }
  for (std::uint32_t r = 0; r < moved.size(); ++r) {
    if (!moved[r]) move_region(r, out);
  }
  compose_connections(out);
  out.check_complete();
  return out;
}

}  // namespace thalia::container
