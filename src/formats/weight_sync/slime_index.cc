#include "formats/weight_sync/slime_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "json/reader.h"
#include "json/writer.h"

namespace thalia::formats::weight_sync {
namespace {

constexpr std::string_view kVersion = "version";
constexpr std::string_view kBaseVersion = "base_version";
constexpr std::string_view kEncoding = "delta_encoding";
constexpr std::string_view kCompression = "compression_format";
constexpr std::string_view kChecksum = "checksum_format";
constexpr std::array kKeys{kVersion, kBaseVersion, kEncoding, kCompression, kChecksum};

constexpr std::string_view kZstd = "zstd";
// In the order of the enumerations; the first is what is written where nobody says otherwise.
constexpr std::array<std::string_view, 2> kEncodings{"xor", "overwrite"};
constexpr std::array<std::string_view, 3> kChecksums{"xxh3-128", "blake3", "adler32"};

using Texts = std::array<std::optional<std::string>, kKeys.size()>;

template <std::size_t kCount>
std::optional<std::size_t> place_in(const std::array<std::string_view, kCount>& names,
                                    std::string_view name) noexcept {
  for (std::size_t i = 0; i < kCount; ++i)
    if (names[i] == name) return i;
  return std::nullopt;
}

template <std::size_t kCount>
std::size_t choice(const std::array<std::string_view, kCount>& names, std::string_view field,
                   std::string_view name) {
  if (name.empty()) return 0;
  if (const auto place = place_in(names, name)) return *place;
  fail_argument(ErrorCode::bad_argument, field, printable(name),
                fmt::format("{}", fmt::join(names, ", ")));
}

[[noreturn]] void refuse_key(std::string_view key, const std::optional<std::string>& text,
                             std::string bound) {
  throw FormatError(ErrorCode::bad_value, text ? "" : "the key is missing",
                    {.section = "index",
                     .field = fmt::format("metadata.{}", key),
                     .value = text ? printable(*text) : "",
                     .bound = std::move(bound)});
}

std::uint64_t number_of(const Texts& texts, std::size_t key) {
  if (texts[key])
    if (const auto number = whole_number(*texts[key])) return *number;
  refuse_key(kKeys[key], texts[key], "a number as text");
}

template <std::size_t kCount>
std::size_t choice_of(const Texts& texts, std::size_t key,
                      const std::array<std::string_view, kCount>& names) {
  if (texts[key])
    if (const auto place = place_in(names, *texts[key])) return *place;
  refuse_key(kKeys[key], texts[key], fmt::format("{}", fmt::join(names, ", ")));
}

Texts texts_of(std::string_view metadata, unsigned max_json_depth) {
  Texts texts;
  if (metadata.empty()) return texts;
  json::walk_value(metadata, max_json_depth, [&](json::Value& all) {
    if (all.kind() != json::Kind::object) return;
    all.for_each_member([&](std::string_view key, json::Value& value) {
      const auto place = place_in(kKeys, key);
      if (!place) return;
      if (texts[*place]) {
        throw FormatError(ErrorCode::inconsistent, "the key is there twice",
                          {.section = "index", .field = fmt::format("metadata.{}", key)});
      }
      // What is no text is one that is no value of any key.
      texts[*place] =
          value.kind() == json::Kind::string ? std::string(value.string()) : std::string();
    });
  });
  return texts;
}

}  // namespace

std::optional<SlimeIndex> parse_slime_index(std::string_view metadata, unsigned max_json_depth) {
  const Texts texts = texts_of(metadata, max_json_depth);
  if (!texts[2]) return std::nullopt;
  SlimeIndex index{.version = number_of(texts, 0), .base_version = number_of(texts, 1)};
  if (index.base_version >= index.version)
    refuse_key(kBaseVersion, texts[1], fmt::format("below {}", index.version));
  index.encoding = static_cast<ByteEncoding>(choice_of(texts, 2, kEncodings));
  choice_of(texts, 3, std::array{kZstd});
  index.checksum = static_cast<ByteChecksum>(choice_of(texts, 4, kChecksums));
  return index;
}

std::string write_slime_index(const SlimeIndex& index, const std::vector<std::string>& tensors,
                              std::string_view file) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("metadata").begin_object();
  json.member(kVersion, fmt::format("{:06}", index.version));
  json.member(kBaseVersion, fmt::format("{:06}", index.base_version));
  json.member(kEncoding, kEncodings[static_cast<std::size_t>(index.encoding)]);
  json.member(kCompression, kZstd);
  json.member(kChecksum, checksum_name(index.checksum));
  json.end_object().key("weight_map").begin_object();
  for (const std::string& tensor : tensors) json.member(tensor, file);
  json.end_object().end_object();
  return text;
}

ByteEncoding byte_encoding(std::string_view name) {
  return static_cast<ByteEncoding>(choice(kEncodings, "encoding", name));
}

ByteChecksum byte_checksum(std::string_view name) {
  return static_cast<ByteChecksum>(choice(kChecksums, "checksum", name));
}

std::string_view checksum_name(ByteChecksum checksum) noexcept {
  return kChecksums[static_cast<std::size_t>(checksum)];
}

std::optional<std::uint64_t> whole_number(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string version_folder(std::uint64_t version) {
  return fmt::format("weight_v{:06}", version);
}

}  // namespace thalia::formats::weight_sync
