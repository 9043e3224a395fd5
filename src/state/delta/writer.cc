// Saves a delta in one pass over the state, in the order of the file: each tensor is stored before
// the next one is asked for, so that the caller holds one at a time. The prefix that names the base
// comes before the container and is written first; the file appears under its name at the commit,
// complete or not at all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "container/file/delta_prefix.h"
#include "container/file/short_name.h"
#include "container/plan/file_plan.h"
#include "container/write/file_save.h"
#include "format/constants.h"
#include "format/delta.h"
#include "io/file/posix_file.h"
#include "io/path/base_file.h"
#include "state/delta/base_state.h"
#include "state/delta/low_rank_delta.h"
#include "state/delta/save_state.h"
#include "state/delta/state_plan.h"
#include "state/delta/tensor_writer.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"

namespace thalia::state {
namespace {

// Which regions of a state are not as its base has them.
//
// Which regions of a state differ from the base, for a report. A region counts as changed if one of
// its tensors is not the base's, if it lost one, or if a connection at it changed, came or went.
// Nothing is read for this: which tensors differ was found while they were stored.

using Pair = std::pair<std::string, std::string>;

class Changes {
 public:
  Changes(const container::FilePlan& plan, const BaseNames& base,
          const std::unordered_set<std::uint32_t>& changed)
      : plan_(plan), base_(base), changed_(changed) {
    for (const BaseNames::Region& region : base.regions) regions_.emplace(region.name, &region);
  }

  std::vector<std::string> changed_regions() {
    find_changed_ends();
    std::vector<std::string> out;
    for (const container::RegionPlan& region : plan_.regions) {
      if (is_changed(region)) out.push_back(region.spec.name);
    }
    return out;
  }

  // Whatever is left of the base's regions; this empties the index, and so comes last.
  std::vector<std::string> removed_regions() {
    for (const container::RegionPlan& region : plan_.regions) regions_.erase(region.spec.name);
    std::vector<std::string> out;
    for (const BaseNames::Region& region : base_.regions) {
      if (regions_.contains(region.name)) out.push_back(region.name);
    }
    return out;
  }

 private:
  bool is_changed(const container::RegionPlan& region) const {
    const auto found = regions_.find(region.spec.name);
    if (found == regions_.end()) return true;
    const auto has = [&](std::uint32_t tensor) { return changed_.contains(tensor); };
    const auto lost = [&](const std::string& name) { return !plan_.has_tensor(region, name); };
    const auto& tensors = found->second->tensors;
    return std::any_of(region.tensors.begin(), region.tensors.end(), has) ||
           std::any_of(tensors.begin(), tensors.end(), lost) ||
           ends_.contains(container::short_name_string(region.spec.name));
  }

  // The regions at both ends of connections that are not the base's.
  void find_changed_ends() {
    constexpr std::uint32_t kNone = container::ConnectionPlan::kNone;
    std::set<Pair> kept;
    std::set<Pair> had_delays;
    for (const BaseNames::Connection& connection : base_.connections) {
      if (connection.delays) had_delays.emplace(connection.source, connection.target);
    }
    for (const container::ConnectionPlan& connection : plan_.connections) {
      Pair pair(container::short_name_string(connection.source),
                container::short_name_string(connection.target));
      const bool has_delays = connection.delays != kNone;
      if (changed_.contains(connection.weights) ||
          (has_delays && changed_.contains(connection.delays)) ||
          // Delays that are new are in `changed_` too; delays that were dropped show only here.
          had_delays.contains(pair) != has_delays)
        add(pair);
      kept.insert(std::move(pair));
    }
    for (const BaseNames::Connection& connection : base_.connections) {
      if (Pair pair(connection.source, connection.target); !kept.contains(pair)) add(pair);
    }
  }

  void add(const Pair& pair) {
    ends_.insert(pair.first);
    ends_.insert(pair.second);
  }

