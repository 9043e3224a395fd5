// The text is {"training_steps":N,"metadata":{…}}, the first member only if there is a count.
// Somebody may have edited it, or what lies beside it: one of another form is a text like any
// other, and so is one that is not all that the file has to say.
#include "convert/embedded_metadata.h"

#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/source/metadata_member.h"
#include "json/copy.h"
#include "json/reader.h"
#include "json/writer.h"
#include "thalia/error.h"

namespace thalia::formats {
namespace {

constexpr std::string_view kMetadata = "metadata";
constexpr std::string_view kTrainingSteps = "training_steps";

// Headers of some formats are read whole, and have a limit.
constexpr std::size_t kLongestText = 16 << 20;

using Texts = std::vector<std::pair<std::string, std::string>>;

std::string embedded_text(const EmbeddedMetadata& embedded) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  if (embedded.training_steps) json.member(kTrainingSteps, *embedded.training_steps);
  json.key(kMetadata).raw(embedded.metadata).end_object();
  return text;
}

std::optional<EmbeddedMetadata> embedded_from(std::string_view text, unsigned max_depth) {
  EmbeddedMetadata embedded;
  bool good = true, found = false;
  try {
    json::walk_object(text, max_depth, [&](std::string_view key, json::Value& value) {
      if (key == kTrainingSteps && !embedded.training_steps && !found) {
        embedded.training_steps = value.unsigned_integer();
        good = good && embedded.training_steps.has_value();
      } else if (key == kMetadata && value.kind() == json::Kind::object && !found) {
        embedded.metadata = json::copied(value);
        found = true;
      } else {
        good = false;
      }
    });
  } catch (const FormatError&) {
    return std::nullopt;
  }
  return good && found ? std::optional(std::move(embedded)) : std::nullopt;
}

// What people read: texts of the file that the metadata came from, and texts beside these.
struct ReadableTexts {
  Texts texts;
  std::string format;    ///< that the metadata are of; empty: of none
  bool is_empty = true;  ///< no member
};

void add_texts(json::Value& object, Texts& texts) {
  object.for_each_member([&](std::string_view key, json::Value& value) {
    if (value.kind() == json::Kind::string) texts.emplace_back(key, value.string());
  });
}

ReadableTexts readable_texts(std::string_view metadata, unsigned max_depth) {
  ReadableTexts found;
  json::walk_object(metadata, max_depth, [&](std::string_view key, json::Value& value) {
    found.is_empty = false;
    if (value.kind() == json::Kind::string) {
      const std::string_view text = value.string();
      if (key == kFormatKey) found.format = text;
      if (key != kFormatKey) found.texts.emplace_back(key, text);
      return;
    }
    if (value.kind() != json::Kind::object) return;
    value.for_each_member([&](std::string_view inner, json::Value& texts) {
      if (inner == kMetadata && texts.kind() == json::Kind::object) add_texts(texts, found.texts);
    });
  });
  return found;
}

void add_once(JsonWriter& json, const Texts& texts) {
  std::unordered_set<std::string_view> known{kEmbeddedMetadata};
  for (const auto& [key, text] : texts)
    if (known.insert(key).second) json.member(key, text);
}

// Whether the file says what one does that is written from `embedded`, and no more.
bool says_all(const EmbeddedMetadata& embedded, const OpenedFacts& facts, const FormatRow& from,
              unsigned max_depth) {
  EmbeddedMetadata written = embedded;
  if (from.holds_texts) written = packed_metadata(embedded, from.name, max_depth);
  SinkInput input{.metadata = std::move(written.metadata)};
  for (const AnyTensor& tensor : facts.tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  return facts.training_steps == written.training_steps &&
         from.is_made_of(input, facts.metadata, max_depth);
}

}  // namespace

EmbeddedMetadata own_metadata(const OpenedFacts& facts) {
  return {.metadata = facts.metadata, .training_steps = facts.training_steps};
}

EmbeddedMetadata restored_metadata(const OpenedFacts& facts, const FormatRow& from,
                                   unsigned max_json_depth) {
  if (facts.embedded) {
    auto embedded = embedded_from(*facts.embedded, max_json_depth);
    if (embedded && says_all(*embedded, facts, from, max_json_depth)) return *std::move(embedded);
  }
  return own_metadata(facts);
}

EmbeddedMetadata packed_metadata(const EmbeddedMetadata& metadata, std::string_view to,
                                 unsigned max_json_depth) {
  const ReadableTexts found = readable_texts(metadata.metadata, max_json_depth);
  const bool nothing = found.is_empty && !metadata.training_steps;
  // What is longer is a sink's to name as lost.
  const bool too_long = metadata.metadata.size() > kLongestText;
  if (found.format == to || nothing || too_long) return metadata;
  EmbeddedMetadata packed;
  packed.metadata.clear();
  JsonWriter json(packed.metadata);
  json.begin_object();
  add_once(json, found.texts);
  json.member(kEmbeddedMetadata, embedded_text(metadata)).end_object();
  return packed;
}

}  // namespace thalia::formats
