// Metadata of these formats give their files back byte for byte. Other metadata become a
// config: they are one, or they are put into one of kind "thalia".
#include "formats/gptrs/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/gptrs/layout.h"
#include "formats/gptrs/source_metadata.h"
#include "formats/source/list_names.h"
#include "formats/source/lost_metadata.h"
#include "formats/source/piece_sink.h"
#include "json/writer.h"
#include "thalia/files.h"

namespace thalia::formats::gptrs {
namespace {

// Writing a file that was planned.
//
// Index first, then payloads, straight through: all places are known from types and shapes, so
// nothing is kept or written twice, and one piece of one tensor is in memory.

/// Hands on the payload of the i-th of `tensors` planned ones, in the order of the file.
using EmitPlanned = std::function<void(std::size_t i, const PieceSink& sink)>;

/// Atomically. @throws IoError, CancelledError, what `emit` throws. @return bytes of the file.
std::uint64_t write_planned(const std::filesystem::path& path, const GptrsPlannedFile& plan,
                            std::size_t tensors, const OutputOptions& output, const Work& work,
                            const EmitPlanned& emit);

void check_config_argument(std::string_view config_text) {
  try {
    static_cast<void>(parse_gptrs_config(config_text));
  } catch (const FormatError& error) {
    ErrorContext context = error.context();
    throw UsageError(ErrorCode::bad_argument, error.message(), std::move(context));
  }
}

std::uint64_t save_sorted(GptrsFormat format, const std::filesystem::path& path,
                          const std::vector<GptrsParam>& params, std::string_view config_text,
                          const GptrsWriteOptions& options) {
  std::vector<std::size_t> order(params.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // By bytes: std::string compares them as unsigned ones.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return params[a].name < params[b].name; });
  std::vector<GptrsPlannedTensor> planned;
  for (const std::size_t i : order) {
    const GptrsParam& param = params[i];
    if (!param.tensor.is_dense()) {
      throw UsageError(ErrorCode::bad_argument, "only dense tensors are saved in this format",
                       {.tensor = printable(param.name)});
    }
    planned.push_back({.name = param.name,
                       .dtype = param.tensor.dtype(),
                       .shape = param.tensor.shape(),
                       .requires_grad = param.requires_grad ? std::uint8_t{1} : std::uint8_t{0},
                       .store_id = options.store_ids});
  }
  const GptrsPlannedFile plan = plan_file(format, planned, config_text, options.half_types);
  return write_planned(
      path, plan, planned.size(), options.output, options.work,
      [&](std::size_t i, const PieceSink& sink) { sink(params[order[i]].tensor.bytes()); });
}

std::uint64_t write_planned(const std::filesystem::path& path, const GptrsPlannedFile& plan,
                            std::size_t tensors, const OutputOptions& output, const Work& work,
                            const EmitPlanned& emit) {
  OutputFile out(path, output, work.cancel);
  out.write(as_byte_span(plan.start));
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < tensors; ++i) {
    emit(i, [&](ByteSpan piece) {
      out.write(piece);
      done += piece.size();
      if (work.progress) work.progress(done, plan.data_bytes);
    });
  }
  // Payloads come from callers who have checked their lengths; offsets in the index rely on it.
  assert(done == plan.data_bytes);
  out.commit();
  return plan.start.size() + done;
}

}  // namespace
}  // namespace thalia::formats::gptrs

namespace thalia {

std::uint64_t save_gptrs_checkpoint(const std::filesystem::path& path,
                                    const std::vector<GptrsParam>& tensors,
                                    std::string_view config_text,
                                    const GptrsWriteOptions& options) {
  return with_path(path.native(), [&] {
    formats::gptrs::check_config_argument(config_text);
    return formats::gptrs::save_sorted(GptrsFormat::checkpoint, path, tensors, config_text,
                                       options);
  });
}

std::uint64_t save_gptrs_archive(const std::filesystem::path& path,
                                 const std::vector<GptrsParam>& tensors,
                                 const GptrsWriteOptions& options) {
  return with_path(path.native(), [&] {
    return formats::gptrs::save_sorted(GptrsFormat::archive, path, tensors, {}, options);
  });
}

}  // namespace thalia

namespace thalia::formats::gptrs {
namespace {

// Where each tensor goes: in the order of the names' bytes, or first those that the source metadata
// list, in its order.
std::vector<std::size_t> file_order(const std::vector<SinkTensor>& tensors,
                                    const GptrsSourceMetadata& source) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (const std::string& name : source.order) places.emplace(name, places.size());
  const auto place = [&](std::size_t i) {
    const auto found = places.find(tensors[i].name);
    return found == places.end() ? places.size() : found->second;
  };
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::size_t first = place(a), second = place(b);
    return first != second ? first < second : tensors[a].name < tensors[b].name;
  });
  return order;
}

