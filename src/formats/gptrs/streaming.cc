// What gpt.rs checks of these members when it loads a model, and not when it opens a file.
#include <fmt/format.h>

#include "base/fail.h"
#include "thalia/formats/gptrs.h"

namespace thalia {

ParamSourceOptions param_source_options(const GptrsWeightStreaming& streaming) {
  const auto refuse = [](std::string_view member, std::string value, std::string bound) {
    throw FormatError(ErrorCode::bad_value, {},
                      {.section = "config",
                       .field = fmt::format("runtime.weight_streaming.{}", member),
                       .value = std::move(value),
                       .bound = std::move(bound)});
  };
  const auto is_set = [&](std::string_view member, bool has_value) {
    if (has_value && !streaming.enabled) refuse(member, "a value", "none, unless enabled");
  };
  is_set("device_budget_bytes", streaming.device_budget_bytes.has_value());
  is_set("device_weights_percent", streaming.device_weights_percent.has_value());
  is_set("cache_budget_cap_bytes", streaming.cache_budget_cap_bytes.has_value());
  is_set("prefetch_layers", streaming.prefetch_layers.has_value());
  is_set("small_param_persist_threshold", streaming.small_param_persist_threshold.has_value());
  if (const auto share = streaming.device_weights_percent; share && !(*share >= 0 && *share <= 1))
    refuse("device_weights_percent", fmt::format("{}", *share), "0 to 1");
  return {.budget_bytes = streaming.device_budget_bytes,
          .budget_share = streaming.device_weights_percent,
          .budget_cap_bytes = streaming.cache_budget_cap_bytes,
          .prefetch_layers = streaming.prefetch_layers.value_or(0),
          .small_bytes = streaming.small_param_persist_threshold};
}

}  // namespace thalia
