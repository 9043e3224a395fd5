// The metadata may have been edited since, and nothing here trusts it: only an object that holds
// the known members alone, each of its type, is source metadata. Any other is the user's, and
// becomes a property of the model like the rest of the metadata.
#include "formats/onnx/source_metadata.h"

#include <charconv>
#include <set>
#include <system_error>
#include <utility>

#include "formats/source/list_names.h"
#include "formats/source/metadata_member.h"
#include "json/copy.h"

namespace thalia::formats::onnx {
namespace {

constexpr std::string_view kFormatName = "onnx";

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Everything that is not as it should be makes the whole no source metadata.
class SourceMetadataReader {
 public:
  std::optional<OnnxSourceMetadata> read(json::Value& value) {
    source_.model = {.ir_version = 0,
                     .opset_imports = {},
                     .producer_name = {},
                     .producer_version = {},
                     .graph_name = {}};
    const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
      read_member(key, member);
      return good_;
    });
    return good && source_.model.ir_version > 0 ? std::optional(std::move(source_)) : std::nullopt;
  }

 private:
  void read_member(std::string_view key, json::Value& member) {
    OnnxModel& model = source_.model;
    if (key == "ir_version") return read_number(member, model.ir_version);
    if (key == "model_version") return read_number(member, model.model_version);
    if (key == "opset_imports") return read_opsets(member);
    if (key == "order") return read_order(member);
    if (key == "metadata_props") {
      good_ = read_texts(member, source_.metadata);
      return;
    }
    if (key == "external_data") {
      good_ = member.token() == "true";
      source_.external_data = good_;
      return;
    }
    const std::pair<std::string_view, std::string*> texts[] = {
        {"producer_name", &model.producer_name},
        {"producer_version", &model.producer_version},
        {"domain", &model.domain},
        {"doc_string", &model.doc_string},
        {"graph_name", &model.graph_name},
        {"graph_doc_string", &model.graph_doc_string}};
    for (const auto& [name, text] : texts)
      if (key == name) return read_text(member, *text);
    good_ = false;
  }

  void read_text(json::Value& member, std::string& text) {
    good_ = member.kind() == json::Kind::string;
    if (good_) text = member.string();
  }

  void read_number(json::Value& member, std::int64_t& number) {
    const auto read = member.kind() == json::Kind::number
                          ? whole_number<std::int64_t>(member.token())
                          : std::nullopt;
    good_ = read.has_value();
    number = read.value_or(0);
  }

  void read_opsets(json::Value& member) {
    if (member.kind() != json::Kind::array) {
      good_ = false;
      return;
    }
    member.for_each_element([&](json::Value& element) {
      if (!good_) return;
      OnnxOpset opset;
      good_ = read_members(element, [&](std::string_view key, json::Value& value) {
        if (key == "domain") {
          read_text(value, opset.domain);
        } else if (key == "version") {
          read_number(value, opset.version);
        } else {
          return false;
        }
        return good_;
      });
      source_.model.opset_imports.push_back(std::move(opset));
    });
  }

  void read_order(json::Value& member) {
    if (member.kind() != json::Kind::array) {
      good_ = false;
      return;
    }
    member.for_each_element([&](json::Value& element) {
      std::string name;
      if (good_) read_text(element, name);
      source_.order.push_back(std::move(name));
    });
  }

  OnnxSourceMetadata source_;
  bool good_ = true;
};

}  // namespace

std::string source_metadata_to_json(const OnnxSourceMetadata& source) {
  const OnnxModel& model = source.model;
  return source_metadata_json(kFormatName, [&](JsonWriter& json) {
    json.member("ir_version", model.ir_version);
    const auto optional_text = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) json.member(key, value);
    };
    optional_text("producer_name", model.producer_name);
    optional_text("producer_version", model.producer_version);
    optional_text("domain", model.domain);
    if (model.model_version != 0) json.member("model_version", model.model_version);
    optional_text("doc_string", model.doc_string);
    optional_text("graph_name", model.graph_name);
    optional_text("graph_doc_string", model.graph_doc_string);
    json.key("opset_imports").begin_array();
    for (const OnnxOpset& opset : model.opset_imports) {
      json.begin_object()
          .member("domain", opset.domain)
          .member("version", opset.version)
          .end_object();
    }
    json.end_array();
    if (!source.metadata.empty()) {
      json.key("metadata_props").begin_object();
      for (const auto& [key, value] : source.metadata) json.member(key, value);
      json.end_object();
    }
    if (source.external_data) json.member("external_data", true);
    if (source.order.size() > 1) {
      json.key("order").begin_array();
      for (const std::string& name : source.order) json.value(name);
      json.end_array();
    }
  });
}

OnnxSourceMetadata source_metadata_from_json(std::string_view metadata, unsigned max_json_depth) {
  OnnxSourceMetadata source;
  const SourceMetadataPlace own =
      find_source_metadata(metadata, kFormatName, max_json_depth, [&](json::Value& object) {
        auto found = SourceMetadataReader().read(object);
        if (!found) return false;
        source = *std::move(found);
        return true;
      });
  std::set<std::string, std::less<>> keys;
  for (const auto& [key, value] : source.metadata) keys.insert(key);
  std::vector<std::string> as_json, repeated;
  visit_others(metadata, own, max_json_depth, [&](std::string_view key, json::Value& value) {
    const std::string name(key);
    if (!keys.insert(name).second) {
      repeated.push_back(name);
      return;
    }
    const bool is_text = value.kind() == json::Kind::string;
    if (!is_text) as_json.push_back(name);
    source.metadata.emplace_back(name, is_text ? std::string(value.string()) : json::copied(value));
  });
  if (!as_json.empty()) {
    source.losses.push_back("that the metadata " + list_names(as_json) +
                            " are more than text: properties hold them as JSON");
  }
  if (!repeated.empty())
    source.losses.push_back("the metadata " + list_names(repeated) + ", whose keys are taken");
  return source;
}

std::optional<std::uint64_t> take_training_steps(OnnxMetadata& metadata) {
  if (metadata.empty() || metadata.back().first != kTrainingSteps) return std::nullopt;
  const std::string& text = metadata.back().second;
  const auto steps = whole_number<std::uint64_t>(text);
  // Another spelling would come back as this one.
  if (!steps || std::to_string(*steps) != text) return std::nullopt;
  metadata.pop_back();
  return steps;
}

}  // namespace thalia::formats::onnx
