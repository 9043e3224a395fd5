// The metadata of a safetensors file travel in a member of a .thalia file's metadata, so that a
// conversion back finds them. What it finds may have been edited since: only an object of exactly
// this form counts, and everything else is reported as lost rather than half understood. Whether
// kept headers and indexes still fit the tensors, their users ask (kept_header.h, shard_plan.h).
#include "interop/safetensors/origin.h"

#include <set>
#include <utility>

#include "json/reader.h"
#include "json/writer.h"

namespace thalia::interop {
namespace {

using safetensors::KeptHeader;
using safetensors::OriginFile;
using safetensors::OriginModel;

constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kFormatName = "safetensors";
constexpr std::string_view kMetadataKey = "metadata";
constexpr std::string_view kHeaderKey = "header";
constexpr std::string_view kLengthKey = "header_length";
constexpr std::string_view kIndexKey = "index";
constexpr std::string_view kFilesKey = "files";
constexpr std::string_view kNameKey = "name";
constexpr std::string_view kTextKey = "text";

// Each of these is false where something in `value`, which somebody else may have written, is not
// of this form: an unknown key, another type, a second member of a key.

bool read_texts(json::Value& value, SafetensorsMetadata& texts) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::set<std::string, std::less<>> keys;
  value.for_each_member([&](std::string_view name, json::Value& text) {
    if (text.kind() != json::Kind::string || !keys.emplace(name).second) {
      good = false;
    } else {
      texts.emplace_back(name, text.string());
    }
  });
  return good;
}

bool read_string(json::Value& value, std::optional<std::string>& text) {
  if (value.kind() != json::Kind::string || text) return false;
  text = std::string(value.string());
  return true;
}

// The members that a file has, alone or in a model.
bool read_file_member(std::string_view key, json::Value& value,
                      std::optional<SafetensorsMetadata>& metadata, KeptHeader& header) {
  if (key == kMetadataKey && !metadata) return read_texts(value, metadata.emplace());
  if (key == kHeaderKey) return read_string(value, header.text);
  if (key != kLengthKey || header.length) return false;
  header.length = value.unsigned_integer();
  return header.length.has_value();
}

bool read_files(json::Value& value, std::vector<OriginFile>& files) {
  if (value.kind() != json::Kind::array || !files.empty()) return false;
  bool good = true;
  value.for_each_element([&](json::Value& element) {
    if (element.kind() != json::Kind::object) {
      good = false;
      return;
    }
    OriginFile file;
    std::optional<std::string> name;
    element.for_each_member([&](std::string_view key, json::Value& member) {
      if (key == kNameKey) {
        good = read_string(member, name) && good;
      } else {
        good = read_file_member(key, member, file.metadata, file.header) && good;
      }
    });
    good = good && name;
    if (name) file.name = std::move(*name);
    files.push_back(std::move(file));
  });
  return good;
}

bool read_model(json::Value& value, std::optional<OriginModel>& model) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::optional<std::string> name, text;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == kNameKey) {
      good = read_string(member, name) && good;
    } else {
      good = key == kTextKey && read_string(member, text) && good;
    }
  });
  if (!good || !name || !text || model) return false;
  model = OriginModel{.index_name = std::move(*name), .index_text = std::move(*text)};
  return true;
}

bool read_origin(json::Value& value, SafetensorsOrigin& origin) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::vector<OriginFile> files;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == kIndexKey) {
      good = read_model(member, origin.model) && good;
    } else if (key == kFilesKey) {
      good = read_files(member, files) && good;
    } else {
      good = read_file_member(key, member, origin.metadata, origin.header) && good;
    }
  });
  if (!origin.model) return good && files.empty();
  origin.model->files = std::move(files);
  return good && origin.header.empty();
}

void write_file_members(JsonWriter& json, const std::optional<SafetensorsMetadata>& metadata,
                        const KeptHeader& header) {
  if (metadata) {
    json.key(kMetadataKey).begin_object();
    for (const auto& [key, value] : *metadata) json.member(key, value);
    json.end_object();
  }
  if (header.text) json.member(kHeaderKey, *header.text);
  if (header.length) json.member(kLengthKey, *header.length);
}

}  // namespace

std::string origin_to_json(const std::optional<SafetensorsMetadata>& metadata) {
  return origin_to_json(SafetensorsOrigin{.metadata = metadata, .other_keys = {}});
}

std::string origin_to_json(const SafetensorsOrigin& origin) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member(kFormatKey, kFormatName).key(kFormatName).begin_object();
  write_file_members(json, origin.metadata, origin.header);
  if (origin.model) {
    json.key(kIndexKey).begin_object().member(kNameKey, origin.model->index_name);
    json.member(kTextKey, origin.model->index_text).end_object();
    if (!origin.model->files.empty()) {
      json.key(kFilesKey).begin_array();
      for (const OriginFile& file : origin.model->files) {
        json.begin_object().member(kNameKey, file.name);
        write_file_members(json, file.metadata, file.header);
        json.end_object();
      }
      json.end_array();
    }
  }
  json.end_object().end_object();
  return text;
}

SafetensorsOrigin origin_from_json(std::string_view metadata_json, unsigned max_json_depth) {
  SafetensorsOrigin origin;
  if (metadata_json.empty()) return origin;
  json::walk_object(metadata_json, max_json_depth, [&](std::string_view key, json::Value& value) {
    if (value.kind() == json::Kind::string) {
      const std::string_view text = value.string();
      if (key == kFormatKey && text == kFormatName) return;
      origin.texts.emplace_back(key, text);
    } else if (key == kFormatName && !origin.found) {
      SafetensorsOrigin found{.metadata = {}, .other_keys = {}};
      if (read_origin(value, found)) {
        origin.metadata = std::move(found.metadata);
        origin.header = std::move(found.header);
        origin.model = std::move(found.model);
        origin.found = true;
        return;
      }
    }
    origin.other_keys.emplace_back(key);
  });
  return origin;
}

}  // namespace thalia::interop
