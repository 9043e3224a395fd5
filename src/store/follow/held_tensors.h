// The tensors of a state in memory: those that a follower holds, and those that it will hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "state/delta/held_base.h"
#include "thalia/state/tensor_value.h"
#include "thalia/store/follow.h"

namespace thalia::store {

class SpareMemory;

/// Bytes that take the place of others.
struct Patch {
  std::uint64_t begin;   ///< in the tensor
  std::uint64_t length;  ///< of its bytes, which follow those of the patch before
};

/// What a piece of a tensor in the server's memory becomes.
struct PatchedPiece {
  std::vector<Patch> patches;
  std::vector<std::byte> bytes;
};

struct FollowedValue {
  FollowedTensor facts;
  std::optional<std::uint32_t> crc32{};  ///< if it is known
  Tensor value{};                        ///< of its own memory, or a view of the server's
  MutableByteSpan memory{};              ///< the server's; empty: the follower holds it
  bool is_changed = false;               ///< against the state before
  std::vector<PatchedPiece> pieces{};    ///< of the server's memory, until they are applied
};

/// In the order of regions, then names.
using FollowedValues = std::vector<FollowedValue>;

/// Null: there is none.
const FollowedValue* find_value(const FollowedValues& values, std::string_view region,
                                std::string_view name) noexcept;

/// Values of a checkpoint as the base of deltas over it. What it makes stays as it is until the
/// server's memory is changed.
class HeldTensors final : public state::HeldBase {
 public:
  HeldTensors(FileIdentity identity, std::shared_ptr<const FollowedValues> values)
      : identity_(identity), values_(std::move(values)) {}
  FileIdentity identity() const override { return identity_; }
  std::optional<state::HeldBytes> find(const state::TensorKey& key) const override;

 private:
  FileIdentity identity_;
  std::shared_ptr<const FollowedValues> values_;
};

/// Which tensors, and whose memory.
class TensorChoice {
 public:
  explicit TensorChoice(const FollowOptions& options) : options_(options) {}

  /// @throws UsageError (bad_argument), as Follower::add_memory().
  void add_memory(std::string_view region, std::string_view name, const ServerMemory& memory);
  void add_memory(std::span<const std::string> names, const ServerMemory& memory);
  /// Copies its answer of what `before` has, and else asks. @throws UsageError (size_mismatch,
  /// dtype_mismatch, shape_mismatch); what the callback throws.
  MutableByteSpan memory_of(const FollowedTensor& tensor, const FollowedValue* before) const;
  bool takes(std::string_view region, std::string_view name, Role role) const;
  /// @throws UsageError (not_found) for memory of a tensor that the state does not have,
  /// (duplicate) where two have one name in different regions.
  void check(const FollowedValues& values) const;

 private:
  struct Names {
    std::optional<std::string> region;  ///< nullopt: any
    std::vector<std::string> names;
  };
  using Place = std::pair<std::optional<std::string>, std::string>;
  void add(Names names, const ServerMemory& memory);
  // Where a tensor's memory lies in memory_; its own region's comes first.
  std::optional<std::size_t> find(std::string_view region, std::string_view name) const;

  const FollowOptions& options_;
  std::vector<std::pair<Names, ServerMemory>> memory_;
  std::map<Place, std::size_t> places_;
};

/// The state of a chain; nothing that is in use is changed. @param trusted unchanged tensors are
/// those of `before`; else all are made anew. @throws what reading the chain throws; `choice`.
std::shared_ptr<FollowedValues> prepare_values(const state::FileChain& chain,
                                               const FollowedValues& before, bool trusted,
                                               const TensorChoice& choice, SpareMemory& spare);

bool has_patches(const FollowedValue& value) noexcept;
/// Changes the server's memory. Doing it twice does no harm.
void apply_patches(FollowedValue& value) noexcept;

}  // namespace thalia::store
