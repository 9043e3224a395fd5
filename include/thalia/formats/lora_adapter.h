// What changed between two models, as a LoRA adapter that peft loads beside the first of them.
// docs/format/peft.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thalia/formats/weight_delta.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"

namespace thalia {

struct LoraAdapterOptions {
  std::uint32_t max_rank = 64;  ///< of a matrix; 1 or more
  /// Below 1, a matrix gets the lowest rank that loses no more of its change than this, as
  /// LowRankReport::relative_error has it, and it is an error if max_rank does not suffice.
  double max_relative_error = 1;
  /// Tensors that changed and that an adapter cannot hold remain as in the base.
  bool leave_out = false;
  ChainOptions chain{};  ///< how both models are read
  OutputOptions output{};
  Work work{};
};

struct LeftOutTensor {
  std::string name;
  std::string reason;
};

/// The tensors that changed have those that are left out among them.
struct LoraAdapterResult : ModelChangeResult {
  std::uint32_t rank = 0;  ///< the highest of all matrices
  /// In the order of the model, without regions. The errors are those of the change in f32, as the
  /// adapter adds it.
  std::vector<LowRankReport> matrices{};
  std::vector<LeftOutTensor> left_out{};
};

/// Writes the folder of an adapter: adapter_model.safetensors and, last, adapter_config.json. Both
/// models are files of any format, with the names that the parameters have in the model that the
/// adapter is for. For each thread, a matrix and its change are in memory in f32; all
/// factors are until they are written.
/// @throws as open_any() and save_safetensors(); UsageError (bad_argument) for an option out of
/// bounds; where a matrix loses more than it may; where nothing changed that an adapter can hold;
/// UnsupportedError where something changed that it cannot hold, with the names, unless left out.
LoraAdapterResult write_lora_adapter(const std::filesystem::path& base,
                                     const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const LoraAdapterOptions& options = {});

}  // namespace thalia
