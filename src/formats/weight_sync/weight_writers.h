// Writing what changed between two open models. docs/format/slime.md and docs/format/trl.md,
// "Writing"; docs/format/peft.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/source/opened_file.h"
#include "thalia/formats/lora_adapter.h"
#include "thalia/formats/weight_delta.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats {

/// As write_weight_delta(), of two models that are open, but for base_bytes and seconds.
WeightDeltaResult write_slime_delta(const OpenedFile& base, const OpenedFile& next,
                                    const std::filesystem::path& folder,
                                    const WeightDeltaOptions& options);
WeightDeltaResult write_trl_delta(const OpenedFile& base, const OpenedFile& next,
                                  const std::filesystem::path& file,
                                  const WeightDeltaOptions& options);
/// As write_lora_adapter(), the same. @param base_name what the configuration calls the base.
LoraAdapterResult write_adapter(const OpenedFile& base, const OpenedFile& next,
                                const std::optional<std::string>& base_name,
                                const std::filesystem::path& folder,
                                const LoraAdapterOptions& options);

namespace weight_sync {

/// Two models that have the same dense tensors. Borrows both.
class ModelPair {
 public:
  using Compare = std::function<void(std::size_t i, ByteSpan before, ByteSpan after)>;

  /// @throws UsageError (bad_argument) where they do not.
  ModelPair(const OpenedFile& base, const OpenedFile& next);
  /// Hands on tensors of `next` in both states, on several threads that begin them in this order.
  /// @throws what `compare` throws, with the tensor.
  void compare(std::span<const std::size_t> tensors, const Work& work,
               const Compare& compare) const;
  /// All, in the order of `next`.
  void compare(const Work& work, const Compare& compare) const;

 private:
  const OpenedFile& base_;
  const OpenedFile& next_;
  std::vector<std::size_t> places_;  ///< in the base, by tensor of `next`
};

}  // namespace weight_sync
}  // namespace thalia::formats