  const container::FilePlan& plan_;
  const BaseNames& base_;
  const std::unordered_set<std::uint32_t>& changed_;
  std::unordered_map<std::string, const BaseNames::Region*> regions_;
  std::set<std::string> ends_;  ///< short names
};

/// Fills in changed_regions and removed_regions. @param changed tensors of the plan that are not
/// the base's.
void note_changed_regions(const container::FilePlan& plan, const BaseNames& base,
                          const std::unordered_set<std::uint32_t>& changed, DeltaResult& result) {
  Changes changes(plan, base, changed);
  result.changed_regions = changes.changed_regions();
  result.removed_regions = changes.removed_regions();
}

}  // namespace
}  // namespace thalia::state

namespace thalia {
namespace {

namespace fs = std::filesystem;

// The estimates need to know the codec that will be used.
DeltaOptions with_codec(DeltaOptions options) {
  Compression& compression = options.save.compression;
  if (compression.codec) return options;
  if (options.save.automatic_codec) compression.level = 0;
  options.save.automatic_codec = false;
  compression.codec = compression.level == 0 ? Codec::plane_entropy : Codec::zstd;
  return options;
}

// Checked before the base is looked at.
container::CheckedOptions save_options(const DeltaOptions& options) {
  SaveOptions save = options.save;
  save.io = IoMode::buffered;  // what is written is small beside what is read
  save.work.progress = {};     // it is of the state's bytes, not of those that are written
  container::CheckedOptions checked(std::move(save));
  if (!(options.loss.threshold >= 0) || std::isinf(options.loss.threshold)) {
    fail_argument(ErrorCode::bad_argument, "threshold", fmt::format("{}", options.loss.threshold),
                  "0 or more, and finite");
  }
  return checked;
}

// Also compares paths of files that do not exist yet.
bool are_one(const fs::path& a, const fs::path& b) {
  return is_same_file(a, b) || resolved_path(a) == resolved_path(b);
}

class DeltaWriter {
 public:
  DeltaWriter(const StateSource& state, const state::BaseState& base, const fs::path& target,
              const DeltaOptions& options)
      : base_(base),
        identity_(base.identity()),
        options_(with_codec(options)),
        save_(save_options(options_)),
        plan_(state::plan_of(state)),
        sources_(state::keyed_tensors(state)) {
    // Replacing a file of the chain would make the delta the last trace of its own base.
    for (const fs::path& path : base.files()) {
      if (!are_one(path, target)) continue;
      throw UsageError(ErrorCode::bad_argument, "a delta cannot replace a file that it is based on",
                       {.path = target.string(), .field = "target"});
    }
    // Readers find a base by its checksum.
    if (identity_.closing_checksum == Digest256{}) {
      throw UsageError(ErrorCode::bad_argument,
                       "a file without a checksum cannot be told from others, and is no base",
                       {.path = base.path().string(), .field = "base"});
    }
    result_.base_bytes = base.file_bytes();
    result_.depth = identity_.depth + 1;
    for (const container::TensorPlan& tensor : plan_.tensors)
      logical_bytes_ += tensor.logical_length;
    state::check_patterns(sources_, options);
    if (options.loss.low_rank)
      generation_ = state::mark_low_rank(sources_, options, plan_.metadata);
  }

  /// @param place of the file; its base is named as from `target`.
  DeltaResult run(const fs::path& place, const fs::path& target) {
    container::FileSave file(place, save_, std::move(plan_));
    return run(file, place == target ? file.path() : target);
  }
  /// Into an empty file that is open.
  DeltaResult run(int fd, const fs::path& target) {
    container::FileSave file(fd, target, save_, std::move(plan_));
    return run(file, target);
  }

