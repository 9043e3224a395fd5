// BrainCheckpoint::save_delta: the state goes through the same conversion as in save(), so that a
// tensor that did not change has the same bytes as in the base, and costs nothing. That is also why
// the precision of the base is taken over where the caller names none: in another precision every
// tensor would differ.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "checkpoint/background.h"
#include "checkpoint/packing.h"
#include "io/output/temporary_file.h"
#include "state/delta/save_state.h"
#include "thalia/files.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"

namespace thalia {
namespace {

using std::filesystem::path;

TensorSource source_of(const state::StoredTensor& stored) {
  return {.spec = stored.spec, .load = [tensor = stored.tensor] { return tensor; }};
}

DeltaOptions delta_options(const BrainDeltaOptions& options, bool is_wrapped) {
  DeltaOptions delta{.loss = options.loss, .save = options.brain.save, .pack = options.pack};
  if (!is_wrapped) return delta;
  delta.pack = false;  // a packed delta is not wrapped
  // The codec and level that were asked for are for the frames around the delta. The delta itself
  // compresses with its own default: a difference takes less room, and is stored as one, only once
  // it was compressed.
  delta.save.compression = {.chunk_bytes = options.brain.save.compression.chunk_bytes};
  delta.save.output = {.durability = Durability::none,
                       .reproducible = options.brain.save.output.reproducible};
  return delta;
}

// Before the work begins: replacing a base would make the delta unreadable.
void refuse_base(const path& target, const std::vector<path>& base) {
  for (const path& file : base) {
    if (!is_same_file(file, target)) continue;
    throw UsageError(ErrorCode::bad_argument, "a delta cannot replace a file that it is based on",
                     {.path = target.string(), .field = "path"});
  }
}

void check(const BrainDeltaOptions& options, bool is_wrapped) {
  if (is_wrapped && options.brain.save.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "true",
                  "false for a file that is compressed as a whole");
  }
  if (options.brain.quantization)
    fail_argument(ErrorCode::bad_argument, "quantization", "options", "none for a delta");
}

BrainDeltaOptions with_policy(const BrainDeltaOptions& options, const PrecisionPolicy& base) {
  BrainDeltaOptions out = options;
  if (options.keep_policy && options.brain.precision_policy.keeps_all())
    out.brain.precision_policy = base;
  return out;
}

// The policy that the base was saved with, from its metadata. A text that is no policy of ours is
// somebody else's member of that name.
PrecisionPolicy policy_of(const Reader& base) {
  if (base.metadata_json().empty()) return {};
  const Value metadata = state::read_metadata(base.metadata_json(), {});
  const Value* const text = metadata.find("precision_policy");
  if (text == nullptr || text->kind() != Value::Kind::string) return {};
  try {
    return parse_precision_policy(text->as_string());
  } catch (const UsageError&) {
    return {};
  }
}

/// @param base a ChainReader or a SavedState.
template <typename Base>
BrainDeltaResult saved_delta(const StateSource& state, const Base& base, const path& target,
                             const BrainDeltaOptions& options, std::optional<Codec> wrapper) {
  const DeltaOptions delta = delta_options(options, wrapper.has_value());
  if (!wrapper) return {write_delta(state, base, target, delta), target};
  const io::TemporaryFile plain(target, options.brain.save.output.within);
  BrainDeltaResult result{state::write_delta_at(state, base, plain.path(), target, delta), target};
  result.file_bytes = checkpoint::wrap(plain.path(), target, *wrapper, options.brain.save);
  result.codec = *wrapper;
  return result;
}

// A delta of which all is settled but the state.
struct DeltaPlan {
  BrainDeltaOptions options;  ///< with the policy that applies
  checkpoint::BrainDeltaSave::Save save;
};

template <typename Base>
DeltaPlan delta_plan_over(Base base, const path& target, const BrainDeltaOptions& options,
                          std::optional<Codec> wrapper) {
  return {options, [base = std::move(base), target, options, wrapper](
                       const state::StoredBrain& stored, const Work& work) {
            BrainDeltaOptions now = options;
            now.brain.save.work = work;
            BrainDeltaResult result =
                saved_delta(checkpoint::state_of(stored), base, target, now, wrapper);
            result.contents = checkpoint::contents_of(stored, options.brain.precision_policy);
            return result;
          }};
}

DeltaPlan delta_plan(const path& target, const ChainReader& base,
                     const BrainDeltaOptions& options) {
  const auto wrapper = checkpoint::wrapper_for(target, options.brain.save);
  check(options, wrapper.has_value());
  refuse_base(target, base.paths());
  return delta_plan_over(base, target, with_policy(options, policy_of(base.reader())), wrapper);
}

DeltaPlan delta_plan(const path& target, const path& base_checkpoint,
                     const BrainDeltaOptions& options) {
  check(options, checkpoint::wrapper_for(target, options.brain.save).has_value());
  ChainOptions chain = options.chain;
  chain.read.work = options.brain.save.work;
  return delta_plan(target, ChainReader::open(base_checkpoint, chain), options);
}

DeltaPlan delta_plan(const path& target, const SavedBrain& base, const BrainDeltaOptions& options) {
  const auto wrapper = checkpoint::wrapper_for(target, options.brain.save);
  check(options, wrapper.has_value());
  refuse_base(target, {base.path});
  SavedState saved{
      .path = base.path,
      .identity = base.identity,
      .state = checkpoint::state_of(checkpoint::stored_brain(base.state, base.options)),
      .digests = base.digests};
  return delta_plan_over(std::move(saved), target,
                         with_policy(options, base.options.precision_policy), wrapper);
}

SaveHandle<BrainDeltaResult> save_later(AsyncSaver& saver, const BrainState& brain, DeltaPlan plan,
                                        Snapshot snapshot) {
  const BrainSaveOptions& options = plan.options.brain;
  auto outcome = std::make_shared<checkpoint::BrainOutcome<BrainDeltaResult>>();
  outcome->set_save(container::save_async(
      saver, std::make_unique<checkpoint::BrainDeltaSave>(checkpoint::stored_brain(brain, options),
                                                          options.save.work, snapshot,
                                                          std::move(plan.save), outcome)));
  return SaveHandle<BrainDeltaResult>(std::move(outcome));
}

BrainDeltaResult save_now(const BrainState& brain, const DeltaPlan& plan) {
  return plan.save(checkpoint::stored_brain(brain, plan.options.brain),
                   plan.options.brain.save.work);
}

}  // namespace

