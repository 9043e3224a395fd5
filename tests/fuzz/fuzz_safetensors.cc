// Parses any bytes as a safetensors file. What is accepted lies inside the input, and survives
// being written and parsed again; with the header that is kept of it, byte for byte.

#include <algorithm>
#include <string>

#include "formats/safetensors/header.h"
#include "formats/safetensors/kept_header.h"
#include "formats/safetensors/metadata_slot.h"
#include "formats/safetensors/parse.h"
#include "formats/safetensors/source_metadata.h"
#include "fuzz/fuzz_target.h"
#include "json/reader.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace safetensors_target {

constexpr std::uint64_t kLimit = formats::kSafetensorsHeaderLimit;

void check_extents(ByteSpan file, const formats::ParsedSafetensors& parsed) {
  const std::byte* expected = nullptr;
  for (const NamedArray& tensor : parsed.tensors) {
    FUZZ_REQUIRE(tensor.shape.byte_length(tensor.dtype) == tensor.bytes.size());
    FUZZ_REQUIRE(tensor.bytes.data() >= file.data());
    FUZZ_REQUIRE(expected == nullptr || tensor.bytes.data() == expected);
    expected = tensor.bytes.data() + tensor.bytes.size();
  }
  FUZZ_REQUIRE(expected == nullptr || expected == file.data() + file.size());
}

void check_round_trip(const formats::ParsedSafetensors& parsed) {
  // Escapes may make the header longer than the one that was read.
  const auto header = formats::make_safetensors_header(parsed.tensors, parsed.metadata, 6 * kLimit);
  std::string file = header.bytes;
  for (const std::size_t i : header.order) {
    const ByteSpan bytes = parsed.tensors[i].bytes;
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const auto again = formats::parse_safetensors(as_byte_span(file), 6 * kLimit);
  FUZZ_REQUIRE(again.metadata == parsed.metadata);
  FUZZ_REQUIRE(again.tensors.size() == parsed.tensors.size());
  for (std::size_t i = 0; i < again.tensors.size(); ++i) {
    const NamedArray& now = again.tensors[i];
    const NamedArray& before = parsed.tensors[header.order[i]];
    // Empty tensors may have changed places: their offsets do not tell which comes first.
    if (before.bytes.empty()) continue;
    FUZZ_REQUIRE(now.name == before.name && now.dtype == before.dtype);
    FUZZ_REQUIRE(now.shape == before.shape && std::ranges::equal(now.bytes, before.bytes));
  }
}

// By way of the metadata of a .thalia file.
void check_kept(ByteSpan file, const formats::ParsedSafetensors& parsed) {
  const formats::SafetensorsSourceMetadata kept{
      .metadata = parsed.metadata,
      .other_keys = {},
      .header = formats::safetensors::header_to_keep(parsed)};
  const auto source =
      formats::source_metadata_from_json(formats::source_metadata_to_json(kept), 64);
  FUZZ_REQUIRE(source.found && source.header == kept.header && source.metadata == kept.metadata);
  const auto header = formats::safetensors::kept_or_new_header(source.header, parsed.tensors,
                                                               source.metadata, kLimit, {});
  std::string again = header.bytes;
  for (const std::size_t i : header.order) {
    const ByteSpan bytes = parsed.tensors[i].bytes;
    again.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  FUZZ_REQUIRE(std::ranges::equal(as_byte_span(again), file));
}

void check_slot(const formats::ParsedSafetensors& parsed) {
  const auto slot = formats::safetensors::find_metadata_slot(parsed.header);
  FUZZ_REQUIRE(slot.has_value() == parsed.metadata.has_value());
  if (!slot) return;
  FUZZ_REQUIRE(slot->begin < slot->end && slot->end < parsed.header.size());
  SafetensorsMetadata texts;
  json::walk_object(
      parsed.header.substr(slot->begin, slot->end - slot->begin), 8,
      [&](std::string_view key, json::Value& text) { texts.emplace_back(key, text.string()); });
  FUZZ_REQUIRE(texts == parsed.metadata);
}

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan file = std::as_bytes(std::span(data, size));
  try {
    const auto parsed = formats::parse_safetensors(file, kLimit);
    check_extents(file, parsed);
    check_round_trip(parsed);
    check_kept(file, parsed);
    check_slot(parsed);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace safetensors_target
}  // namespace

FUZZ_TARGET(safetensors)
