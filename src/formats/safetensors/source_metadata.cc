// The metadata of a safetensors file travel in a member of a .thalia file's metadata, so that a
// conversion back finds them. What it finds may have been edited since: only an object of exactly
// this form counts, and everything else is reported as lost rather than half understood. Whether
// kept headers and indexes still fit the tensors, their users ask (kept_header.h, shard_plan.h).
#include "formats/safetensors/source_metadata.h"

#include <utility>

#include "formats/source/metadata_member.h"

namespace thalia::formats {
namespace {

using safetensors::KeptHeader;
using safetensors::SourceModel;
using safetensors::SourceModelFile;

constexpr std::string_view kFormatName = "safetensors";
constexpr std::string_view kMetadataKey = "metadata";
constexpr std::string_view kHeaderKey = "header";
constexpr std::string_view kLengthKey = "header_length";
constexpr std::string_view kIndexKey = "index";
constexpr std::string_view kFilesKey = "files";
constexpr std::string_view kNameKey = "name";
constexpr std::string_view kTextKey = "text";
constexpr std::string_view kBytesKey = "tensor_bytes";

// Each of these is false where something in `value`, which somebody else may have written, is not
// of this form: an unknown key, another type, a second member of a key.

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

bool read_files(json::Value& value, std::vector<SourceModelFile>& files) {
  if (value.kind() != json::Kind::array || !files.empty()) return false;
  bool good = true;
  value.for_each_element([&](json::Value& element) {
    if (element.kind() != json::Kind::object) {
      good = false;
      return;
    }
    SourceModelFile file;
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

bool read_model(json::Value& value, std::optional<SourceModel>& model) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::optional<std::string> name, text;
  std::optional<std::uint64_t> bytes;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == kNameKey) {
      good = read_string(member, name) && good;
    } else if (key == kBytesKey) {
      good = good && !bytes && (bytes = member.unsigned_integer());
    } else {
      good = key == kTextKey && read_string(member, text) && good;
    }
  });
  if (!good || !name || !text || model) return false;
  model = SourceModel{
      .index_name = std::move(*name), .index_text = std::move(*text), .tensor_bytes = bytes};
  return true;
}

bool read_source_metadata(json::Value& value, SafetensorsSourceMetadata& source) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::vector<SourceModelFile> files;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == kIndexKey) {
      good = read_model(member, source.model) && good;
    } else if (key == kFilesKey) {
      good = read_files(member, files) && good;
    } else {
      good = read_file_member(key, member, source.metadata, source.header) && good;
    }
  });
  if (!source.model) return good && files.empty();
  source.model->files = std::move(files);
  return good && source.header.empty();
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

std::string source_metadata_to_json(const std::optional<SafetensorsMetadata>& metadata) {
  return source_metadata_to_json(SafetensorsSourceMetadata{.metadata = metadata, .other_keys = {}});
}

std::string source_metadata_to_json(const SafetensorsSourceMetadata& source) {
  return source_metadata_json(kFormatName, [&](JsonWriter& json) {
    write_file_members(json, source.metadata, source.header);
    if (!source.model) return;
    json.key(kIndexKey).begin_object().member(kNameKey, source.model->index_name);
    json.member(kTextKey, source.model->index_text);
    if (source.model->tensor_bytes) json.member(kBytesKey, *source.model->tensor_bytes);
    json.end_object();
    if (source.model->files.empty()) return;
    json.key(kFilesKey).begin_array();
    for (const SourceModelFile& file : source.model->files) {
      json.begin_object().member(kNameKey, file.name);
      write_file_members(json, file.metadata, file.header);
      json.end_object();
    }
    json.end_array();
  });
}

SafetensorsSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                                    unsigned max_json_depth) {
  SafetensorsSourceMetadata source;
  const SourceMetadataPlace own =
      find_source_metadata(metadata_json, kFormatName, max_json_depth, [&](json::Value& object) {
        SafetensorsSourceMetadata read{.metadata = {}, .other_keys = {}};
        const bool good = read_source_metadata(object, read);
        if (good) source = std::move(read);
        return good;
      });
  source.found = own.own.has_value();
  visit_others(metadata_json, own, max_json_depth, [&](std::string_view key, json::Value& value) {
    if (value.kind() == json::Kind::string) source.texts.emplace_back(key, value.string());
    source.other_keys.emplace_back(key);
  });
  return source;
}

}  // namespace thalia::formats
