#include "interop/loom/origin.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "interop/loom/go_json.h"
#include "interop/loom/go_values.h"
#include "interop/loom/spec_reader.h"
#include "interop/loom/spec_writer.h"
#include "json/reader.h"
#include "thalia/error.h"

namespace thalia::interop::loom {
namespace {

constexpr std::string_view kFormatMember = "format";

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

std::string_view kind_name(FileKind kind) noexcept {
  return kind == FileKind::entity ? "entity" : "loom-json";
}

std::string origin_to_json(FileKind kind, const Document& document) {
  std::string text;
  GoJson json(text, false);
  json.begin_object().key(kFormatMember).text(kind_name(kind));
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

std::optional<Origin> origin_from_json(std::string_view metadata, const ReadLimits& limits,
                                       std::vector<std::string>& other_keys) {
  std::optional<Origin> origin;
  if (metadata.empty()) return origin;
  std::string format;
  // A text is walked twice: a description counts only where the format says so.
  json::walk_object(metadata, limits.max_json_depth, [&](std::string_view key, json::Value& value) {
    if (key == kFormatMember && value.kind() == json::Kind::string) format = value.string();
  });
  const bool known =
      format == kind_name(FileKind::entity) || format == kind_name(FileKind::checkpoint);
  json::walk_object(metadata, limits.max_json_depth, [&](std::string_view key, json::Value& value) {
    if (known && key == kFormatMember) return;
    if (!known || key != format || origin) {
      other_keys.push_back(printable(key));
      return;
    }
    try {
      if (value.kind() != json::Kind::object) throw FormatError(ErrorCode::bad_value, "no object");
      const bool entity = format == kind_name(FileKind::entity);
      origin = Origin{.kind = entity ? FileKind::entity : FileKind::checkpoint,
                      .document = read_document(value, limits, metadata.size())};
    } catch (const FormatError& error) {
      if (error.code() == ErrorCode::bad_json) throw;
      other_keys.push_back(printable(key));
    }
  });
  return origin;
}

}  // namespace thalia::interop::loom
