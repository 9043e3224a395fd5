#include "inspect/file_tensors.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.h"
#include "inspect/shown_name.h"

namespace thalia::inspect {
namespace {

constexpr std::uint32_t kMostRegions = 1'000;  // that are kept for suggestions

}  // namespace

Selection::Selection(const char* option, std::vector<std::string> patterns)
    : everything_(patterns.empty()), use_(option, patterns) {
  for (std::string& pattern : patterns) {
    std::string unescaped = unescape_name(pattern);
    if (unescaped == pattern) unescaped.clear();
    globs_.push_back({std::move(pattern), std::move(unescaped)});
  }
}

void Selection::know_regions(const AnyFile& file) {
  if (everything_) return;
  std::erase_if(globs_, [&](const Glob& glob) {
    // The name as it was typed comes first, as it may look like an escape.
    const bool as_typed = file.has_region(glob.typed);
    if (!as_typed && (glob.unescaped.empty() || !file.has_region(glob.unescaped))) return false;
    regions_.push_back(as_typed ? glob.typed : glob.unescaped);
    use_.mark_used(glob.typed);
    return true;
  });
  const std::size_t some = std::min<std::size_t>(file.region_count(), kMostRegions);
  for (std::size_t i = 0; i < some; ++i) some_regions_.emplace_back(file.region_name(i));
}

bool Selection::takes(const state::TensorNames& tensor) {
  if (everything_) return true;
  use_.see(tensor);
  bool fits =
      !tensor.region.empty() && std::ranges::find(regions_, tensor.region) != regions_.end();
  for (const Glob& glob : globs_) {
    if (tensor.fit(glob.typed)) {
      fits = true;
    } else if (!glob.unescaped.empty() && tensor.fit(glob.unescaped)) {
      use_.mark_used(glob.typed);
      fits = true;
    }
  }
  return fits;
}

AnyFile open_stored(const std::filesystem::path& path, const ChainOptions& chain,
                    bool shared_memory) {
  return open_any(path, {.chain = chain, .shared_memory = shared_memory, .as_stored = true});
}

void visit_tensors(const AnyFile& file, Selection& selection, const VisitTensor& visit) {
  selection.know_regions(file);
  const std::size_t count = file.tensor_count();
  for (std::size_t i = 0; i < count; ++i) {
    const ShownTensor tensor(file, i);
    if (selection.takes(tensor.names())) visit(tensor);
  }
  with_path(file.path(), [&] { selection.check(); });
}

// The name as it was typed comes first, as it may look like an escape, or a path.
ShownTensor find_tensor(const AnyFile& file, std::string_view name) {
  if (const auto found = file.find(name)) return {file, *found};
  return {file, file.at(unescape_name(name))};
}

}  // namespace thalia::inspect
