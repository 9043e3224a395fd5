// Storing one tensor of a delta in the smallest way. docs/format/deltas.md, "Tensors of a delta".
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "codec/step/step_kind.h"
#include "container/plan/file_plan.h"
#include "container/write/payload_store.h"
#include "integrity/content_hash.h"
#include "state/delta/base_state.h"
#include "state/delta/change.h"
#include "state/delta/change_list.h"
#include "state/delta/state_plan.h"
#include "state/quantize/payload.h"
#include "thalia/state/delta.h"

namespace thalia::state {

/// Takes the tensors of a plan in the order of the file. What is not in memory passes in pieces
/// and is never made whole, but for matrices that are tried at low rank. Borrows everything;
/// externally synchronised.
class DeltaTensorWriter {
 public:
  DeltaTensorWriter(container::FilePlan& plan, container::PayloadStore& store,
                    const BaseState& base, const DeltaOptions& options, LossyGeneration generation,
                    DeltaResult& result)
      : plan_(plan),
        store_(store),
        base_(base),
        options_(options),
        generation_(generation),
        result_(result) {}

  /// Finds out what is to be stored of tensor `id` of the plan, and stores it.
  /// @throws what source and base throw; UsageError, IoError, CancelledError.
  void store(std::uint32_t id, const KeyedTensor& source);

  /// Tensors of the plan that are not the base's.
  const std::unordered_set<std::uint32_t>& changed() const noexcept { return changed_; }

 private:
  void store_against_base(std::uint32_t id, const KeyedTensor& source);
  void store_same(std::uint32_t id, const BaseTensor& base);
  void store_whole(std::uint32_t id, const PartwiseBytes& now);
  void store_change(std::uint32_t id, const KeyedTensor& source, const PartwiseBytes& now,
                    bool may_be_same, BaseTensor& base);
  bool may_keep_base(const KeyedTensor& source) const;
  bool store_low_rank(std::uint32_t id, const KeyedTensor& source, const PartwiseBytes& now,
                      BaseTensor& base, double most_bytes);
  void store_list(std::uint32_t id, const ChangeList& list, const BaseTensor& base);
  void store_difference(std::uint32_t id, const DeltaChange& change, BaseTensor& base);
  bool store_steps(std::uint32_t id, const KeyedTensor& source, const PartwiseBytes& now,
                   const DeltaChange& change, const codec::StepKind& kind, BaseTensor& base);
  std::uint64_t kept_bytes() const;
  void write(std::uint32_t id, ByteSpan bytes);

  container::FilePlan& plan_;
  container::PayloadStore& store_;
  const BaseState& base_;
  const DeltaOptions& options_;
  /// What a thread makes of a piece. They keep their memory for the next tensor.
  struct Difference {
    DeltaChange::Pair pair;
    std::vector<std::byte> bytes;
    integrity::PieceDigest digest;  ///< of `bytes`
  };

  const LossyGeneration generation_;  ///< of matrices of low rank
  DeltaResult& result_;
  std::unordered_set<std::uint32_t> changed_;
  std::vector<Difference> differences_;
};

}  // namespace thalia::state
