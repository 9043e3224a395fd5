#include "inspect/sensitivity.h"

#include <map>
#include <string>
#include <utility>

#include "inspect/file_tensors.h"

namespace thalia::inspect {

std::function<std::optional<Tensor>(const QuantizationTarget&)> sensitivities_of(
    const std::filesystem::path& path, const ReadOptions& read) {
  const AnyFile file = open_stored(path, {.read = read});
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  std::map<std::string, std::size_t> places_by_name;  // the first of each
  for (std::size_t i = 0; i < file.tensor_count(); ++i) {
    AnyTensor tensor = file.stored(i);
    places_by_name.emplace(tensor.name, i);
    places.emplace(std::pair(std::move(tensor.region), std::move(tensor.name)), i);
  }
  return [file, places = std::move(places), places_by_name = std::move(places_by_name)](
             const QuantizationTarget& target) -> std::optional<Tensor> {
    const auto own = places.find({std::string(target.region), std::string(target.name)});
    if (own != places.end()) return file.read(own->second);
    const auto named = places_by_name.find(std::string(target.name));
    return named == places_by_name.end() ? std::nullopt : std::optional(file.read(named->second));
  };
}

}  // namespace thalia::inspect