 private:
  DeltaResult run(container::FileSave& file, const fs::path& target) {
    container::FilePlan& plan = file.plan();
    plan.delta = {.prefix = build_prefix(target, plan.training_steps),
                  .base_checksum = identity_.closing_checksum,
                  .base_step = identity_.training_steps};
    io::pwrite_all(file.fd(), 0, plan.delta->prefix, file.path());
    state::DeltaTensorWriter tensors(plan, file.store(), base_, options_, generation_, result_);
    for (const std::uint32_t id : file.store().layout().file_order()) {
      stop_if_cancelled(options_.save.work.cancel);
      store_tensor(tensors, id, plan.tensors[id].logical_length);
    }
    static_cast<SaveResult&>(result_) = file.commit();
    // The save knows the container, and nothing of what it stands for.
    result_.file_bytes += plan.delta->prefix.size();
    result_.payload_bytes = logical_bytes_;
    result_.identity.depth = result_.depth;
    if (options_.save.io == IoMode::direct)
      result_.io_fallback = "what a delta writes is little beside what it reads";
    state::note_changed_regions(plan, base_.names(), tensors.changed(), result_);
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

  std::vector<std::byte> build_prefix(const fs::path& target, std::uint64_t steps) const {
    const std::string path = io::base_name(base_.path(), target);
    if (path.empty() || path.size() > format::kMaxNameLength) {
      fail_argument(ErrorCode::bad_argument, "base", fmt::format("a path of {} bytes", path.size()),
                    fmt::format("1 to {}", format::kMaxNameLength));
    }
    format::DeltaHeader header{};
    header.base_checkpoint_hash = identity_.closing_checksum;
    header.base_step = identity_.training_steps;
    header.current_step = steps;
    format::DeltaReference reference{};
    reference.base_length = identity_.file_length;
    reference.base_generation = identity_.generation;
    reference.base_uuid = identity_.file_uuid;
    reference.depth = result_.depth;
    return container::build_delta_prefix(header, reference, path);
  }

  void store_tensor(state::DeltaTensorWriter& tensors, std::uint32_t id, std::uint64_t length) {
    const state::KeyedTensor& source = sources_[id];
    try {
      tensors.store(id, source);
    } catch (Error& error) {
      error.add_region(printable(source.key.region));
      error.add_tensor(printable(source.tensor->spec.name));
      throw;
    }
    done_ += length;
    if (options_.save.work.progress) options_.save.work.progress(done_, logical_bytes_);
  }

  const Stopwatch watch_;
  const state::BaseState& base_;
  const FileIdentity identity_;
  const DeltaOptions options_;
  const container::CheckedOptions save_;
  container::FilePlan plan_;
  std::vector<state::KeyedTensor> sources_;  ///< by tensor of the plan
  state::LossyGeneration generation_;
  std::uint64_t logical_bytes_ = 0;  ///< of the state's tensors
  std::uint64_t done_ = 0;
  DeltaResult result_;
};

DeltaResult write(const StateSource& state, const state::BaseState& base, const fs::path& place,
                  const fs::path& target, const DeltaOptions& options) {
  return with_path(target.native(),
                   [&] { return DeltaWriter(state, base, target, options).run(place, target); });
}

}  // namespace

namespace state {

DeltaResult write_delta_at(const StateSource& state, const ChainReader& base, const fs::path& place,
                           const fs::path& target, const DeltaOptions& options) {
  return write(state, *file_base(base), place, target, options);
}

DeltaResult write_delta_at(const StateSource& state, const SavedState& base, const fs::path& place,
                           const fs::path& target, const DeltaOptions& options) {
  return write(state, *memory_base(base, options.save.work), place, target, options);
}

DeltaResult write_delta_at(const StateSource& state, const ChainReader& base, int fd,
                           const fs::path& target, const DeltaOptions& options) {
  return with_path(target.native(), [&] {
    return DeltaWriter(state, *file_base(base), target, options).run(fd, target);
  });
}

}  // namespace state

DeltaResult write_delta(const StateSource& state, const ChainReader& base, const fs::path& target,
                        const DeltaOptions& options) {
  return write(state, *state::file_base(base), target, target, options);
}

DeltaResult write_delta(const StateSource& state, const SavedState& base, const fs::path& target,
                        const DeltaOptions& options) {
  return write(state, *state::memory_base(base, options.save.work), target, target, options);
}

}  // namespace thalia
