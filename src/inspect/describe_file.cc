#include "inspect/describe_file.h"

#include <string>
#include <utility>

#include "inspect/file_tensors.h"
#include "inspect/flat_file.h"
#include "inspect/json_members.h"
#include "inspect/shown_name.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/model_index.h"
#include "thalia/mckp.h"
#include "thalia/metadata_file.h"
#include "thalia/paths.h"
#include "thalia/text.h"
#include "thalia/v01.h"
#include "thalia/value.h"
#include "thalia/wrap.h"

namespace thalia::inspect {
namespace {

// NaN and infinities become strings, which JSON has no numbers for; their texts end in 'N' or 'y'.
// A tensor becomes null: metadata have none.
void add_value(JsonWriter& json, const Value& value) {
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
      for (const Value& element : value.elements()) add_value(json, element);
      json.end_array();
      break;
    case Value::Kind::object:
      json.begin_object();
      for (const auto& [name, member] : value.members()) {
        json.key(as_utf8(name));
        add_value(json, member);
      }
      json.end_object();
      break;
  }
}

std::string json_of(const Value& value) {
  std::string text;
  JsonWriter json(text);
  add_value(json, value);
  return text;
}

void take_steps(FileFacts& facts, std::uint64_t of_header) {
  facts.progress = training_progress(facts.metadata);
  // A header that nobody told of steps says 0; metadata may know better.
  if (of_header == 0 && facts.progress.steps) return;
  facts.progress.steps = of_header;
  facts.progress.steps_member.clear();
}

void describe_thalia(FileFacts& facts, const ReadOptions& read) {
  const Reader reader = Reader::open(facts.path, read);
  const FileHeader header = reader.header();
  facts.version = header.version.to_string();
  facts.is_side_file = is_metadata_file(facts.path);
  // Bytes on disk differ where the file is compressed as a whole, or an interrupted append has left
  // debris behind its end.
  facts.file_bytes = reader.file_bytes();
  facts.dead_bytes = reader.dead_bytes();
  facts.debris_bytes = reader.debris_bytes();
  if (const auto wrapper = read_wrapper(facts.path); wrapper && !facts.is_side_file) {
    facts.wrapper =
        WrapperFacts{.codec = wrapper->codec, .has_seek_table = wrapper->has_seek_table};
    if (wrapper->has_seek_table) facts.wrapper->frames = wrapper->frames;
  }
  facts.regions = reader.region_count();
  facts.connections = reader.connection_count();
  facts.neurons = header.total_neurons;
  facts.synapses = header.total_synapses;
  facts.metadata = reader.metadata_json();
  take_steps(facts, header.training_steps);
  facts.timestamp = header.timestamp;
  facts.generation = header.generation;
  facts.uuid = header.file_uuid;
  facts.flags = flag_names(header.flags);
  facts.checksum = checksum_facts(reader);
  if (header.base_checksum == Digest256{}) return;
  facts.is_delta = true;
  facts.base =
      BaseFacts{.checksum = hex(header.base_checksum.bytes), .training_steps = header.base_step};
  if (const auto base = reader.delta_base()) {
    facts.base->path = base->path;
    facts.base->depth = base->depth;
  }
}

void describe_original(FileFacts& facts, const ReadOptions& read) {
  const V01File file = read_v01(facts.path, read);
  const V01Header& header = file.document.header;
  facts.version = header.version.to_string();
  if (file.wrapper) {
    facts.wrapper = WrapperFacts{.codec = *file.wrapper, .checksum_inside = file.checksum_inside};
  }
  facts.regions = file.document.entries.size();
  facts.neurons = header.total_neurons;
  facts.synapses = header.total_synapses;
  facts.metadata = json_of(file.document.metadata);
  take_steps(facts, header.training_steps);
  facts.timestamp = header.timestamp;
  facts.checksum.type = "sha256";
  facts.warnings = file.warnings;
}

// A Python pickle, which could run code: it is never opened, and only what stands in front of it is
// read.
void describe_original_delta(FileFacts& facts, const ReadOptions& read) {
  const V01DeltaInfo info = read_v01_delta_info(facts.path, read);
  facts.is_delta = true;
  if (info.wrapper) facts.wrapper = WrapperFacts{.codec = *info.wrapper};
  if (info.metadata) facts.metadata = json_of(*info.metadata);
  facts.progress.steps = info.current_step;
  facts.base = BaseFacts{.checksum = hex(info.base_hash.bytes), .training_steps = info.base_step};
}

void describe_mckp(FileFacts& facts, const ChainOptions& options) {
  const MckpHeader header = MckpFile::open(facts.path, {.chain = options}).header();
  facts.version = "1";
  if (header.metadata != "{}") facts.metadata = header.metadata;
  facts.progress = training_progress(facts.metadata);
  if (header.training_step) take_steps(facts, *header.training_step);
  facts.checksum.type = "xxh64";
  if (header.content_hash) facts.content_hash = hex(header.content_hash->bytes);
  if (!header.previous) return;
  facts.is_delta = true;
  facts.base =
      BaseFacts{.path = header.previous->key, .checksum = hex(header.previous->content_hash.bytes)};
}

// Where a file has nothing but texts, these, without what else a conversion keeps of it.
std::string shown_metadata(const AnyFile& file) {
  std::string metadata(file.metadata_json());
  if (file.format() != FileFormat::safetensors && file.format() != FileFormat::mst) return metadata;
  const Value all = parse_json(metadata);
  const Value* const own = all.find(file_format_name(file.format()));
  const Value* const texts = own != nullptr ? own->find("metadata") : nullptr;
  return texts != nullptr && !texts->members().empty() ? json_of(*texts) : std::string();
}

// A format has one kind of checksum, and a file may have it for some tensors only.
void take_checksums(ChecksumFacts& facts, const AnyFile& file) {
  std::uint64_t covered = 0;
  for (const AnyTensor& tensor : file.tensors()) {
    if (tensor.checksum.empty()) continue;
    facts.type = tensor.checksum;
    ++covered;
  }
  if (covered != 0 && covered != file.tensors().size()) facts.tensors = covered;
}

void describe_flat(FileFacts& facts, const ChainOptions& options) {
  const AnyFile file = open_any(facts.path, {.chain = options}, facts.format);
  if (!file.version().empty()) facts.version = file.version();
  if (file.metadata_json() != "{}") facts.metadata = shown_metadata(file);
  facts.progress = training_progress(facts.metadata);
  if (file.training_steps()) take_steps(facts, *file.training_steps());
  take_checksums(facts.checksum, file);
  facts.disk_bytes = file.file_bytes();  // of a folder, all of its files
  facts.beside = file.losses();
}

}  // namespace

