// What an append is to make of a file: which regions and connections stay, and what is new.
// docs/format/writing.md, "In-place append".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "container/file/open_file.h"
#include "container/plan/file_plan.h"
#include "thalia/region.h"

namespace thalia::container {

/// Externally synchronised. Every call checks its arguments first; if it throws UsageError, nothing
/// has changed.
class AppendPlan {
 public:
  /// Reads the file's names. @throws FormatError, IntegrityError.
  explicit AppendPlan(std::shared_ptr<const detail::OpenFile> file);

  /// What is new: regions, tensors and connections are declared here.
  FilePlan& added() noexcept { return added_; }
  void set_metadata(std::string json);
  void set_training_steps(std::uint64_t steps) { training_steps_ = steps; }

  /// A new region in the place of the file's of that name, whose connections stay.
  /// @throws UsageError (not_found) if the file has none.
  std::uint32_t replace_region(RegionSpec spec);
  /// With the connections from and to it.
  void remove_region(std::string_view name);
  void remove_connection(std::string_view source, std::string_view target);
  /// Another file's region with the payloads as region_to_copy() gives them, replacing one of that
  /// name.
  std::uint32_t copy_region(RegionSpec spec, std::vector<TensorPlan> tensors);

  /// A tensor of an open file for a region that is new in this append.
  std::uint32_t copy_tensor(std::uint32_t region, TensorPlan tensor) {
    return added_.add_copy(region, std::move(tensor));
  }

  /// The whole file to be: what is kept, in place, and what is new. To be called once, last.
  /// @throws FormatError, IntegrityError, UnsupportedError; UsageError (wrong_state) for a
  /// connection without weights.
  FilePlan compose();

 private:
  enum class Fate : std::uint8_t { kept, replaced, removed };
  struct OldRegion {
    Fate fate = Fate::kept;
    std::uint32_t replacement = 0;  ///< number among the added
  };
  struct OldConnection {
    std::string source;  ///< short names
    std::string target;
    bool kept = true;
  };

  std::uint32_t find_kept(std::string_view name) const;
  void check_unused(std::string_view name) const;
  std::uint64_t kept_neurons() const;
  void keep_region(std::uint32_t region, FilePlan& out) const;
  void move_region(std::uint32_t added, FilePlan& out);
  void compose_connections(FilePlan& out);

  std::shared_ptr<const detail::OpenFile> file_;
  FilePlan added_;
  std::optional<std::string> metadata_;
  std::optional<std::uint64_t> training_steps_;
  std::vector<OldRegion> regions_;
  std::vector<OldConnection> connections_;
  /// Places of those that are kept, by names.
  std::map<std::pair<std::string, std::string>, std::size_t> kept_connections_;
};

}  // namespace thalia::container
