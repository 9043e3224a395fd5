#include "formats/weight_sync/trl_metadata.h"

#include <fmt/format.h>

#include <string>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/weight_sync/slime_index.h"

namespace thalia::formats::weight_sync {
namespace {

constexpr std::string_view kFormat = "sparse_weight_patch";
constexpr std::string_view kFormatVersion = "1";
constexpr std::string_view kGapDelta = "gap_delta";
constexpr std::string_view kRaw = "raw";

const std::string* text_of(const SafetensorsMetadata& texts, std::string_view key) noexcept {
  for (const auto& [name, text] : texts)
    if (name == key) return &text;
  return nullptr;
}

[[noreturn]] void refuse_text(std::string_view key, const std::string* text, std::string bound) {
  throw FormatError(ErrorCode::bad_value, text == nullptr ? "the key is missing" : "",
                    {.section = "metadata",
                     .field = std::string(key),
                     .value = text == nullptr ? "" : printable(*text),
                     .bound = std::move(bound)});
}

void require(const SafetensorsMetadata& texts, std::string_view key, std::string_view value) {
  const std::string* const text = text_of(texts, key);
  if (text == nullptr || *text != value) refuse_text(key, text, std::string(value));
}

// As Python prints a float: 1.0, not 1.
std::string python_number(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

TrlMetadata parse_trl_metadata(const SafetensorsMetadata& texts) {
  require(texts, "format", kFormat);
  require(texts, "version", kFormatVersion);
  require(texts, "sparse", "True");
  TrlMetadata metadata;
  const std::string* const version = text_of(texts, "model_version");
  const auto number = version == nullptr ? std::nullopt : whole_number(*version);
  if (!number) refuse_text("model_version", version, "a number");
  metadata.version = *number;
  const std::string* const encoding = text_of(texts, "encoding");
  if (encoding == nullptr && text_of(texts, "changed_params") != nullptr) {
    metadata.encoding = PositionEncoding::raw;
    metadata.positions = ".indices";
    metadata.values = ".values";
    return metadata;
  }
  if (encoding != nullptr && *encoding == "nvcomp_cascaded") {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "positions that NVIDIA's nvCOMP has packed",
                           {.section = "metadata",
                            .field = "encoding",
                            .value = *encoding,
                            .bound = "gap_delta, raw"});
  }
  if (encoding == nullptr || (*encoding != kGapDelta && *encoding != kRaw))
    refuse_text("encoding", encoding, "gap_delta, raw");
  if (*encoding == kRaw) metadata.encoding = PositionEncoding::raw;
  return metadata;
}

SafetensorsMetadata write_trl_metadata(const TrlMetadata& metadata, const TrlCounts& counts) {
  const double changed = static_cast<double>(counts.changed_elements);
  const double all = static_cast<double>(counts.elements == 0 ? 1 : counts.elements);
  return {
      {"format", std::string(kFormat)},
      {"version", std::string(kFormatVersion)},
      {"sparse", "True"},
      {"model_version", std::to_string(metadata.version)},
      {"num_changed_params", std::to_string(counts.changed_tensors)},
      {"total_changed_elements", std::to_string(counts.changed_elements)},
      {"total_elements", std::to_string(counts.elements)},
      {"sparsity", python_number(1.0 - changed / all)},
      {"encoding", std::string(metadata.encoding == PositionEncoding::raw ? kRaw : kGapDelta)},
  };
}

PositionEncoding position_encoding(std::string_view name) {
  if (name.empty() || name == kGapDelta) return PositionEncoding::gap_delta;
  if (name == kRaw) return PositionEncoding::raw;
  fail_argument(ErrorCode::bad_argument, "encoding", printable(name), "gap_delta, raw");
}

std::optional<std::uint64_t> trl_step(std::string_view name) noexcept {
  constexpr std::string_view kBefore = "step_", kAfter = ".safetensors";
  if (!name.starts_with(kBefore) || !name.ends_with(kAfter) ||
      name.size() <= kBefore.size() + kAfter.size())
    return std::nullopt;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(kAfter.size());
  return whole_number(name);
}

}  // namespace thalia::formats::weight_sync
