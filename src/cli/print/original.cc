#include "cli/print/original.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/suggestion.h"
#include "cli/print/dtype_totals.h"
#include "cli/print/json_result.h"
#include "cli/print/json_text.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "thalia/brain_region.h"
#include "thalia/error.h"
#include "thalia/paths.h"
#include "thalia/text.h"
#include "thalia/v01.h"

namespace thalia::cli {
namespace {

// NaN and infinities become strings, which JSON has no numbers for; their texts end in 'N' or 'y'.
// A tensor becomes null: metadata have none.
void add_json(JsonWriter& json, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::null:
    case Value::Kind::tensor:
      json.null();
      break;
    case Value::Kind::boolean:
      json.value(value.as_bool());
      break;
    case Value::Kind::number: {
      const std::string& text = value.number_text();
      const bool known = text.back() != 'N' && text.back() != 'y';
      known ? json.raw(text) : json.value(text);
      break;
    }
    case Value::Kind::string:
      json.value(as_utf8(value.as_string()));
      break;
    case Value::Kind::array:
      json.begin_array();
      for (const Value& element : value.elements()) add_json(json, element);
      json.end_array();
      break;
    case Value::Kind::object:
      json.begin_object();
      for (const auto& [name, member] : value.members()) {
        json.key(as_utf8(name));
        add_json(json, member);
      }
      json.end_object();
      break;
  }
}

std::string json_of(const Value& value) {
  std::string text;
  JsonWriter json(text);
  add_json(json, value);
  return text;
}

struct Totals {
  DTypeTotals dtypes;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

void count(const Value& tree, Totals& totals) {
  for_each_tensor(tree, [&](const std::string&, const Tensor& tensor) {
    totals.dtypes.add(tensor.dtype(), tensor.bytes().size());
    totals.bytes += tensor.bytes().size();
    ++totals.tensors;
  });
}

Totals totals_of(const V01Document& document) {
  Totals totals;
  for (const V01Entry& entry : document.entries) count(entry.state, totals);
  return totals;
}

std::string_view wrapper_name(const std::optional<Codec>& wrapper) {
  return wrapper ? codec_name(*wrapper) : "none";
}

std::string wrapper_text(const V01File& file) {
  if (!file.wrapper) return "none";
  return fmt::format("{}, checksum {} the frame", codec_name(*file.wrapper),
                     file.checksum_inside ? "inside" : "behind");
}

void print_delta(Output& out, const std::filesystem::path& path, const ReadOptions& read,
                 bool as_json) {
  const V01DeltaInfo info = read_v01_delta_info(path, read);
  if (!as_json) {
    out.line("file", escape(path.string()));
    out.line("format", "thalia 0.1 delta: a Python pickle, which is never opened");
    out.line("on disk", exact_bytes(file_bytes(path)));
    out.line("wrapper", wrapper_name(info.wrapper));
    out.line("base", hex(info.base_hash.bytes));
    out.line("base step", grouped(info.base_step));
    out.line("training steps", grouped(info.current_step));
    if (info.metadata) print_metadata(out, json_of(*info.metadata));
    return;
  }
  print_object(out, [&](JsonWriter& json) {
    json.member("path", as_utf8(path.string())).member("format", "thalia-0.1");
    json.member("delta", true).member("disk_bytes", file_bytes(path));
    json.member("wrapper", wrapper_name(info.wrapper));
    json.member("base_hash", hex(info.base_hash.bytes)).member("base_step", info.base_step);
    json.member("current_step", info.current_step).key("metadata");
    add_json(json, info.metadata.value_or(Value()));
  });
}

const Value& region_named(const V01Document& document, const std::filesystem::path& path,
                          const std::string& name) {
  // The name as it was typed comes first, as it may look like an escape.
  for (const std::string& wanted : {name, unescape_name(name)}) {
    const auto found = std::ranges::find(document.entries, wanted, &V01Entry::name);
    if (found != document.entries.end()) return found->state;
  }
  throw UsageError(ErrorCode::not_found,
                   "no such region" + suggestion_among(name, document.entries, &V01Entry::name),
                   {.path = path.string(), .region = escape_name(name)});
}

void add_tensor_json(JsonWriter& json, const std::string& path, const Tensor& tensor) {
  json.begin_object().member("name", as_utf8(path)).member("dtype", dtype_name(tensor.dtype()));
  json.key("shape").begin_array();
  for (const std::uint64_t extent : tensor.shape().extents()) json.value(extent);
  json.end_array().member("encoding", encoding_name(tensor.encoding()));
  json.member("nnz", tensor.nnz()).member("bytes", tensor.bytes().size()).end_object();
}

void list_tensors(Output& out, const Value& state, bool as_json) {
  using enum Table::Align;
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"encoding"}, {"stored", right}});
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("tensors").begin_array();
  for_each_tensor(state, [&](const std::string& path, const Tensor& tensor) {
    std::string encoding(encoding_name(tensor.encoding()));
    if (!tensor.is_dense())
      encoding += fmt::format(" ({})", counted(tensor.nnz(), "entry", "entries"));
    table.add_row({escape_name(path), std::string(dtype_name(tensor.dtype())),
                   tensor.shape().to_string(), encoding, human_bytes(tensor.bytes().size())});
    add_tensor_json(json, path, tensor);
  });
  json.end_array().end_object();
  if (as_json) {
    out.write(text + "\n");
  } else {
    table.print(out);
  }
}

}  // namespace

