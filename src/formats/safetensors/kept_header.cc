// A kept header is a text that somebody may have edited. So it is parsed like that of any file, and
// held against the tensors by name; whatever does not fit makes it count for nothing.
#include "formats/safetensors/kept_header.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "formats/safetensors/header_content.h"
#include "thalia/error.h"

namespace thalia::formats::safetensors {
namespace {

// Longer than any that a reader takes: escapes may make our header longer than the one that was
// read.
constexpr std::uint64_t kAnyLength = 1ull << 40;

std::string_view without_padding(std::string_view text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string_view text_of(const SafetensorsHeader& header) {
  return std::string_view(header.bytes).substr(kSafetensorsPrefix);
}

// For each tensor of the header, in its order, its position in `tensors`; nullopt unless the two
// are the same.
std::optional<std::vector<std::size_t>> match(const std::vector<HeaderTensor>& of_header,
                                              const std::vector<NamedArray>& tensors) {
  if (of_header.size() != tensors.size()) return std::nullopt;
  std::vector<std::size_t> by_name(tensors.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  const auto name = [&](std::size_t i) { return std::string_view(tensors[i].name); };
  std::ranges::sort(by_name, {}, name);
  std::vector<std::size_t> order;
  order.reserve(tensors.size());
  // Names in a header are different, so as many matches as tensors are all tensors.
  for (const HeaderTensor& one : of_header) {
    const auto found = std::ranges::lower_bound(by_name, std::string_view(one.name), {}, name);
    if (found == by_name.end() || name(*found) != one.name) return std::nullopt;
    if (tensors[*found].dtype != one.dtype || tensors[*found].shape != one.shape)
      return std::nullopt;
    order.push_back(*found);
  }
  return order;
}

std::optional<SafetensorsHeader> from_text(const std::string& text,
                                           const std::vector<NamedArray>& tensors,
                                           const std::optional<SafetensorsMetadata>& metadata,
                                           std::uint64_t max_header_bytes,
                                           const ReadLimits& limits) {
  if (!text.starts_with('{') || text.size() > max_header_bytes) return std::nullopt;
  try {
    const HeaderContent content = read_header_content(text, limits);
    if (content.metadata != metadata) return std::nullopt;
    auto order = match(content.tensors, tensors);
    if (!order) return std::nullopt;
    SafetensorsHeader header{.bytes = std::string(kSafetensorsPrefix, '\0') + text,
                             .order = std::move(*order),
                             .data_bytes = content.data_bytes};
    finish_header(header.bytes, max_header_bytes);
    return header;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  return std::nullopt;
}

}  // namespace

KeptHeader header_to_keep(const ParsedSafetensors& parsed) {
  std::optional<SafetensorsHeader> ours;
  try {
    ours = make_safetensors_header(parsed.tensors, parsed.metadata, kAnyLength);
  } catch (const UnsupportedError&) {
    // Tensors that a header holds and ours cannot: there are none, but then it is kept.
  }
  KeptHeader kept;
  if (ours && text_of(*ours) == parsed.header) return kept;
  if (ours && without_padding(text_of(*ours)) == without_padding(parsed.header)) {
    kept.length = parsed.header.size();
  } else {
    kept.text = std::string(parsed.header);
  }
  return kept;
}

std::optional<SafetensorsHeader> restore_header(const KeptHeader& kept,
                                                const std::vector<NamedArray>& tensors,
                                                const std::optional<SafetensorsMetadata>& metadata,
                                                std::uint64_t max_header_bytes,
                                                const ReadLimits& limits) {
  if (kept.text) return from_text(*kept.text, tensors, metadata, max_header_bytes, limits);
  if (!kept.length || *kept.length > max_header_bytes) return std::nullopt;
  SafetensorsHeader header = make_safetensors_header(tensors, metadata, kAnyLength);
  if (*kept.length < without_padding(text_of(header)).size()) return std::nullopt;
  header.bytes.resize(kSafetensorsPrefix + *kept.length, ' ');
  finish_header(header.bytes, max_header_bytes);
  return header;
}

SafetensorsHeader kept_or_new_header(const KeptHeader& kept, const std::vector<NamedArray>& tensors,
                                     const std::optional<SafetensorsMetadata>& metadata,
                                     std::uint64_t max_header_bytes, const ReadLimits& limits,
                                     std::uint64_t align) {
  if (auto header = restore_header(kept, tensors, metadata, max_header_bytes, limits))
    return std::move(*header);
  return make_safetensors_header(tensors, metadata, max_header_bytes, align);
}

}  // namespace thalia::formats::safetensors
