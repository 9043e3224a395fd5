#include "cli/report/layer_map.h"

#include <algorithm>
#include <map>
#include <set>

namespace thalia::cli {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view beginning_of(std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", begin), name.size());
    if (is_number(name.substr(begin, end - begin))) return name.substr(0, end);
    begin = end + 1;
  }
  return name.substr(0, name.find_last_of("./"));
}

}  // namespace

void LayerMap::add(std::string_view region, std::string_view name, std::uint64_t bytes) {
  tensors_.push_back({std::string(region), std::string(beginning_of(name)), bytes});
}

std::vector<Layer> LayerMap::layers() const {
  std::set<std::string_view> regions;
  for (const Named& tensor : tensors_) {
    if (!tensor.region.empty()) regions.insert(tensor.region);
  }
  std::vector<Layer> layers;
  std::map<std::string, std::size_t> places;
  for (const Named& tensor : tensors_) {
    const bool by_region = regions.size() > 1 && !tensor.region.empty();
    const std::string& name = by_region ? tensor.region : tensor.beginning;
    const auto [place, is_new] = places.emplace(name, layers.size());
    if (is_new) layers.push_back({.name = name});
    ++layers[place->second].tensors;
    layers[place->second].bytes += tensor.bytes;
  }
  return layers;
}

}  // namespace thalia::cli
