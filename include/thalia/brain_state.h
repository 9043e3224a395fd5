// BrainState: everything that a checkpoint of a brain holds, in memory.
//
//   thalia::BrainState brain;
//   thalia::BrainRegion& cortex = brain.regions.add("cortex");
//   // Fill the region; see thalia/brain_region.h.
//   brain.connectivity.add({"cortex", "striatum", weights, delays});
//   brain.state["scheduler"]["current_time"] = 12.0;
//   brain.training_steps = 1000;
//   thalia::BrainCheckpoint::save(brain, "brain.thalia");
//
// docs/format/states.md, "States".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "thalia/brain_region.h"
#include "thalia/detail/lazy.h"
#include "thalia/tensor_value.h"
#include "thalia/value.h"

namespace thalia {

/// Regions by name, in the order in which they were added; regions of a file may be read when they
/// are first asked for. Const access, that first reading included, is safe from any number of
/// threads; changes are externally synchronised. References stay valid until their region is
/// removed, or the set assigned to or destroyed.
class RegionSet {
 public:
  using Loader = std::function<BrainRegion()>;

  RegionSet();
  ~RegionSet();
  RegionSet(const RegionSet& other);  ///< a region that was not read yet is read by each on its own
  RegionSet& operator=(const RegionSet& other);
  RegionSet(RegionSet&&) noexcept;
  RegionSet& operator=(RegionSet&&) noexcept;

  /// @throws UsageError (duplicate) naming the region.
  BrainRegion& add(std::string name, BrainRegion region = {});
  /// A region that `load` gives on first access, once; where it throws, the access throws the same,
  /// and the next one tries again.
  void add_lazy(std::string name, Loader load);
  /// True where there was one. Does not read it.
  bool remove(std::string_view name);

  std::size_t size() const noexcept { return slots_.size(); }
  bool empty() const noexcept { return slots_.empty(); }
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const noexcept;
  /// False of a region that would be read on access. @throws UsageError (not_found).
  bool is_loaded(std::string_view name) const;

  /// @throws UsageError (not_found) naming the region; what reading it throws.
  const BrainRegion& at(std::string_view name) const;
  BrainRegion& at(std::string_view name);
  const BrainRegion* find(std::string_view name) const;
  BrainRegion* find(std::string_view name);

  /// Same names in the same order with equal regions; reads what was not read.
  friend bool operator==(const RegionSet& a, const RegionSet& b);

 private:
  struct Slot;
  Slot* find_slot(std::string_view name) const noexcept;
  Slot& slot(std::string_view name) const;
  Slot& insert(Slot slot);

  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_map<std::string_view, Slot*> by_name_;  ///< names lie in the slots
};

/// A projection from one region to another.
struct BrainConnection {
  std::string source;
  std::string target;
  Tensor weights;                  ///< as a rule [neurons of source, neurons of target]
  std::optional<Tensor> delays{};  ///< as a rule of the weights' shape

  friend bool operator==(const BrainConnection&, const BrainConnection&) = default;
};

/// Connections in the order in which they were added; those of a file may be read when one is first
/// asked for. Const access, that first reading included, is safe from any number of threads;
/// changes are externally synchronised.
class Connectivity {
 public:
  using Loader = std::function<std::vector<BrainConnection>()>;

  Connectivity() = default;
  /// Connections that `load` gives on first access, once; where it throws, the access throws the
  /// same, and the next one tries again. Each pair of source and target occurs once.
  explicit Connectivity(Loader load);

  /// @throws UsageError (duplicate) if there is one from that source to that target.
  BrainConnection& add(BrainConnection connection);
  bool remove(std::string_view source, std::string_view target);

  bool is_loaded() const noexcept { return table_.is_made(); }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  /// Valid until a connection is added or removed; so are references. Sources and targets are
  /// changed here and nowhere else: by them connections are looked up.
  const std::vector<BrainConnection>& all() const { return table_.get().connections; }
  std::vector<BrainConnection>& all();
  const BrainConnection* find(std::string_view source, std::string_view target) const;
  BrainConnection* find(std::string_view source, std::string_view target);
  /// @throws UsageError (not_found) naming both.
  const BrainConnection& at(std::string_view source, std::string_view target) const;
  BrainConnection& at(std::string_view source, std::string_view target);

  friend bool operator==(const Connectivity& a, const Connectivity& b) {
    return a.all() == b.all();
  }

 private:
  struct Table {
    std::vector<BrainConnection> connections;
    /// By hashes of both names; of no use once all() was handed out to be changed.
    std::unordered_multimap<std::size_t, std::size_t> places{};
    bool is_indexed = true;
    void index();
    void insert(std::size_t place);
    const BrainConnection* find(std::string_view source, std::string_view target) const;
  };
  Lazy<Table> table_;
};

/// A value type, as the tensors in it: copying one costs its trees, not its tensors. Externally
/// synchronised, with the exception of what RegionSet and Connectivity read.
struct BrainState {
  RegionSet regions;
  RegionSet pathways;  ///< of names of their own: stored as regions "pathway:NAME"
  Connectivity connectivity;
  /// Brain-wide state by component, an object: config, oscillators, neuromodulators, scheduler,
  /// trial_state, replay, sleep_state, and any others; trees of values and tensors.
  Value state = Value::object();
  /// An object without tensors: what else is to be said of that state. Its member
  /// `connections` is the format's own.
  Value state_metadata = Value::object();
  /// The checkpoint's metadata, an object without tensors. See thalia/checkpoint_metadata.h.
  Value metadata = Value::object();
  std::uint64_t training_steps = 0;

  friend bool operator==(const BrainState&, const BrainState&) = default;
};

}  // namespace thalia