bool is_config(std::string_view metadata, const ReadLimits& limits) {
  try {
    static_cast<void>(parse_gptrs_config(metadata, limits));
    return true;
  } catch (const FormatError&) {
    return false;
  }
}

std::vector<std::string> keys_of(const FoundSourceMetadata& found) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : found.rest) keys.push_back(key);
  return keys;
}

// The config of a checkpoint. Names what it leaves out of the metadata.
std::string config_for(const FoundSourceMetadata& found, std::string_view metadata,
                       const ReadLimits& limits, std::vector<std::string>& lost_keys) {
  if (found.source && found.source->format == GptrsFormat::checkpoint) {
    lost_keys = keys_of(found);
    return found.source->config;
  }
  if (is_config(metadata, limits)) return std::string(metadata);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("kind", "thalia").key("config").begin_object();
  for (const auto& [key, value] : found.rest) json.key(key).raw(value);
  json.end_object().end_object();
  return text;
}

GptrsPlannedTensor planned(const SinkTensor& tensor, const GptrsSourceMetadata& source,
                           const std::unordered_set<std::string_view>& ids) {
  if (tensor.layout.encoding != Encoding::dense) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "the format has dense tensors only",
                           {.field = "encoding", .tensor = printable(tensor.name)});
  }
  const auto flag = source.requires_grad.find(tensor.name);
  return {.name = tensor.name,
          .dtype = tensor.layout.dtype,
          .shape = tensor.layout.shape.rank() == 0 ? Shape({1}) : tensor.layout.shape,
          .requires_grad = flag == source.requires_grad.end() ? std::uint8_t{0} : flag->second,
          .store_id = source.all_ids.value_or(ids.contains(tensor.name))};
}

// All that can be refused is, and what is left out is announced, before the output is created.
struct SinkPlan {
  std::vector<std::size_t> order;
  GptrsPlannedFile file;
  std::vector<std::string> losses;
};

SinkPlan plan_sink(GptrsFormat format, const SinkInput& input, const SinkOptions& options) {
  const FoundSourceMetadata found = source_metadata_from_json(input.metadata, options.limits);
  const GptrsSourceMetadata source = found.source.value_or(GptrsSourceMetadata{});
  SinkPlan plan;
  std::vector<std::string> lost_keys, scalars;
  std::string config;
  if (format == GptrsFormat::checkpoint) {
    config = config_for(found, input.metadata, options.limits, lost_keys);
  } else {
    lost_keys = keys_of(found);
    if (found.source && source.format == GptrsFormat::checkpoint)
      plan.losses.emplace_back("the model's config and the ids: an archive has none");
  }
  plan.order = file_order(input.tensors, source);
  const std::unordered_set<std::string_view> ids(source.ids_of.begin(), source.ids_of.end());
  std::vector<GptrsPlannedTensor> tensors;
  for (const std::size_t i : plan.order) {
    tensors.push_back(planned(input.tensors[i], source, ids));
    if (input.tensors[i].layout.shape.rank() == 0) scalars.push_back(input.tensors[i].name);
  }
  plan.file = plan_file(format, tensors, config, options.all_types);
  add_lost_metadata(plan.losses, input, lost_keys);
  if (!scalars.empty()) {
    plan.losses.push_back(
        fmt::format("scalars become tensors of one dimension: {}", list_names(scalars)));
  }
  return plan;
}

std::uint64_t write_either(GptrsFormat format, const std::filesystem::path& output,
                           const SinkInput& input, const SinkOptions& options,
                           const EmitPayload& emit) {
  const SinkPlan plan =
      with_path(output.native(), [&] { return plan_sink(format, input, options); });
  if (options.announce) options.announce(plan.losses);
  return write_planned(output, plan.file, plan.order.size(), options.save.output, options.save.work,
                       [&](std::size_t i, const PieceSink& sink) { emit(plan.order[i], sink); });
}

}  // namespace
}  // namespace thalia::formats::gptrs

namespace thalia::formats {

std::uint64_t write_gptrs(const std::filesystem::path& output, const SinkInput& input,
                          const SinkOptions& options, const EmitPayload& emit) {
  return gptrs::write_either(GptrsFormat::checkpoint, output, input, options, emit);
}

bool is_gptrs_made_of(const SinkInput& input, std::string_view metadata, unsigned max_json_depth) {
  const ReadLimits limits{.max_json_depth = max_json_depth};
  std::vector<std::string> lost_keys;
  const gptrs::FoundSourceMetadata found = gptrs::source_metadata_from_json(input.metadata, limits);
  const std::string config = gptrs::config_for(found, input.metadata, limits, lost_keys);
  return gptrs::source_metadata_to_json({.config = config}) == metadata;
}

std::uint64_t write_gptrsten(const std::filesystem::path& output, const SinkInput& input,
                             const SinkOptions& options, const EmitPayload& emit) {
  return gptrs::write_either(GptrsFormat::archive, output, input, options, emit);
}

}  // namespace thalia::formats
