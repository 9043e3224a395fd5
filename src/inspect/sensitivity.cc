#include "inspect/sensitivity.h"

#include <cstdint>

#include "thalia/formats/any_file.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/model_index.h"
#include "thalia/reader.h"

namespace thalia::inspect {
namespace {

using Sensitivities = std::function<std::optional<Tensor>(const QuantizationTarget&)>;

Sensitivities from_flat(const std::filesystem::path& path, const ReadOptions& read) {
  return [file = open_any(path, {.chain = {.read = read}})](
             const QuantizationTarget& target) -> std::optional<Tensor> {
    const auto i = file.find(target.name);
    return i ? std::optional(file.read(*i)) : std::nullopt;
  };
}

Sensitivities from_thalia(const std::filesystem::path& path, const ReadOptions& read) {
  return [reader = Reader::open(path, read),
          limits = read.input.limits](const QuantizationTarget& target) -> std::optional<Tensor> {
    if (const auto region = reader.find_region(target.region)) {
      if (const auto tensor = region->find(target.name)) return Tensor::from(*tensor, limits);
    }
    for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
      if (const auto tensor = reader.region(i).find(target.name))
        return Tensor::from(*tensor, limits);
    }
    return std::nullopt;
  };
}

}  // namespace

Sensitivities sensitivities_of(const std::filesystem::path& named, const ReadOptions& read) {
  const std::filesystem::path path = find_model(named);
  return input_format(path, read.input.access) == FileFormat::thalia ? from_thalia(path, read)
                                                                     : from_flat(path, read);
}

}  // namespace thalia::inspect
