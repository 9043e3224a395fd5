// thalia info: what a file says about itself. Header, directory and metadata are read, and no
// payload; so it is fast for any size, and cannot tell whether payloads are whole.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/dtype_totals.h"
#include "cli/print/file_facts.h"
#include "cli/print/growth_text.h"
#include "cli/print/json_result.h"
#include "cli/print/json_text.h"
#include "cli/print/original.h"
#include "cli/print/print.h"
#include "cli/tensor/file_format.h"
#include "cli/tensor/packed_file.h"
#include "cli/terminal/escape.h"
#include "thalia/error.h"
#include "thalia/growth_history.h"
#include "thalia/metadata_file.h"
#include "thalia/paths.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"
#include "thalia/text.h"
#include "thalia/wrap.h"

namespace thalia::cli {
namespace {

struct InfoArguments {
  std::string file;
};

std::string list(const std::vector<std::string_view>& words) {
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string codec_text(const FileTotals& totals) {
  std::string text = list(codec_names(totals));
  if (totals.chunked > 0) {
    text += fmt::format(" ({} of {} tensors compressed; {} stored for {}, {})",
                        grouped(totals.chunked), grouped(totals.raw + totals.chunked),
                        human_bytes(totals.stored_bytes), human_bytes(totals.logical_bytes),
                        ratio_text(totals.logical_bytes, totals.stored_bytes));
  }
  return text;
}

std::string checksum_text(const FileHeader& header, const Reader& reader) {
  std::string text(checksum_name(header));
  if (has_tree(header)) {
    text += fmt::format(" of {} blocks, {} leaves",
                        human_bytes(std::uint64_t{1} << header.block_log2), leaf_name(header));
  }
  if (header.checksum != ChecksumType::none) text += "; " + hex(reader.closing_checksum().bytes);
  return text;
}

// nullopt where the metadata have another kind of growth_history: it is then shown as it stands.
std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata) {
  try {
    return parse_growth_history(metadata);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

void print_growth(Output& out, std::string_view metadata) {
  const auto events = growth_events(metadata);
  if (!events) {
    out.line("growth history", escape(json_member(metadata, "growth_history").value_or("")));
  } else if (events->empty()) {
    out.line("growth history", "none");
  } else {
    out.line("growth history", counted(events->size(), "event", "events"));
    print_growth_table(out, *events, "  ");
  }
}

std::string wrapper_text(const WrapperInfo& wrapper) {
  const std::string_view codec = codec_name(wrapper.codec);
  if (!wrapper.has_seek_table) return fmt::format("{} frames without a seek table", codec);
  return fmt::format("{} of {}, with a seek table", counted(wrapper.frames, "frame", "frames"),
                     codec);
}

void json_wrapper(JsonWriter& json, const std::optional<WrapperInfo>& wrapper) {
  json.key("wrapper");
  if (!wrapper) {
    json.null();
    return;
  }
  json.begin_object();
  json.member("codec", codec_name(wrapper->codec));
  json.member("seek_table", wrapper->has_seek_table).key("frames");
  if (wrapper->has_seek_table) {
    json.value(wrapper->frames);
  } else {
    json.null();
  }
  json.end_object();
}

void print_thalia(Output& out, const Reader& reader, std::uint64_t disk_bytes) {
  const FileHeader header = reader.header();
  const FileTotals totals = total(reader);
  const std::string_view metadata = reader.metadata_json();
  out.line("file", escape(reader.path().string()));
  out.line("format", "thalia " + header.version.to_string());
  out.line("on disk", exact_bytes(disk_bytes));
  const auto wrapper = read_wrapper(reader.path());
  if (is_metadata_file(reader.path())) {
    out.line("side file", fmt::format("of {}, without payloads", exact_bytes(reader.file_bytes())));
  } else if (wrapper) {
    out.line("wrapper", wrapper_text(*wrapper));
    out.line("unwrapped", exact_bytes(reader.file_bytes()));
  }
  if (const std::uint64_t debris = reader.debris_bytes(); debris > 0) {
    out.line("", fmt::format("of which {} behind the end: the debris of an interrupted append",
                             exact_bytes(debris)));
  }
  if (const std::uint64_t dead = reader.dead_bytes(); dead > 0)
    out.line(
        "", fmt::format("of which {} dead since an append: compact frees them", exact_bytes(dead)));
  out.line("in memory", exact_bytes(totals.logical_bytes));
  out.line("regions", grouped(reader.region_count()));
  out.line("tensors", grouped(reader.tensor_count()));
  out.line("connections", grouped(reader.connection_count()));
  out.line("dtypes", totals.dtypes.to_string());
  out.line("neurons", grouped(header.total_neurons));
  out.line("synapses", grouped(header.total_synapses));
  out.line("training steps", grouped(header.training_steps));
  out.line("saved", utc_time(header.timestamp));
  out.line("generation", grouped(header.generation));
  out.line("uuid", uuid_text(header.file_uuid));
  out.line("flags", list(flag_names(header.flags)));
  out.line("codecs", codec_text(totals));
  out.line("checksum", checksum_text(header, reader));
  if (totals.quantized != 0) {
    out.line("lossy", fmt::format("{} quantized, generation {} of at most {}",
                                  counted(totals.quantized, "tensor", "tensors"),
                                  totals.lossy_generation, totals.max_lossy_generations));
  }
  out.line("delta base", has_base(header)
                             ? fmt::format("{}, step {}", hex(header.base_checksum.bytes),
                                           grouped(header.base_step))
                             : "none");
  if (const auto base = reader.delta_base())
    out.line("", fmt::format("{}, depth {}", escape(base->path), base->depth));
  print_growth(out, metadata);
  print_metadata(out, metadata);
}

void print_thalia_json(Output& out, const Reader& reader, std::uint64_t disk_bytes) {
  const FileHeader header = reader.header();
  const FileTotals totals = total(reader);
  const std::string_view metadata = reader.metadata_json();
  print_object(out, [&](JsonWriter& json) {
    json.member("path", as_utf8(reader.path().string()));
    json.member("format", "thalia").member("version", header.version.to_string());
    json.member("disk_bytes", disk_bytes).member("file_bytes", reader.file_bytes());
    json.member("side_file", is_metadata_file(reader.path()));
    json_wrapper(json, read_wrapper(reader.path()));
    json.member("dead_bytes", reader.dead_bytes()).member("debris_bytes", reader.debris_bytes());
    json.member("memory_bytes", totals.logical_bytes).member("stored_bytes", totals.stored_bytes);
    json.member("regions", reader.region_count()).member("tensors", reader.tensor_count());
    json.member("connections", reader.connection_count()).key("dtypes");
    totals.dtypes.add_json(json);
    json.member("total_neurons", header.total_neurons);
    json.member("total_synapses", header.total_synapses);
    json.member("training_steps", header.training_steps);
    json.member("timestamp", header.timestamp);
    json.member("generation", header.generation);
    json.member("file_uuid", uuid_text(header.file_uuid));
    add_list(json, "flags", flag_names(header.flags));
    add_list(json, "codecs", codec_names(totals));
    json.key("checksum").begin_object().member("type", checksum_name(header));
    if (has_tree(header)) {
      json.member("leaves", leaf_name(header));
      json.member("block_bytes", std::uint64_t{1} << header.block_log2);
    }
    json.member("digest", hex(reader.closing_checksum().bytes)).end_object();
    if (totals.quantized != 0) {
      json.key("lossy").begin_object().member("quantized_tensors", totals.quantized);
      json.member("lossy_generation", totals.lossy_generation);
      json.member("max_lossy_generations", totals.max_lossy_generations).end_object();
    }
    json.key("delta_base");
    if (has_base(header)) {
      json.begin_object().member("checksum", hex(header.base_checksum.bytes));
      json.member("step", header.base_step);
      if (const auto base = reader.delta_base())
        json.member("path", as_utf8(base->path)).member("depth", base->depth);
      json.end_object();
    } else {
      json.null();
    }
    const auto events = growth_events(metadata);
    json.key("growth_history").raw(events ? growth_history_json(*events) : "null");
    json.key("metadata").raw(metadata.empty() ? "null" : metadata);
  });
}

void print_safetensors(Output& out, const SafetensorsFile& file, const std::string& path,
                       bool as_json) {
  DTypeTotals dtypes;
  std::uint64_t bytes = 0;
  for (const SafetensorsTensor& tensor : file.tensors()) {
    dtypes.add(tensor.dtype, tensor.bytes.size());
    bytes += tensor.bytes.size();
  }
  std::string metadata;
  JsonWriter writer(metadata);
  writer.begin_object();
  for (const auto& [key, value] : file.metadata()) writer.member(key, value);
  writer.end_object();
  if (!as_json) {
    out.line("file", escape(path));
    out.line("format", "safetensors");
    out.line("on disk", exact_bytes(file.file_bytes()));
    out.line("in memory", exact_bytes(bytes));
    out.line("tensors", grouped(file.tensors().size()));
    out.line("dtypes", dtypes.to_string());
    out.line("codecs", "store");
    out.line("checksum", "none");
    print_metadata(out, file.metadata().empty() ? "" : metadata);
    return;
  }
  print_object(out, [&](JsonWriter& json) {
    json.member("path", as_utf8(path)).member("format", "safetensors");
    json.member("disk_bytes", file.file_bytes()).member("file_bytes", file.file_bytes());
    json.member("memory_bytes", bytes).member("tensors", file.tensors().size()).key("dtypes");
    dtypes.add_json(json);
    json.key("metadata").raw(file.metadata().empty() ? "null" : metadata);
  });
}

int run_info(const InfoArguments& arguments, const Session& session) {
  Output& out = session.out;
  auto read = session.options<ReadOptions>();
  const FileFormat format = format_of(arguments.file);
  if (format == FileFormat::thalia_0_1) {
    print_original(out, arguments.file, read, session.common.json);
    return kDone;
  }
  if (is_packed(format)) {
    print_packed(out, arguments.file, format, read, session.common.json);
    return kDone;
  }
  if (format == FileFormat::safetensors) {
    print_safetensors(out, SafetensorsFile::open(arguments.file, read), arguments.file,
                      session.common.json);
    return kDone;
  }
  // Checking blocks of the tree would read the payloads that share these blocks.
  read.verification = Verification::off;
  const Reader reader = Reader::open(arguments.file, read);
  // Bytes on disk differ from reader.file_bytes() where the file is compressed as a whole, or an
  // interrupted append has left debris behind its end.
  const std::uint64_t disk_bytes = file_bytes(arguments.file);
  if (session.common.json) {
    print_thalia_json(out, reader, disk_bytes);
  } else {
    print_thalia(out, reader, disk_bytes);
  }
  return kDone;
}

}  // namespace

Run declare_info(CLI::App& app) {
  app.description(
      "Shows header, versions, totals, sizes, codecs, checksum, growth history and metadata. Reads "
      "no payload, so it cannot tell whether they are whole: 'thalia verify' does.");
  const auto arguments = std::make_shared<InfoArguments>();
  add_file(app, "FILE", arguments->file, "A .thalia or .safetensors file");
  return [arguments](const Session& session) { return run_info(*arguments, session); };
}

}  // namespace thalia::cli
