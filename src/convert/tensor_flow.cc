// One tensor at a time: what lies in the input's mapping is written from there, what has to be
// decoded or converted is so just before it is written. All that the target cannot hold is known,
// and told, before the output is created.
#include "convert/tensor_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "convert/embedded_metadata.h"
#include "format/constants.h"
#include "format/payload.h"
#include "formats/source/legal_elements.h"
#include "formats/source/region_ids.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/types.h"
#include "thalia/writer.h"

namespace thalia::formats {
namespace {

// Its role is what its name tells.
TensorSpec spec_of_source(const AnyTensor& tensor) {
  return TensorSpec::of(tensor.name, tensor.layout,
                        role_of_name(tensor.name, tensor.layout.shape.rank()));
}

// Under its own name and role, if it has them of a file with regions.
TensorSpec spec_in_region(const AnyTensor& tensor, const std::optional<RegionPlace>& place) {
  return place ? TensorSpec::of(place->name, tensor.layout, place->role) : spec_of_source(tensor);
}

TensorLayout dense(TensorLayout layout) {
  layout.encoding = Encoding::dense;
  layout.nnz = 0;
  layout.wide_indices = false;
  return layout;
}

Tensor with_all_elements(const OpenedFile& source, std::size_t i, const ReadLimits& limits) {
  const Tensor tensor = source.read(i);
  io::MemoryBudget budget(limits, tensor.bytes().size());
  return state::counted_dense(budget, "payload", tensor);
}

// Hands on tensor i as `to` asks for it.
void pass_on(const OpenedFile& source, std::size_t i, const TensorLayout& to,
             PrecisionRun& precision, const ReadLimits& limits, const PieceSink& sink) {
  const AnyTensor& tensor = source.facts().tensors[i];
  TensorSpec spec = spec_of_source(tensor);
  const auto emit = [&](ByteSpan piece) {
    if (to.dtype == spec.dtype) {
      sink(piece);
    } else {
      precision.convert(tensor.name, spec, piece, to.dtype, sink);
    }
  };
  if (is_sparse(spec.encoding)) {
    // The arrays of a sparse payload are converted as a whole.
    const bool keeps = to.encoding == spec.encoding;
    const Tensor whole = keeps ? source.read(i) : with_all_elements(source, i, limits);
    spec = TensorSpec::of(spec.name, whole.layout(), spec.role);
    return emit(whole.bytes());
  }
  source.visit(i, emit);
}

// Errors that are about a tensor name it.
template <typename Call>
void naming_tensor(const AnyTensor& tensor, const Call& call) {
  try {
    call();
  } catch (Error& error) {
    error.add_tensor(printable(tensor.name));
    throw;
  }
}

void tell_losses(const ConvertOptions& options, std::vector<std::string> more,
                 ConvertResult& result) {
  result.losses.insert(result.losses.end(), std::make_move_iterator(more.begin()),
                       std::make_move_iterator(more.end()));
  if (options.on_losses && !result.losses.empty()) options.on_losses(result.losses);
}

void check_name(const AnyTensor& tensor, const path& input) {
  // Checked here for a message that names the input.
  if (tensor.name.size() <= format::kMaxNameLength) return;
  throw UnsupportedError(ErrorCode::unsupported_feature, "the name is too long for .thalia",
                         {.path = input.string(),
                          .tensor = printable(tensor.name),
                          .value = fmt::format("{} bytes", tensor.name.size()),
                          .bound = std::to_string(format::kMaxNameLength)});
}

// A tensor of few bytes may claim any shape.
void check_whole(const OpenedFacts& facts, std::size_t i, const SinkTensor& tensor,
                 const ReadLimits& limits) {
  try {
    io::MemoryBudget(limits, facts.tensors[i].stored_bytes.value_or(facts.file_bytes))
        .take("payload", format::payload_length(tensor.layout).value_or(UINT64_MAX));
  } catch (Error& error) {
    error.add_tensor(printable(tensor.name));
    throw;
  }
}

void refuse_sparse(const SinkTensor& tensor, const FormatRow& to) {
  throw UnsupportedError(ErrorCode::unsupported_feature,
                         fmt::format("{} has no such encoding", to.name),
                         {.field = "encoding",
                          .tensor = printable(tensor.name),
                          .value = std::string(encoding_name(tensor.layout.encoding)),
                          .bound = "dense, or the option dense (--dense)"});
}

// The text of the config.json in the input's folder; nullopt if there is none. A copy: the file may
// change under a mapping.
std::optional<std::string> model_config(const path& input, const InputOptions& options) {
  const path config = folder_of(input) / "config.json";
  if (!is_file(config)) return std::nullopt;
  const auto file = io::FileBytes::open(config, options.access);
  const std::uint64_t size = file->bytes().size();
  return with_path(config.native(), [&] {
    io::check_json_length("config.json", size, options.limits, size);
    const ByteSpan bytes = file->touched(0, size);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

// What a sink says of a tensor is about the input: nobody has made a mistake with an argument.
template <typename Write>
std::uint64_t reported_of_input(const path& output, const Write& write) {
  try {
    return write();
  } catch (UnsupportedError& error) {
    if (!error.context().tensor.empty()) error.replace_path(output.string(), {});
    throw;
  } catch (const UsageError& error) {
    if (error.context().tensor.empty()) throw;
    UnsupportedError of_input(ErrorCode::unsupported_feature, error.message(), error.context());
    of_input.replace_path(output.string(), {});
    throw of_input;
  }
}

}  // namespace

OpenOptions source_options(const ConvertOptions& options) {
  OpenOptions source{.chain = options.chain,
                     .dequantize = options.dequantize,
                     .max_safetensors_header_bytes = options.max_safetensors_header_bytes};
  source.chain.read.work.cancel = options.save.work.cancel;
  return source;
}

SinkOptions sink_options(const ConvertOptions& options) {
  return {.save = options.save,
          .limits = options.chain.read.input.limits,
          .max_safetensors_header_bytes = options.max_safetensors_header_bytes,
          .shard_bytes = options.shard_bytes,
          .all_types = options.all_types,
          .announce = {}};
}

ChooseDType choose_by_name(const OpenedFile& source, const RegionGrouping& grouping) {
  return [&source, grouping](std::size_t i, PrecisionRun& precision) {
    const AnyTensor& tensor = source.facts().tensors[i];
    if (const auto place = source.place(i))
      return precision.choose(place->region, spec_in_region(tensor, place));
    return precision.choose(grouping, spec_of_source(tensor));
  };
}

void flow_to_thalia(const OpenedFile& source, const FormatRow& from, const path& input,
                    const path& output, const ConvertOptions& options, ConvertResult& result) {
  // A tensor that is decoded or converted on its way.
  struct Streamed {
    std::uint32_t region;
    TensorId id;
    std::size_t position;
    TensorLayout layout;
  };
  const OpenedFacts& facts = source.facts();
  const unsigned depth = options.chain.read.input.limits.max_json_depth;
  for (const AnyTensor& tensor : facts.tensors) check_name(tensor, input);
  std::vector<std::string> losses = facts.losses;
  std::erase_if(losses, [&](const std::string& loss) {
    return std::ranges::find(facts.place_losses, loss) != facts.place_losses.end();
  });
  tell_losses(options, std::move(losses), result);
  PrecisionRun precision(options.precision, result);
  std::vector<Tensor> kept;  // what the writer borrows until it is done
  std::vector<Streamed> streamed;
  Writer writer(output, options.save);
  const EmbeddedMetadata metadata = restored_metadata(facts, from, depth);
  if (metadata.training_steps) writer.set_training_steps(*metadata.training_steps);
  RegionIds regions;
  for (std::size_t i = 0; i < facts.tensors.size(); ++i) {
    const AnyTensor& tensor = facts.tensors[i];
    const auto place = source.place(i);
    const std::string region_name =
        place ? place->region : region_for_name(tensor.name, options.grouping);
    const RegionId region = regions.of(writer, region_name);
    TensorSpec spec = spec_in_region(tensor, place);
    spec.dtype = precision.choose(region_name, spec);
    if (spec.dtype == tensor.layout.dtype && source.is_mapped(i)) {
      kept.push_back(source.read(i));
      naming_tensor(tensor, [&] { check_legal(spec.layout(), kept.back().bytes()); });
      writer.add_tensor(region, std::move(spec), kept.back().bytes());
      continue;
    }
    const TensorLayout layout = spec.layout();
    streamed.push_back({.region = region.value,
                        .id = writer.add_tensor(region, std::move(spec)),
                        .position = i,
                        .layout = layout});
  }
  precision.check_effect();
  writer.set_metadata(precision.note_in(metadata.metadata, depth));
  // Tensors are written in the order of the output. A compressing writer takes them in no other,
  // and regions may have been declared in between.
  std::ranges::stable_sort(streamed, {}, &Streamed::region);
  for (const Streamed& one : streamed) {
    LegalElements elements(one.layout);
    pass_on(source, one.position, one.layout, precision, options.chain.read.input.limits,
            [&](ByteSpan piece) {
              if (piece.empty()) return;
              naming_tensor(facts.tensors[one.position], [&] { elements.pass(piece); });
              writer.write(one.id, piece);
            });
  }
  result.input_bytes = facts.file_bytes;
  result.tensors = static_cast<std::uint32_t>(facts.tensors.size());
  result.output_bytes = writer.commit().file_bytes;
}

void flow_to_format(const OpenedFile& source, const FormatRow& from, const ChooseDType& choose,
                    const path& input_path, const path& output, const FormatRow& to,
                    const ConvertOptions& options, ConvertResult& result) {
  const OpenedFacts& facts = source.facts();
  const ReadLimits& limits = options.chain.read.input.limits;
  PrecisionRun precision(options.precision, result);
  SinkInput input;
  for (std::size_t i = 0; i < facts.tensors.size(); ++i) {
    SinkTensor tensor{.name = facts.tensors[i].name, .layout = facts.tensors[i].layout};
    tensor.layout.dtype = choose(i, precision);
    if (is_sparse(tensor.layout.encoding)) {
      if (!options.dense && !to.holds_sparse) refuse_sparse(tensor, to);
      if (options.dense) tensor.layout = dense(tensor.layout);
    }
    if (to.takes_whole) check_whole(facts, i, tensor, limits);
    input.tensors.push_back(std::move(tensor));
    const std::string& type = facts.tensors[i].type;
    if (!type.empty() && std::ranges::find(input.types, type) == input.types.end())
      input.types.push_back(type);
  }
  precision.check_effect();
  // A file of the same format is to say what this one says.
  EmbeddedMetadata metadata = from.format == to.format
                                  ? own_metadata(facts)
                                  : restored_metadata(facts, from, limits.max_json_depth);
  metadata.metadata = precision.note_in(std::move(metadata.metadata), limits.max_json_depth);
  if (to.holds_texts) metadata = packed_metadata(metadata, to.name, limits.max_json_depth);
  input.is_note_only = is_note_only(metadata.metadata, limits.max_json_depth);
  input.metadata = std::move(metadata.metadata);
  input.training_steps = metadata.training_steps;
  if (to.takes_config) input.model_config = model_config(input_path, options.chain.read.input);
  SinkOptions sink = sink_options(options);
  sink.sources = source.files();
  if (options.base) sink.base = {*options.base, options.chain};
  result.losses.insert(result.losses.end(), facts.losses.begin(), facts.losses.end());
  sink.announce = [&](const std::vector<std::string>& losses) {
    tell_losses(options, losses, result);
  };
  sink.placed = [&](const path& placed) { result.output = placed; };
  result.input_bytes = facts.file_bytes;
  result.tensors = static_cast<std::uint32_t>(facts.tensors.size());
  result.output_bytes = reported_of_input(output, [&] {
    return to.write(output, input, sink, [&](std::size_t i, const PieceSink& piece_sink) {
      const TensorLayout& layout = input.tensors[i].layout;
      if (from.format != FileFormat::thalia)
        return pass_on(source, i, layout, precision, limits, piece_sink);
      LegalElements elements(layout);
      pass_on(source, i, layout, precision, limits, [&](ByteSpan piece) {
        naming_tensor(facts.tensors[i], [&] { elements.pass(piece); });
        piece_sink(piece);
      });
    });
  });
}

}  // namespace thalia::formats