StateSource checkpoint::state_of(const state::StoredBrain& brain) {
  StateSource state{.metadata_json = brain.metadata_json, .training_steps = brain.training_steps};
  for (const state::StoredRegion& region : brain.regions) {
    RegionSource& source = state.regions.emplace_back(RegionSource{.spec = region.spec});
    for (const state::StoredTensor& tensor : region.tensors)
      source.tensors.push_back(source_of(tensor));
  }
  for (const state::StoredConnectionTensors& connection : brain.connections) {
    ConnectionSource source{.source = connection.source,
                            .target = connection.target,
                            .weights = source_of(connection.weights)};
    if (connection.delays) source.delays = source_of(*connection.delays);
    state.connections.push_back(std::move(source));
  }
  return state;
}

BrainDeltaResult BrainCheckpoint::save_delta(const BrainState& brain, const path& target,
                                             const path& base_checkpoint,
                                             const BrainDeltaOptions& options) {
  return save_now(brain, delta_plan(target, base_checkpoint, options));
}

BrainDeltaResult BrainCheckpoint::save_delta(const BrainState& brain, const path& target,
                                             const ChainReader& base,
                                             const BrainDeltaOptions& options) {
  return save_now(brain, delta_plan(target, base, options));
}

BrainDeltaResult BrainCheckpoint::save_delta(const BrainState& brain, const path& target,
                                             const SavedBrain& base,
                                             const BrainDeltaOptions& options) {
  return save_now(brain, delta_plan(target, base, options));
}

SaveHandle<BrainDeltaResult> BrainCheckpoint::save_delta_async(
    AsyncSaver& saver, const BrainState& brain, const path& target, const path& base_checkpoint,
    const BrainDeltaOptions& options, Snapshot snapshot) {
  return save_later(saver, brain, delta_plan(target, base_checkpoint, options), snapshot);
}

SaveHandle<BrainDeltaResult> BrainCheckpoint::save_delta_async(
    AsyncSaver& saver, const BrainState& brain, const path& target, const ChainReader& base,
    const BrainDeltaOptions& options, Snapshot snapshot) {
  return save_later(saver, brain, delta_plan(target, base, options), snapshot);
}

SaveHandle<BrainDeltaResult> BrainCheckpoint::save_delta_async(
    AsyncSaver& saver, const BrainState& brain, const path& target, const SavedBrain& base,
    const BrainDeltaOptions& options, Snapshot snapshot) {
  return save_later(saver, brain, delta_plan(target, base, options), snapshot);
}

}  // namespace thalia
