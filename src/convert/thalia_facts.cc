#include "convert/thalia_facts.h"

#include <string>
#include <utility>
#include <vector>

#include "container/read/reader_of.h"
#include "container/wrap/seek_table.h"
#include "thalia/compress.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace {

std::string_view checksum_name(ChecksumType type) {
  switch (type) {
    case ChecksumType::none:
      return "crc32";  // of each tensor, which a reader compares as well
    case ChecksumType::sha256:
      return "sha256";
    case ChecksumType::crc32:
      return "crc32";
    case ChecksumType::block_tree:
      return "block_tree";
  }
  return "unknown";
}

ChecksumFacts checksum_facts(const Reader& reader) {
  const FileHeader header = reader.header();
  ChecksumFacts facts{.type = std::string(checksum_name(header.checksum))};
  if (header.checksum == ChecksumType::block_tree) {
    facts.leaves = header.leaves == LeafAlgorithm::sha256 ? "sha256" : "xxh3_128";
    facts.block_bytes = std::uint64_t{1} << header.block_log2;
  }
  if (header.checksum != ChecksumType::none) facts.digest = hex(reader.closing_checksum().bytes);
  return facts;
}

std::vector<std::string_view> flag_names(const FileFlags& flags) {
  const std::pair<bool, std::string_view> all[] = {{flags.compressed, "compressed"},
                                                   {flags.lz4, "lz4"},
                                                   {flags.homeostatic, "homeostatic"},
                                                   {flags.neuromodulators, "neuromodulators"},
                                                   {flags.sparse, "sparse"},
                                                   {flags.mixed_precision, "mixed_precision"},
                                                   {flags.delta, "delta"}};
  std::vector<std::string_view> names;
  for (const auto& [is_set, name] : all) {
    if (is_set) names.push_back(name);
  }
  return names;
}

}  // namespace

OpenedFacts facts_of(const Reader& reader, const io::FileBytes& file) {
  const FileHeader header = reader.header();
  OpenedFacts facts;
  facts.version = header.version.to_string();
  facts.is_side_file = container::file_of(reader).mapping().backing() == io::Backing::partial;
  // Bytes on disk differ where the file is compressed as a whole, or an interrupted append has
  // left debris after its end.
  facts.file_bytes = reader.file_bytes();
  facts.disk_bytes = file.bytes().size();
  facts.dead_bytes = reader.dead_bytes();
  facts.debris_bytes = reader.debris_bytes();
  if (const auto wrapper = container::wrapper_of(file.fd(), file.path(), {});
      wrapper && !facts.is_side_file) {
    facts.wrapper = WrapperFacts{.codec = wrapper->codec,
                                 .packed = wrapper->packed,
                                 .has_seek_table = wrapper->has_seek_table};
    if (wrapper->has_seek_table) facts.wrapper->frames = wrapper->frames;
  }
  facts.regions = reader.region_count();
  facts.connections = reader.connection_count();
  facts.neurons = header.total_neurons;
  facts.synapses = header.total_synapses;
  facts.metadata = reader.metadata_json();
  facts.training_steps = header.training_steps;
  facts.timestamp = header.timestamp;
  facts.generation = header.generation;
  facts.uuid = header.file_uuid;
  facts.flags = flag_names(header.flags);
  facts.checksum = checksum_facts(reader);
  if (header.base_checksum == Digest256{}) return facts;
  facts.is_delta = true;
  facts.base =
      BaseFacts{.checksum = hex(header.base_checksum.bytes), .training_steps = header.base_step};
  if (const auto base = reader.delta_base()) {
    facts.base->path = base->path;
    facts.base->depth = base->depth;
  }
  return facts;
}

}  // namespace thalia::formats
