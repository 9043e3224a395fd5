// The member may have been edited since it was written: only an object of exactly this form counts,
// and everything else is foreign rather than half understood. Names in it that no tensor has are
// no fault, as tensors may have been removed.
#include "formats/gptrs/source_metadata.h"

#include <algorithm>
#include <set>

#include "formats/gptrs/config.h"
#include "formats/gptrs/parse.h"
#include "formats/source/metadata_member.h"
#include "json/copy.h"
#include "thalia/error.h"

namespace thalia::formats::gptrs {
namespace {

constexpr std::string_view kName = "gptrs";

using Names = std::vector<std::string>;

// nullopt unless it is an array of different strings.
std::optional<Names> read_names(json::Value& value) {
  if (value.kind() != json::Kind::array) return std::nullopt;
  Names names;
  std::set<std::string, std::less<>> seen;
  bool good = true;
  value.for_each_element([&](json::Value& element) {
    if (element.kind() != json::Kind::string) {
      good = false;
      return;
    }
    const std::string_view name = element.string();
    good = seen.emplace(name).second && good;
    names.emplace_back(name);
  });
  return good ? std::optional(std::move(names)) : std::nullopt;
}

bool read_ids(json::Value& value, GptrsSourceMetadata& source) {
  if (value.kind() == json::Kind::string) {
    const std::string_view text = value.string();
    source.all_ids = text == "stored";
    return text == "stored" || text == "zero";
  }
  auto names = read_names(value);
  if (!names) return false;
  source.all_ids.reset();
  source.ids_of = std::move(*names);
  return true;
}

bool read_flags(json::Value& value, GptrsSourceMetadata& source) {
  return read_members(value, [&](std::string_view name, json::Value& flag) {
    const std::uint64_t number = flag.unsigned_integer().value_or(0);
    source.requires_grad.emplace(name, static_cast<std::uint8_t>(number));
    return number >= 1 && number <= 255;
  });
}

bool read_member(std::string_view key, json::Value& value, GptrsSourceMetadata& source) {
  const bool is_string = value.kind() == json::Kind::string;
  if (key == "file") {
    if (!is_string) return false;
    const std::string_view magic = value.string();
    source.format = magic == kCheckpointMagic ? GptrsFormat::checkpoint : GptrsFormat::archive;
    return magic == kCheckpointMagic || magic == kArchiveMagic;
  }
  if (key == "config") {
    if (is_string) source.config = value.string();
    return is_string;
  }
  if (key == "ids") return read_ids(value, source);
  if (key == "requires_grad") return read_flags(value, source);
  if (key != "order") return false;
  auto names = read_names(value);
  if (names) source.order = std::move(*names);
  return names.has_value();
}

std::optional<GptrsSourceMetadata> read_source_metadata(json::Value& value,
                                                        const ReadLimits& limits) {
  GptrsSourceMetadata source;
  std::set<std::string, std::less<>> seen;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    seen.emplace(key);
    return read_member(key, member, source);
  });
  if (!good || !seen.contains("file")) return std::nullopt;
  const bool is_checkpoint = source.format == GptrsFormat::checkpoint;
  if (is_checkpoint != seen.contains("config") || (!is_checkpoint && seen.contains("ids")))
    return std::nullopt;
  if (!is_checkpoint) return source;
  try {
    static_cast<void>(parse_gptrs_config(source.config, limits));
  } catch (const FormatError&) {
    return std::nullopt;
  }
  return source;
}

void write_names(JsonWriter& json, const Names& names) {
  json.begin_array();
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

}  // namespace

GptrsSourceMetadata source_metadata_of(const GptrsFile& file) {
  GptrsSourceMetadata source;
  source.format = file.format();
  if (file.format() == GptrsFormat::checkpoint) {
    source.config = file.config_was_untagged() ? tagged_gpt_config(file.config_text())
                                               : std::string(file.config_text());
  }
  std::size_t entries = 0;
  for (const GptrsTensor& tensor : file.tensors()) {
    if (file.find(tensor.name) != &tensor) continue;
    ++entries;
    if (tensor.id_stored) source.ids_of.push_back(tensor.name);
    if (tensor.requires_grad != 0) source.requires_grad.emplace(tensor.name, tensor.requires_grad);
    source.order.push_back(tensor.name);
  }
  // Version 1 has no ids; it is written again as version 2, with them. So is a file of no tensors.
  const bool none = source.ids_of.empty() && entries > 0 && file.version() != 1;
  if (source.ids_of.size() == entries || none || file.version() == 1) {
    source.all_ids = !none;
    source.ids_of.clear();
  } else {
    source.all_ids.reset();
  }
  // Version 1 has the order of a walk through the model.
  if (file.version() == 1 || std::is_sorted(source.order.begin(), source.order.end()))
    source.order.clear();
  return source;
}

std::string source_metadata_to_json(const GptrsSourceMetadata& source) {
  const bool is_checkpoint = source.format == GptrsFormat::checkpoint;
  return source_metadata_json(kName, [&](JsonWriter& json) {
    json.member("file", is_checkpoint ? kCheckpointMagic : kArchiveMagic);
    if (is_checkpoint) {
      json.member("config", source.config).key("ids");
      if (source.all_ids) {
        json.value(*source.all_ids ? "stored" : "zero");
      } else {
        write_names(json, source.ids_of);
      }
    }
    if (!source.requires_grad.empty()) {
      json.key("requires_grad").begin_object();
      for (const auto& [name, flag] : source.requires_grad) json.member(name, unsigned{flag});
      json.end_object();
    }
    if (!source.order.empty()) {
      json.key("order");
      write_names(json, source.order);
    }
  });
}

FoundSourceMetadata source_metadata_from_json(std::string_view metadata, const ReadLimits& limits) {
  FoundSourceMetadata found;
  const SourceMetadataPlace own =
      find_source_metadata(metadata, kName, limits.max_json_depth, [&](json::Value& object) {
        found.source = read_source_metadata(object, limits);
        return found.source.has_value();
      });
  visit_others(metadata, own, limits.max_json_depth, [&](std::string_view key, json::Value& value) {
    found.rest.emplace_back(key, json::copied(value));
  });
  return found;
}

}  // namespace thalia::formats::gptrs