void print_original(Output& out, const std::filesystem::path& path, const ReadOptions& read,
                    bool as_json) {
  // A delta of version 0.1 is a Python pickle, which could run code: it is never opened, and only
  // what stands in front of it is read.
  if (is_v01_delta(path, read)) return print_delta(out, path, read, as_json);
  const V01File file = read_v01(path, read);
  const V01Document& document = file.document;
  const Totals totals = totals_of(document);
  if (!as_json) {
    out.line("file", escape(path.string()));
    out.line("format",
             "thalia " + document.header.version.to_string() + ", the original program's");
    out.line("on disk", exact_bytes(file.file_bytes));
    out.line("wrapper", wrapper_text(file));
    out.line("in memory", exact_bytes(totals.bytes));
    out.line("regions", grouped(document.entries.size()));
    out.line("tensors", grouped(totals.tensors));
    out.line("dtypes", totals.dtypes.to_string());
    out.line("neurons", grouped(document.header.total_neurons));
    out.line("synapses", grouped(document.header.total_synapses));
    out.line("training steps", grouped(document.header.training_steps));
    out.line("saved", utc_time(document.header.timestamp));
    out.line("checksum", "sha256, verified");
    for (const std::string& warning : file.warnings) out.line("warning", escape(warning));
    print_metadata(out, json_of(document.metadata));
    return;
  }
  print_object(out, [&](JsonWriter& json) {
    json.member("path", as_utf8(path.string())).member("format", "thalia-0.1");
    json.member("version", document.header.version.to_string()).member("delta", false);
    json.member("disk_bytes", file.file_bytes).member("wrapper", wrapper_name(file.wrapper));
    json.member("checksum_inside", file.checksum_inside).member("memory_bytes", totals.bytes);
    json.member("regions", document.entries.size()).member("tensors", totals.tensors);
    json.key("dtypes");
    totals.dtypes.add_json(json);
    json.member("total_neurons", document.header.total_neurons);
    json.member("total_synapses", document.header.total_synapses);
    json.member("training_steps", document.header.training_steps);
    json.member("timestamp", document.header.timestamp);
    add_list(json, "warnings", file.warnings);
    json.key("metadata");
    add_json(json, document.metadata);
  });
}

void list_original(Output& out, const std::filesystem::path& path, const std::string& region,
                   const ReadOptions& read, bool as_json) {
  const V01File file = read_v01(path, read);
  if (!region.empty()) return list_tensors(out, region_named(file.document, path, region), as_json);
  using enum Table::Align;
  Table table({{"region"}, {"tensors", right}, {"in memory", right}});
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("regions").begin_array();
  for (const V01Entry& entry : file.document.entries) {
    Totals totals;
    count(entry.state, totals);
    table.add_row({escape_name(entry.name), grouped(totals.tensors), human_bytes(totals.bytes)});
    json.begin_object().member("name", as_utf8(entry.name)).member("tensors", totals.tensors);
    json.member("memory_bytes", totals.bytes).end_object();
  }
  json.end_array().end_object();
  if (as_json) {
    out.write(text + "\n");
  } else {
    table.print(out);
  }
}

}  // namespace thalia::cli
