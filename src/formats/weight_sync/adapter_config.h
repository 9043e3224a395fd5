// The adapter_config.json of a LoRA adapter. docs/format/peft.md, "The configuration".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thalia::formats::weight_sync {

struct AdapterModule {
  std::string name;
  std::uint32_t rank = 0;
};

/// @param modules at least one. @param base a folder that holds the model; nullopt: not said.
/// @param is_transposed whether matrices of the model are inputs × outputs.
std::string write_adapter_config(const std::vector<AdapterModule>& modules,
                                 const std::optional<std::string>& base, bool is_transposed);

}  // namespace thalia::formats::weight_sync
