#include "formats/loom/source_metadata.h"

#include <utility>

#include "base/utf8.h"
#include "formats/loom/go_json.h"
#include "formats/loom/go_values.h"
#include "formats/loom/spec_reader.h"
#include "formats/loom/spec_writer.h"
#include "formats/source/metadata_member.h"
#include "thalia/error.h"

namespace thalia::formats::loom {
namespace {

// @throws FormatError for what is no description of a network.
Document read_document(json::Value& value, const ReadLimits& limits, std::uint64_t stored_bytes) {
  Document document;
  SpecReader reader(SpecKind::header, limits, stored_bytes);
  bool has_network = false;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    if (key == "network" && go_object(member, key)) {
      has_network = true;
      member.for_each_member([&](std::string_view name, json::Value& inner) {
        reader.network_member(name, inner, document.network);
      });
    } else if (key == "transformer" && go_object(member, key)) {
      reader.transformer(member, document.network.transformer.emplace());
    } else if (key == "blobs") {
      reader.blobs(member, document.blobs);
    }
  });
  if (!has_network) throw FormatError(ErrorCode::bad_value, "no network");
  static_cast<void>(grid_cells(document.network, limits, stored_bytes));
  for (const LoomLayer& layer : document.network.layers)
    static_cast<void>(grid_place(document.network, layer));
  return document;
}

}  // namespace

std::string_view kind_name(LoomFileKind kind) noexcept {
  return kind == LoomFileKind::entity ? "entity" : "loom-json";
}

std::string source_metadata_to_json(LoomFileKind kind, const Document& document) {
  std::string text;
  GoJson json(text, false);
  json.begin_object().key(kFormatKey).text(kind_name(kind));
  json.key(kind_name(kind)).begin_object().key("network");
  write_network(json, document.network, {});
  if (document.network.transformer) {
    json.key("transformer");
    write_transformer(json, *document.network.transformer);
  }
  json.key("blobs");
  write_blobs(json, document.blobs, false);
  json.end_object().end_object();
  return text;
}

std::optional<LoomSourceMetadata> source_metadata_from_json(std::string_view metadata,
                                                            const ReadLimits& limits,
                                                            std::vector<std::string>& other_keys) {
  std::optional<LoomSourceMetadata> source;
  SourceMetadataPlace own;
  for (const LoomFileKind kind : {LoomFileKind::entity, LoomFileKind::checkpoint}) {
    if (own) break;
    own = find_source_metadata(
        metadata, kind_name(kind), limits.max_json_depth, [&](json::Value& object) {
          try {
            source = LoomSourceMetadata{.kind = kind,
                                        .document = read_document(object, limits, metadata.size())};
          } catch (const FormatError& error) {
            if (error.code() == ErrorCode::bad_json) throw;
          }
          return source.has_value();
        });
  }
  visit_others(metadata, own, limits.max_json_depth,
               [&](std::string_view key, json::Value&) { other_keys.push_back(printable(key)); });
  return source;
}

}  // namespace thalia::formats::loom
