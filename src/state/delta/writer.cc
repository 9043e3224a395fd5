// Saves a delta in one pass over the state, in the order of the file: each tensor is stored before
// the next one is asked for, so that the caller holds one at a time. The prefix that names the base
// comes before the container and is written first; the file appears under its name at the commit,
// complete or not at all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "container/file/delta_prefix.h"
#include "container/pack/pack.h"
#include "container/plan/file_plan.h"
#include "container/write/file_save.h"
#include "format/constants.h"
#include "format/delta.h"
#include "io/file/memory_file.h"
#include "io/file/posix_file.h"
#include "io/path/base_file.h"
#include "io/system/unique_fd.h"
#include "state/delta/base_state.h"
#include "state/delta/changed_regions.h"
#include "state/delta/low_rank_delta.h"
#include "state/delta/save_state.h"
#include "state/delta/state_plan.h"
#include "state/delta/tensor_writer.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"

namespace thalia {
namespace {

namespace fs = std::filesystem;

// A state up to which a delta is made in memory, where the caller sets no limit.
constexpr std::uint64_t kMostUnpacked = 512ull << 20;

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
    if (may_pack()) {
      save_packed(place, target);
    } else {
      container::FileSave file(place, save_, std::move(plan_));
      save(file, place == target ? file.path() : target);
    }
    return finish();
  }
  /// Into an empty file that is open.
  DeltaResult run(int fd, const fs::path& target) {
    if (may_pack()) {
      pack(target, target, [&](ByteSpan bytes) {
        io::pwrite_all(fd, 0, bytes, target);
        return bytes.size();
      });
    } else {
      container::FileSave file(fd, target, save_, std::move(plan_));
      save(file, target);
    }
    return finish();
  }

 private:
  DeltaResult finish() {
    result_.payload_bytes = logical_bytes_;
    result_.identity.depth = result_.depth;
    if (options_.save.io == IoMode::direct)
      result_.io_fallback = "what a delta writes is little beside what it reads";
    result_.seconds = watch_.seconds();
    return std::move(result_);
  }

  // A delta takes no more than the state, and what it takes is in memory until it is packed.
  bool may_pack() const {
    return options_.pack && !options_.save.sha256 &&
           options_.save.checksum == ChecksumType::block_tree &&
           logical_bytes_ <= options_.save.work.memory_bytes.value_or(kMostUnpacked);
  }

  void save_packed(const fs::path& place, const fs::path& target) {
    OutputFile out(place, options_.save.output, options_.save.work.cancel);
    pack(out.path(), place == target ? out.path() : target, [&](ByteSpan bytes) {
      out.write(bytes);
      return out.size();
    });
    result_.sync_seconds = out.commit();
  }

  // The file is made in memory, and written once: packed, or as it is where that does not pay.
  // @param name for messages. @param write returns the length of the file.
  template <typename Write>
  void pack(const fs::path& name, const fs::path& target, Write write) {
    const io::UniqueFd memory = io::create_memory_file();
    container::FileSave file(memory.get(), name, save_, std::move(plan_));
    packing_ = true;
    save(file, target);
    const io::MemoryMapping plain(memory.get(), result_.file_bytes);
    const auto packed =
        container::pack(file.plan(), file.store().layout().file_order(), plain.bytes());
    result_.packed = packed.has_value();
    result_.file_bytes = write(packed ? ByteSpan(*packed) : ByteSpan(plain.bytes()));
  }

  void save(container::FileSave& file, const fs::path& named) {
    container::FilePlan& plan = file.plan();
    plan.delta = {.prefix = build_prefix(named, plan.training_steps),
                  .base_checksum = identity_.closing_checksum,
                  .base_step = identity_.training_steps};
    io::pwrite_all(file.fd(), 0, plan.delta->prefix, file.path());
    state::DeltaTensorWriter tensors(plan, file.store(), base_, options_, generation_, result_);
    for (const std::uint32_t id : file.store().layout().file_order()) {
      stop_if_cancelled(options_.save.work.cancel);
      store_tensor(tensors, id, plan.tensors[id].logical_length);
    }
    const std::vector<std::uint32_t> crcs =
        packing_ ? make_brief(plan) : std::vector<std::uint32_t>();
    static_cast<SaveResult&>(result_) = file.commit();
    for (std::size_t i = 0; i < crcs.size(); ++i) {
      if (plan.tensors[i].delta) result_.digests[i].crc32 = crcs[i];
    }
    // The save knows the container, and nothing of what it stands for.
    result_.file_bytes += plan.delta->prefix.size();
    state::note_changed_regions(plan, base_.names(), tensors.changed(), result_);
  }

  // What comes out has a content hash, and the base is known by its checksum: the rest of what a
  // delta can say of a tensor would be most of a small one. @return the CRC-32 of each.
  static std::vector<std::uint32_t> make_brief(container::FilePlan& plan) {
    std::vector<std::uint32_t> crcs;
    for (container::TensorPlan& tensor : plan.tensors) {
      crcs.push_back(tensor.delta ? std::uint32_t{tensor.delta->crc32} : 0);
      if (tensor.delta) format::make_brief(*tensor.delta);
    }
    return crcs;
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
  bool packing_ = false;
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
