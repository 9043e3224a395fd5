// The regions of a file, whichever format with regions it has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/print/tensor_table.h"
#include "thalia/convert.h"
#include "thalia/neuron_type.h"
#include "thalia/options.h"

namespace thalia::cli {

/// nullopt: the format does not say.
struct ListedRegion {
  std::string name;
  std::uint64_t tensor_count = 0;
  std::optional<std::uint32_t> n_neurons{};
  std::optional<std::uint32_t> n_inputs{};
  std::optional<NeuronType> neuron_type{};
  std::uint64_t logical_bytes = 0;
  std::optional<std::uint64_t> stored_bytes{};
  std::optional<std::uint64_t> offset{};
  std::optional<std::uint64_t> length{};
  std::string config{};    ///< a JSON object; empty: none
  std::string metadata{};  ///< the same

  /// What its tensors take of the file, or in memory where the format does not say.
  std::uint64_t size() const noexcept { return stored_bytes.value_or(logical_bytes); }
};

struct ListedConnection {
  std::string source;
  std::string target;
  inspect::ListedTensor weights;
  std::optional<inspect::ListedTensor> delays{};
};

struct FileRegions {
  FileFormat format = FileFormat::thalia;
  std::vector<ListedRegion> regions{};  ///< in the order of the file
  std::vector<ListedConnection> connections{};
};

/// Of a .thalia file or one of version 0.1. @throws what opening the file throws.
FileRegions regions_of(const std::filesystem::path& path, const ReadOptions& read);

}  // namespace thalia::cli
