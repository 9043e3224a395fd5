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

void tell(std::string& text, std::string_view what, const std::vector<std::string>& complaints) {
  if (complaints.empty()) return;
  text += fmt::format("{} {} {}:", text.empty() ? ":" : ";", complaints.size(), what);
  const std::size_t reported = std::min(complaints.size(), kMostReported);
  for (std::size_t i = 0; i < reported; ++i)
    text += (i == 0 ? " " : ", ") + printable(complaints[i]);
  if (reported < complaints.size()) text += ", and more";
}

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

ModelFit store::compare_with_model(std::span<const HeldTensor> held,
                                   std::span<const ExpectedTensor> expected) {
  std::map<std::string_view, const ExpectedTensor*> wanted;
  for (const ExpectedTensor& tensor : expected) wanted.emplace(tensor.name, &tensor);
  std::set<std::string_view> found;
  ModelFit fit;
  for (const HeldTensor& tensor : held) {
    const std::string full = fmt::format("{}/{}", tensor.region, tensor.name);
    auto match = wanted.find(full);
    if (match == wanted.end()) match = wanted.find(tensor.name);
    if (match == wanted.end()) {
      fit.unexpected.push_back(full);
      continue;
    }
    found.insert(match->first);
    const ExpectedTensor& model = *match->second;
    if (tensor.dtype != model.dtype || tensor.shape != model.shape)
      fit.different.push_back(fmt::format("{} ({} in the checkpoint and {} in the model)", full,
                                          facts_of(tensor.dtype, tensor.shape),
                                          facts_of(model.dtype, model.shape)));
  }
  for (const auto& [name, tensor] : wanted)
    if (!found.contains(name)) fit.missing.emplace_back(name);
  return fit;
}

void store::require_fit(const ModelFit& fit, const std::filesystem::path& path) {
  if (fit.ok()) return;
  std::string text;
  tell(text, "missing in the checkpoint", fit.missing);
  tell(text, "unexpected in the checkpoint", fit.unexpected);
  tell(text, "of another shape or dtype", fit.different);
  throw UsageError(ErrorCode::shape_mismatch, "the checkpoint does not fit the model" + text,
                   {.path = path.string()});
}

ModelFit compare_with_model(const ChainReader& chain, std::span<const ExpectedTensor> expected,
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
  return store::compare_with_model(held, expected);
}

void check_strictly(const ChainReader& chain, std::span<const ExpectedTensor> expected,
                    const std::vector<std::string>& patterns) {
  store::require_fit(compare_with_model(chain, expected, patterns), chain.reader().path());
}

}  // namespace thalia
