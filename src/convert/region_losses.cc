#include "convert/region_losses.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "formats/source/list_names.h"
#include "json/reader.h"
#include "thalia/types.h"

namespace thalia::formats {
namespace {

// An empty config holds nothing to lose.
bool is_empty_object(std::string_view text, unsigned max_depth) {
  bool empty = true;
  json::walk_object(text, max_depth, [&](std::string_view, json::Value&) { empty = false; });
  return empty;
}

}  // namespace

void list_region_losses(const Reader& reader, const RegionGrouping& grouping,
                        const ReadLimits& limits, std::vector<std::string>& losses,
                        std::vector<std::string>& of_places) {
  std::vector<std::string> configs, metadata, populations, empty, regrouped, homeostatic;
  std::array<std::vector<std::string>, kRoleCount> roles;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    const std::string name(region.name());
    if (!is_empty_object(region.config_json(), limits.max_json_depth)) {
      configs.push_back(name);
    }
    if (!region.metadata_json().empty()) metadata.push_back(name);
    if (region.n_neurons() != 0 || region.n_inputs() != 0 ||
        region.neuron_type() != NeuronType::none) {
      populations.push_back(name);
    }
    if (region.homeostatic_updated().value_or(0) != 0) homeostatic.push_back(name);
    if (region.tensor_count() == 0) empty.push_back(name);
    bool told = true;
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      // The way back groups tensors by their names: a region is no loss where that finds it again.
      told = told && region_for_name(tensor.name(), grouping) == name;
      const unsigned rank = tensor.shape().rank();
      if (likely_role(tensor.role(), tensor.name(), rank) != role_of_name(tensor.name(), rank)) {
        roles[static_cast<std::size_t>(tensor.role())].push_back(name + "/" +
                                                                 std::string(tensor.name()));
      }
    }
    if (!told) regrouped.push_back(name);
  }
  const auto list = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) losses.push_back(fmt::format("{}: {}", what, list_names(names)));
  };
  list("config of regions", configs);
  list("metadata of regions", metadata);
  list("neurons, inputs and neuron type of regions", populations);
  list("time of the last homeostatic update of regions", homeostatic);
  list("regions without tensors", empty);
  const std::size_t before = losses.size();
  list("regions that their tensors' names do not tell", regrouped);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    list(fmt::format("role {} of tensors, which their names do not tell",
                     role_name(static_cast<Role>(i))),
         roles[i]);
  }
  of_places.insert(of_places.end(), losses.begin() + static_cast<std::ptrdiff_t>(before),
                   losses.end());
}

}  // namespace thalia::formats
