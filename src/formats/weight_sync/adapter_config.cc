#include "formats/weight_sync/adapter_config.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>
#include <unordered_set>

#include "json/writer.h"

namespace thalia::formats::weight_sync {
namespace {

// peft takes such a name as a regular expression, which the end of a module's name has to fit.
std::string pattern_of(std::string_view name) {
  constexpr std::string_view kSpecial = "\\^$*+?{}[]|()";
  std::string pattern;
  for (const char c : name) {
    if (kSpecial.find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// Those of another rank than most, and those whose names end as one of these. The longest come
// first, as the first that fits counts.
std::vector<AdapterModule> listed_ranks(const std::vector<AdapterModule>& modules,
                                        std::uint32_t usual) {
  std::unordered_set<std::string_view> others;
  for (const AdapterModule& module : modules)
    if (module.rank != usual) others.insert(module.name);
  std::vector<AdapterModule> listed;
  for (const AdapterModule& module : modules) {
    std::string_view end = module.name;
    while (!others.contains(end)) {
      const std::size_t dot = end.find('.');
      if (dot == std::string_view::npos) break;
      end.remove_prefix(dot + 1);
    }
    if (others.contains(end)) listed.push_back(module);
  }
  std::ranges::stable_sort(listed, std::ranges::greater{},
                           [](const AdapterModule& module) { return module.name.size(); });
  return listed;
}

}  // namespace

std::string write_adapter_config(const std::vector<AdapterModule>& modules,
                                 const std::optional<std::string>& base, bool is_transposed) {
  // The highest, as servers make room for that many and know no patterns.
  const std::uint32_t rank = std::ranges::max_element(modules, {}, &AdapterModule::rank)->rank;
  const std::vector<AdapterModule> ranks = listed_ranks(modules, rank);
  std::string text;
  JsonWriter json(text, JsonIndent{});
  const auto add_pattern = [&](std::string_view name) {
    json.key(name).begin_object();
    for (const AdapterModule& module : ranks) json.member(pattern_of(module.name), module.rank);
    json.end_object();
  };
  json.begin_object();
  add_pattern("alpha_pattern");
  json.key("base_model_name_or_path");
  if (base) {
    json.value(*base);
  } else {
    json.null();
  }
  json.member("bias", "none").member("fan_in_fan_out", is_transposed);
  json.member("inference_mode", true).member("init_lora_weights", true);
  json.member("lora_alpha", rank).member("lora_dropout", 0.0);
  json.key("modules_to_save").null();
  json.member("peft_type", "LORA").member("r", rank);
  add_pattern("rank_pattern");
  json.key("target_modules").begin_array();
  for (const AdapterModule& module : modules) json.value(module.name);
  json.end_array().key("task_type").null();
  json.member("use_dora", false).member("use_rslora", false).end_object();
  text += '\n';
  return text;
}

}  // namespace thalia::formats::weight_sync