FileFacts describe_file(const std::filesystem::path& named, const ChainOptions& options) {
  const std::filesystem::path path = find_model(named);
  const FileFormat format = input_format(path, options.read.input.access);
  FileFacts facts{.path = path.string(), .format = format};
  if (format == FileFormat::thalia) {
    describe_thalia(facts, options.read);
  } else if (format == FileFormat::thalia_0_1) {
    if (is_v01_delta(path, options.read)) {
      describe_original_delta(facts, options.read);
      facts.disk_bytes = facts.file_bytes = file_bytes(path);
      return facts;
    }
    describe_original(facts, options.read);
  } else if (format == FileFormat::mckp) {
    describe_mckp(facts, options);
  } else {
    describe_flat(facts, options);
  }
  if (facts.disk_bytes == 0) facts.disk_bytes = file_bytes(path);
  if (format != FileFormat::thalia) facts.file_bytes = facts.disk_bytes;
  if (auto lack = lack_of_file(path, format, options)) facts.warnings.push_back(*std::move(lack));
  Selection everything("", {});
  TensorTotals totals;
  visit_tensors(path, everything, options,
                [&](const FileTensor& tensor) { totals.add(tensor.list()); });
  facts.totals = std::move(totals);
  return facts;
}

std::optional<std::string> lack_of_file(const std::filesystem::path& path, FileFormat format,
                                        const ChainOptions& options) {
  const auto lacks = lacks_of_file(path, format, {.chain = options});
  return lacks ? std::optional("it lacks " + *lacks) : std::nullopt;
}

}  // namespace thalia::inspect
