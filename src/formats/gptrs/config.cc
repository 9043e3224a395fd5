// Reads a config as the original's types take it from a tree of values: of a key that repeats the
// last one counts, unknown keys are passed over, and null stands for an optional value that is not
// there. Members are copied out level by level, which takes as much memory as the text.
#include "formats/gptrs/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/memory/allocation_limit.h"
#include "json/copy.h"
#include "json/number.h"
#include "json/reader.h"

namespace thalia::formats::gptrs {
namespace {

[[noreturn]] void fail_member(std::string_view member, std::string value, std::string bound) {
  throw FormatError(
      ErrorCode::bad_value, "not a config of gpt.rs",
      {.field = std::string(member), .value = std::move(value), .bound = std::move(bound)});
}

json::Kind kind_of(std::string_view value) {
  json::Kind kind = json::Kind::null;
  json::walk_value(value, json::kDepthCeiling, [&](json::Value& read) { kind = read.kind(); });
  return kind;
}

const std::string* member_of(const json::Members& members, std::string_view key) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == key; });
  return found == members.end() ? nullptr : &found->second;
}

std::string text_of(std::string_view value) {
  std::string text;
  json::walk_value(value, 1, [&](json::Value& read) { text = read.string(); });
  return text;
}

std::optional<std::uint64_t> whole_number(std::string_view value) {
  std::optional<std::uint64_t> number;
  json::walk_value(value, json::kDepthCeiling,
                   [&](json::Value& read) { number = read.unsigned_integer(); });
  return number;
}

// nullptr if it is missing or null.
const std::string* optional_member(const json::Members& members, std::string_view key) {
  const std::string* const value = member_of(members, key);
  return value == nullptr || *value == "null" ? nullptr : value;
}

void expect_kind(std::string_view value, json::Kind kind, std::string_view member) {
  const json::Kind found = kind_of(value);
  if (found != kind)
    fail_member(member, std::string(json::kind_name(found)), std::string(json::kind_name(kind)));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// "", "force=NAME", "benchmark", "benchmark(cache=N)" with a number above 0.
bool is_policy(std::string_view text) {
  constexpr std::string_view kForce = "force=", kBenchmark = "benchmark", kCache = "(cache=";
  text = trimmed(text);
  if (text.empty()) return true;
  if (text.substr(0, kForce.size()) == kForce) return text.size() > kForce.size();
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower.compare(0, kBenchmark.size(), kBenchmark) != 0) return false;
  std::string_view rest = std::string_view(lower).substr(kBenchmark.size());
  if (rest.empty()) return true;
  if (rest.substr(0, kCache.size()) != kCache || rest.back() != ')') return false;
  rest = trimmed(rest.substr(kCache.size(), rest.size() - kCache.size() - 1));
  const bool digits =
      std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && rest.find_first_not_of('0') != std::string_view::npos;
}

void read_overrides(std::string_view value, unsigned max_depth, GptrsModelConfig& config) {
  expect_kind(value, json::Kind::object, "runtime.functional_overrides");
  for (const auto& [name, policy] : json::members_of(value, max_depth)) {
    const std::string member = fmt::format("runtime.functional_overrides.{}", printable(name));
    expect_kind(policy, json::Kind::string, member);
    std::string text = text_of(policy);
    if (!is_policy(text)) {
      fail_member(member, printable(text),
                  "empty, force=NAME, benchmark or benchmark(cache=N) with N above 0");
    }
    config.functional_overrides.emplace_back(name, std::move(text));
  }
}

void read_streaming(std::string_view value, unsigned max_depth, GptrsWeightStreaming& streaming) {
  const auto path = [](std::string_view key) {
    return fmt::format("runtime.weight_streaming.{}", key);
  };
  expect_kind(value, json::Kind::object, "runtime.weight_streaming");
  const json::Members members = json::members_of(value, max_depth);
  if (const std::string* const enabled = member_of(members, "enabled")) {
    expect_kind(*enabled, json::Kind::boolean, path("enabled"));
    streaming.enabled = *enabled == "true";
  }
  if (const std::string* const percent = optional_member(members, "device_weights_percent")) {
    expect_kind(*percent, json::Kind::number, path("device_weights_percent"));
    streaming.device_weights_percent = json::to_double(*percent);
  }
  const auto count = [&](std::string_view key, std::optional<std::uint64_t>& out) {
    const std::string* const text = optional_member(members, key);
    if (text == nullptr) return;
    out = whole_number(*text);
    if (!out) fail_member(path(key), printable(*text), "a whole number below 2^64");
  };
  count("device_budget_bytes", streaming.device_budget_bytes);
  count("cache_budget_cap_bytes", streaming.cache_budget_cap_bytes);
  count("prefetch_layers", streaming.prefetch_layers);
  count("small_param_persist_threshold", streaming.small_param_persist_threshold);
}

// What the original's type of a GPT's config needs. Unknown members beside are passed over.
bool is_gpt_config(const json::Members& members) {
  constexpr std::array kCounts = {"vocab_size", "context_length", "embed_dim",
                                  "num_layers", "num_heads",      "mlp_ratio"};
  for (const char* const key : kCounts) {
    const std::string* const value = member_of(members, key);
    if (value == nullptr || !whole_number(*value)) return false;
  }
  const std::string* const dropout = member_of(members, "dropout");
  return dropout != nullptr && kind_of(*dropout) == json::Kind::number;
}

}  // namespace

GptrsModelConfig read_config(std::string_view text, bool take_untagged, unsigned max_depth,
                             bool& untagged) {
  const json::Members members = json::members_of(text, max_depth);
  GptrsModelConfig config;
  const std::string* const kind = member_of(members, "kind");
  const bool is_tagged = kind != nullptr && kind_of(*kind) == json::Kind::string;
  untagged = !is_tagged && take_untagged && is_gpt_config(members);
  if (untagged) {
    config.kind = "gpt";
    json::walk_value(text, max_depth,
                     [&](json::Value& value) { config.config = json::copied(value); });
    return config;
  }
  if (!is_tagged) fail_member("kind", kind == nullptr ? "none" : printable(*kind, 40), "a string");
  config.kind = text_of(*kind);
  if (const std::string* const model = member_of(members, "config")) config.config = *model;
  const std::string* const runtime = optional_member(members, "runtime");
  if (runtime == nullptr) return config;
  expect_kind(*runtime, json::Kind::object, "runtime");
  const json::Members knobs = json::members_of(*runtime, max_depth);
  if (const std::string* const overrides = optional_member(knobs, "functional_overrides"))
    read_overrides(*overrides, max_depth, config);
  if (const std::string* const streaming = optional_member(knobs, "weight_streaming"))
    read_streaming(*streaming, max_depth, config.weight_streaming);
  return config;
}

std::string tagged_gpt_config(std::string_view untagged_text) {
  return fmt::format(R"({{"kind":"gpt","config":{}}})", untagged_text);
}

}  // namespace thalia::formats::gptrs

namespace thalia {

GptrsModelConfig parse_gptrs_config(std::string_view text, const ReadLimits& limits) {
  io::check_json_length("config", text.size(), limits, text.size());
  bool untagged = false;
  try {
    return formats::gptrs::read_config(text, false, limits.max_json_depth, untagged);
  } catch (Error& error) {
    error.add_section("config");
    throw;
  }
}

}  // namespace thalia
