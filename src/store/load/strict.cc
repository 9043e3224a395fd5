#include "store/load/strict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "state/precision/glob.h"
#include "state/value/path_names.h"
#include "thalia/state/brain.h"
#include "thalia/text.h"

namespace thalia {
namespace {

// All that is wrong is reported, up to so many lines of each kind.
constexpr std::size_t kMostReported = 100;

struct Complaints {
  std::size_t count = 0;
  std::string text{};

  void add(const std::string& line) {
    if (++count <= kMostReported) text += (count == 1 ? " " : ", ") + line;
    if (count == kMostReported + 1) text += ", and more";
  }
};

bool is_held(const std::vector<std::string>& patterns, std::string_view region,
             const TensorView& tensor) {
  if (patterns.empty()) return true;
  const std::string path =
      state::path_in_region(region, component_of_role(tensor.role()), tensor.name());
  const state::TensorNames names{.path = path, .region = region, .name = tensor.name()};
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return names.fit(pattern); });
}

std::string facts_of(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", dtype_name(dtype), shape.to_string());
}

}  // namespace

void store::check_strictly(std::span<const HeldTensor> held,
                           std::span<const ExpectedTensor> expected,
                           const std::filesystem::path& path) {
  std::map<std::string_view, const ExpectedTensor*> wanted;
  for (const ExpectedTensor& tensor : expected) wanted.emplace(tensor.name, &tensor);
  std::set<std::string_view> found;
  Complaints missing, unexpected, different;
  for (const HeldTensor& tensor : held) {
    const std::string full = fmt::format("{}/{}", tensor.region, tensor.name);
    auto match = wanted.find(full);
    if (match == wanted.end()) match = wanted.find(tensor.name);
    if (match == wanted.end()) {
      unexpected.add(printable(full));
      continue;
    }
    found.insert(match->first);
    const ExpectedTensor& model = *match->second;
    if (tensor.dtype != model.dtype || tensor.shape != model.shape)
      different.add(fmt::format("{} ({} in the checkpoint and {} in the model)", printable(full),
                                facts_of(tensor.dtype, tensor.shape),
                                facts_of(model.dtype, model.shape)));
  }
  for (const auto& [name, tensor] : wanted)
    if (!found.contains(name)) missing.add(printable(name));
  if (missing.count + unexpected.count + different.count == 0) return;
  std::string text = "the checkpoint does not fit the model";
  const char* before = ": ";
  const auto tell = [&](const char* what, const Complaints& complaints) {
    if (complaints.count == 0) return;
    text += fmt::format("{}{} {}:{}", before, complaints.count, what, complaints.text);
    before = "; ";
  };
  tell("missing in the checkpoint", missing);
  tell("unexpected in the checkpoint", unexpected);
  tell("of another shape or dtype", different);
  throw UsageError(ErrorCode::shape_mismatch, text, {.path = path.string()});
}

void check_strictly(const ChainReader& chain, std::span<const ExpectedTensor> expected,
                    const std::vector<std::string>& patterns) {
  std::vector<store::HeldTensor> held;
  const Reader& reader = chain.reader();
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView tensor = region.tensor(i);
      if (!is_held(patterns, region.name(), tensor)) continue;
      const TensorLayout layout = chain.describe(tensor).layout;
      held.push_back({.region = std::string(region.name()),
                      .name = std::string(tensor.name()),
                      .dtype = layout.dtype,
                      .shape = layout.shape});
    }
  }
  store::check_strictly(held, expected, reader.path());
}

}  // namespace thalia
