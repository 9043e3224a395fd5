// First everything is planned and checked, then losses are announced, then the files are written:
// what a plan needs is in the input but for the payloads.
#include "formats/safetensors/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/index.h"
#include "formats/safetensors/kept_header.h"
#include "formats/safetensors/model_writer.h"
#include "formats/safetensors/parse.h"
#include "formats/safetensors/place.h"
#include "formats/safetensors/shard_plan.h"
#include "formats/safetensors/source_metadata.h"
#include "formats/safetensors/writer.h"
#include "formats/source/list_names.h"
#include "formats/source/lost_metadata.h"
#include "io/folder/folder.h"
#include "json/reader.h"
#include "thalia/error.h"
#include "thalia/tensor.h"

namespace thalia::formats {
namespace {

using safetensors::ModelPlan;
using safetensors::SourceModel;

std::vector<NamedArray> checked_tensors(const SinkInput& input) {
  std::vector<NamedArray> tensors;
  tensors.reserve(input.tensors.size());
  for (const SinkTensor& tensor : input.tensors) {
    if (tensor.layout.encoding != Encoding::dense) {
      throw UnsupportedError(ErrorCode::unsupported_feature, "safetensors has no such encoding",
                             {.field = "encoding",
                              .tensor = printable(tensor.name),
                              .value = std::string(encoding_name(tensor.layout.encoding)),
                              .bound = "dense"});
    }
    if (tensor.name == kSafetensorsMetadataKey) {
      throw UnsupportedError(ErrorCode::unsupported_feature,
                             "safetensors keeps this name for itself",
                             {.field = "name", .tensor = printable(tensor.name)});
    }
    tensors.push_back({.name = tensor.name,
                       .dtype = tensor.layout.dtype,
                       .shape = tensor.layout.shape,
                       .bytes = {}});
  }
  return tensors;
}

using Keys = std::unordered_set<std::string>;

Keys keys_of(const std::optional<SafetensorsMetadata>& texts) {
  Keys keys;
  if (texts)
    for (const auto& [key, text] : *texts) keys.insert(key);
  return keys;
}

// Those whose keys are not there.
void add_texts(const SafetensorsMetadata& added, std::optional<SafetensorsMetadata>& texts) {
  Keys there = keys_of(texts);
  for (const auto& [key, text] : added) {
    if (!there.insert(key).second) continue;
    if (!texts) texts.emplace();
    texts->emplace_back(key, text);
  }
}

// Texts that users have put beside the source metadata, or in metadata of no format's, go into
// `__metadata__`; all else is lost. Where another format tells its name, that is no text of a user.
void take_texts(SafetensorsSourceMetadata& source) {
  Keys lost(source.other_keys.begin(), source.other_keys.end());
  Keys there = keys_of(source.metadata);
  SafetensorsMetadata taken;
  for (const auto& [key, text] : source.texts) {
    const bool is_format_name = key == "format" && lost.contains(text);
    if (there.contains(key) && !is_format_name) continue;
    lost.erase(key);
    if (is_format_name) continue;
    there.insert(key);
    taken.emplace_back(key, text);
  }
  std::erase_if(source.other_keys, [&](const std::string& key) { return !lost.contains(key); });
  add_texts(taken, source.metadata);
  if (!source.model) return;
  for (auto& file : source.model->files) add_texts(taken, file.metadata);
}

// One file has one set of texts: of a model's files the first that has a key says what it is.
void join_texts(SafetensorsSourceMetadata& source, std::vector<std::string>& losses) {
  std::vector<std::string> differing;
  std::unordered_map<std::string, std::size_t> places;
  if (source.metadata)
    for (std::size_t i = 0; i < source.metadata->size(); ++i)
      places.emplace((*source.metadata)[i].first, i);
  for (const auto& file : source.model->files) {
    for (const auto& [key, text] : file.metadata.value_or(SafetensorsMetadata())) {
      if (!source.metadata) source.metadata.emplace();
      const auto [there, fresh] = places.emplace(key, source.metadata->size());
      if (fresh) {
        source.metadata->emplace_back(key, text);
      } else if ((*source.metadata)[there->second].second != text) {
        differing.push_back(key);
      }
    }
  }
  std::ranges::sort(differing);
  differing.erase(std::unique(differing.begin(), differing.end()), differing.end());
  if (!differing.empty())
    losses.push_back(fmt::format("texts that differ between files: {}", list_names(differing)));
}

// Names a folder, or the index in one, rather than a file.
bool is_model_path(const std::filesystem::path& path) {
  return path.filename().empty() ||
         safetensors::index_prefix(path.filename().native(), ShardKind::safetensors) ||
         io::Folder::find(path).has_value();
}

ModelPlan plan_output(const std::filesystem::path& output, bool is_model,
                      const std::vector<NamedArray>& tensors, SafetensorsSourceMetadata& source,
                      const SinkOptions& options, std::vector<std::string>& losses) {
  const safetensors::PlanOptions plan_options{
      .max_shard_bytes = options.shard_bytes.value_or(std::numeric_limits<std::uint64_t>::max()),
      .max_header_bytes = options.max_safetensors_header_bytes,
      .limits = options.limits};
  if (is_model && !options.shard_bytes) {
    if (auto kept = safetensors::plan_kept_model(output, tensors, source, plan_options))
      return std::move(*kept);
  }
  if (source.model) join_texts(source, losses);
  ModelPlan plan;
  if (is_model) {
    plan = safetensors::plan_model(output, tensors, source.metadata, plan_options);
    if (plan.index_text) return plan;
  } else {
    plan = {.folder = {}, .prefix = {}, .path = output, .files = {{}}};
  }
  with_path(output.native(), [&] {
    plan.files[0].header =
        safetensors::kept_or_new_header(source.header, tensors, source.metadata,
                                        options.max_safetensors_header_bytes, options.limits);
  });
  plan.data_bytes = plan.files[0].header.data_bytes;
  return plan;
}

// Whether the files have one set of texts, and headers and an index as they are written anew.
bool is_plain_model(const SourceModel& model) {
  const ModelIndex index = safetensors::parse_index(model.index_text, {}, UINT64_MAX);
  std::vector<std::pair<std::string, std::string>> weights;
  for (const auto& tensor : index.tensors)
    weights.emplace_back(tensor.name, index.files[tensor.file]);
  return model.files.empty() &&
         safetensors::write_index(std::move(weights), index.total_size.value_or(0)) ==
             model.index_text;
}

// Whether a model's index and files say more than what is where.
bool says_more(const SourceModel& model, unsigned max_json_depth) {
  bool more =
      std::ranges::any_of(model.files, [](const auto& file) { return file.metadata.has_value(); });
  const auto see = [&](std::string_view key, json::Value& value) {
    if (key == "weight_map") return;
    if (key == "metadata" && value.kind() == json::Kind::object)
      value.for_each_member(
          [&](std::string_view own, json::Value&) { more |= own != "total_size"; });
    else
      more |= key != "metadata" || value.kind() != json::Kind::null;
  };
  json::walk_object(model.index_text, max_json_depth, see, json::Dialect::python);
  return more;
}

}  // namespace

std::uint64_t write_safetensors_tensors(const std::filesystem::path& output, const SinkInput& input,
                                        const SinkOptions& options, const EmitPayload& emit) {
  const std::vector<NamedArray> tensors = checked_tensors(input);
  std::vector<std::string> losses;
  SafetensorsSourceMetadata source =
      source_metadata_from_json(input.metadata, options.limits.max_json_depth);
  take_texts(source);
  add_lost_metadata(losses, input, source.other_keys);
  const OutputOptions& saved = options.save.output;
  std::optional<io::HeldFolder> folder;
  if (options.shard_bytes || is_model_path(output)) {
    folder.emplace(safetensors::model_target(output, ShardKind::safetensors).folder,
                   saved.durability, options.save.work.cancel);
  }
  const ModelPlan plan = plan_output(output, folder.has_value(), tensors, source, options, losses);
  if (options.announce) options.announce(losses);
  safetensors::Written written{.total = plan.data_bytes};
  const auto write = [&](const std::filesystem::path& path, const safetensors::PlannedFile& file,
                         const OutputOptions& own) {
    return safetensors::write_file(path, file.header, own, options.save.work, written, emit);
  };
  // Without a folder, it is a file like any other: its neighbours are not of its model.
  if (!folder) return write(plan.path, plan.files[0], saved);
  const std::uint64_t bytes = safetensors::write_model(
      *folder, plan, output, saved, options.save.work.cancel, options.sources, write);
  const bool is_in_output = folder->folder().path() == output;
  if (!is_in_output && options.placed) options.placed(output.parent_path() / plan.path.filename());
  return bytes;
}

bool is_safetensors_made_of(const SinkInput& input, std::string_view metadata,
                            unsigned max_json_depth) {
  const SafetensorsSourceMetadata found = source_metadata_from_json(metadata, max_json_depth);
  SafetensorsSourceMetadata written = source_metadata_from_json(input.metadata, max_json_depth);
  take_texts(written);
  return found.metadata == written.metadata && found.header.empty() &&
         (!found.model || is_plain_model(*found.model));
}

bool is_safetensors_note_only(std::string_view metadata, unsigned max_json_depth) {
  const SafetensorsSourceMetadata found = source_metadata_from_json(metadata, max_json_depth);
  return found.found && found.other_keys.empty() && !found.metadata &&
         (!found.model || !says_more(*found.model, max_json_depth));
}

}  // namespace thalia::formats
