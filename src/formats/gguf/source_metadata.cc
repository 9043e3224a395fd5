// Key/values and types of tensors travel in a member of a .thalia file's metadata, so that a
// conversion back writes the same file. Texts, numbers and truth values beside it, which users or
// other formats have put there, become key/values.
#include "formats/gguf/source_metadata.h"

#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "formats/gguf/value_json.h"
#include "formats/gguf/value_types.h"
#include "formats/source/metadata_member.h"
#include "json/number.h"

namespace thalia::formats::gguf {
namespace {

constexpr std::string_view kFormatName = "gguf";
constexpr std::string_view kKeyValuesKey = "key_values";
constexpr std::string_view kTensorsKey = "tensors";
constexpr std::string_view kTypeKey = "type";
constexpr std::string_view kShapeKey = "shape";
constexpr std::string_view kNoArchitecture = "unknown";

std::optional<Shape> shape_from_json(json::Value& json) {
  if (json.kind() != json::Kind::array) return std::nullopt;
  std::vector<std::uint64_t> extents;
  bool good = true;
  json.for_each_element([&](json::Value& element) {
    const auto extent = element.unsigned_integer();
    good = good && extent && extents.size() < Shape::kMaxRank;
    if (good) extents.push_back(*extent);
  });
  return good ? std::optional(Shape(extents)) : std::nullopt;
}

std::optional<SourceTensorType> tensor_from_json(std::string_view name, json::Value& json) {
  if (json.kind() != json::Kind::object) return std::nullopt;
  SourceTensorType tensor{.name = std::string(name)};
  const GgmlTypeFacts* facts = nullptr;
  bool good = true, has_shape = false;
  json.for_each_member([&](std::string_view key, json::Value& value) {
    if (key == kTypeKey && value.kind() == json::Kind::string && facts == nullptr) {
      facts = ggml_type_from_name(value.string());
    } else if (key == kShapeKey && !has_shape) {
      const std::optional<Shape> shape = shape_from_json(value);
      has_shape = shape.has_value();
      if (shape) tensor.shape = *shape;
      good = good && has_shape;
    } else {
      good = false;
    }
  });
  if (!good || facts == nullptr) return std::nullopt;
  tensor.type = facts->type;
  return tensor;
}

// What a number without a type becomes: an i64, else a u64, else an f64.
std::optional<GgufValue> number_from_token(std::string_view token) {
  const char* const end = token.data() + token.size();
  const auto whole = [&](auto number) -> std::optional<GgufValue> {
    const auto [stop, error] = std::from_chars(token.data(), end, number);
    if (error != std::errc() || stop != end) return std::nullopt;
    return number;
  };
  if (token.find_first_of(".eE") == token.npos) {
    if (auto number = whole(std::int64_t{})) return number;
    return whole(std::uint64_t{});
  }
  const double number = json::to_double(token);
  return std::isfinite(number) ? std::optional<GgufValue>(number) : std::nullopt;
}

std::optional<GgufValue> untyped_from_json(json::Value& json) {
  switch (json.kind()) {
    case json::Kind::string:
      return std::string(json.string());
    case json::Kind::boolean:
      return json.token() == "true";
    case json::Kind::number:
      return number_from_token(json.token());
    case json::Kind::object:
    case json::Kind::array:
    case json::Kind::null:
      break;
  }
  return std::nullopt;
}

class SourceMetadataReader {
 public:
  explicit SourceMetadataReader(unsigned max_depth) : max_depth_(max_depth) {}

  GgufSourceMetadata read(std::string_view text) {
    const SourceMetadataPlace own =
        find_source_metadata(text, kFormatName, max_depth_, [&](json::Value& object) {
          object.for_each_member(
              [&](std::string_view name, json::Value& member) { read_own(name, member); });
          return true;
        });
    visit_others(text, own, max_depth_, [&](std::string_view key, json::Value& value) {
      add(key, untyped_from_json(value), false);
    });
    // If a GGUF file had no architecture, none is written.
    if (!own && !keys_.contains(kArchitectureKey)) {
      source_.key_values.insert(source_.key_values.begin(),
                                {std::string(kArchitectureKey), std::string(kNoArchitecture)});
    }
    return std::move(source_);
  }

 private:
  void read_own(std::string_view name, json::Value& value) {
    const bool is_object = value.kind() == json::Kind::object;
    if (name == kKeyValuesKey && is_object) {
      value.for_each_member([&](std::string_view key, json::Value& member) {
        add(key, value_from_json(member), true);
      });
    } else if (name == kTensorsKey && is_object) {
      // If an entry does not fit, nothing is lost: the tensor's dtype tells its type, or it is
      // refused.
      value.for_each_member([&](std::string_view tensor, json::Value& member) {
        if (auto read = tensor_from_json(tensor, member))
          source_.tensors.push_back(std::move(*read));
      });
    } else {
      source_.lost.push_back(std::string(kFormatName) + "." + std::string(name));
    }
  }

  void add(std::string_view key, std::optional<GgufValue> value, bool own) {
    if (key.empty() || !value || !fits(key, *value, own) || keys_.contains(key)) {
      source_.lost.emplace_back(key);
      return;
    }
    keys_.emplace(key);
    source_.key_values.push_back({std::string(key), std::move(*value)});
  }

  // Two keys mean something to anybody who reads the file.
  static bool fits(std::string_view key, const GgufValue& value, bool own) {
    if (key == kAlignmentKey) {
      const auto* const alignment = std::get_if<std::uint32_t>(&value);
      return alignment != nullptr && is_alignment(*alignment) && *alignment <= kMostAlignment;
    }
    return key != kArchitectureKey || own || std::holds_alternative<std::string>(value);
  }

  unsigned max_depth_;
  GgufSourceMetadata source_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace

std::string source_metadata_to_json(const GgufKeyValues& key_values,
                                    const std::vector<SourceTensorType>& tensors) {
  return source_metadata_json(kFormatName, [&](JsonWriter& json) {
    json.key(kKeyValuesKey).begin_object();
    for (const auto& [key, value] : key_values) {
      json.key(key);
      value_to_json(json, value);
    }
    json.end_object().key(kTensorsKey).begin_object();
    for (const SourceTensorType& tensor : tensors) {
      const GgmlTypeFacts& facts = *ggml_type_facts(tensor.type);
      json.key(tensor.name).begin_object().member(kTypeKey, facts.name);
      if (!facts.dtype) {
        json.key(kShapeKey).begin_array();
        for (const std::uint64_t extent : tensor.shape.extents()) json.value(extent);
        json.end_array();
      }
      json.end_object();
    }
    json.end_object();
  });
}

GgufSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                             unsigned max_json_depth) {
  return SourceMetadataReader(max_json_depth).read(metadata_json);
}

}  // namespace thalia::formats::gguf
