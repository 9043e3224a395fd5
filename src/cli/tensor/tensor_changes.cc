// Tensors of the earlier file are found by name and opened one at a time, while the later file is
// visited in its order. Two whose content hashes and layouts are equal are not read.
#include "cli/tensor/tensor_changes.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <utility>

#include "inspect/diff_files.h"
#include "inspect/file_tensors.h"

namespace thalia::cli {
namespace {

// As TensorChange has it, of what diff tells.
double relative_change(const ValueDiff& values) {
  if (values.relative_difference) return *values.relative_difference;
  return values.max_difference > 0 ? std::numeric_limits<double>::infinity() : 0;
}

struct Earlier {
  inspect::ShownTensor tensor;
  bool is_met = false;
};

// What only says what changed since some base has hashes of its own.
bool is_complete(const AnyTensor& tensor) {
  const Encoding encoding = tensor.layout.encoding;
  return encoding == Encoding::dense || is_sparse(encoding);
}

bool is_known_to_be_same(const AnyTensor& before, const AnyTensor& after) {
  return before.content_hash && after.content_hash && before.content_hash == after.content_hash &&
         is_complete(before) && before.layout == after.layout;
}

void compare(TensorChange& change, const Earlier& before, const inspect::ShownTensor& after,
             const DiffOptions& options) {
  const AnyTensor& earlier = before.tensor.list();
  const AnyTensor& later = after.list();
  const Shape& shape = earlier.layout.shape;
  if (shape != later.layout.shape) {
    change.not_compared =
        fmt::format("{} before, {} now", shape.to_string(), later.layout.shape.to_string());
  } else {
    change.relative = is_known_to_be_same(earlier, later)
                          ? 0
                          : relative_change(diff_values(
                                inspect::compared(before.tensor.open(), earlier.logical_bytes),
                                inspect::compared(after.open(), later.logical_bytes), options));
  }
}

}  // namespace

std::vector<TensorChange> tensor_changes(const std::filesystem::path& before,
                                         const std::filesystem::path& after,
                                         const ChainOptions& open, const DiffOptions& options) {
  const bool is_whole = options.tensors.empty();
  std::vector<Earlier> earlier;
  inspect::Selection everything("PATTERN", {});
  inspect::visit_tensors(
      inspect::open_stored(before, open), everything,
      [&](const inspect::ShownTensor& tensor) { earlier.push_back({.tensor = tensor}); });
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::size_t> places;
  std::map<std::string, std::size_t> places_by_name;
  bool has_regions = false;
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    const AnyTensor& tensor = earlier[i].tensor.list();
    has_regions |= !tensor.region.empty();
    places.emplace(Key(tensor.region, tensor.name), i);
    places_by_name.emplace(tensor.name, i);
  }
  const auto find = [&](const AnyTensor& tensor) -> Earlier* {
    const auto found = places.find({tensor.region, tensor.name});
    if (found != places.end()) return &earlier[found->second];
    if (has_regions != tensor.region.empty()) return nullptr;
    const auto named = places_by_name.find(tensor.name);
    return named == places_by_name.end() ? nullptr : &earlier[named->second];
  };
  std::vector<TensorChange> changes;
  inspect::Selection selection("PATTERN", options.tensors);
  const AnyFile later = inspect::open_stored(after, open);
  inspect::visit_tensors(later, selection, [&](const inspect::ShownTensor& tensor) {
    const AnyTensor& listed = tensor.list();
    TensorChange change{.region = listed.region,
                        .name = listed.name,
                        .change = Change::added,
                        .layout = listed.layout};
    if (Earlier* const known = find(listed)) {
      known->is_met = true;
      change.change = Change::changed;
      compare(change, *known, tensor, options);
    }
    changes.push_back(std::move(change));
  });
  if (!is_whole) return changes;
  for (const Earlier& tensor : earlier) {
    if (tensor.is_met) continue;
    const AnyTensor& listed = tensor.tensor.list();
    changes.push_back({.region = listed.region,
                       .name = listed.name,
                       .change = Change::removed,
                       .layout = listed.layout});
  }
  return changes;
}

}  // namespace thalia::cli
