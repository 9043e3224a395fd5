#include "inspect/file_facts.h"

#include <utility>

#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::inspect {
namespace {

std::string_view checksum_name(ChecksumType type) {
  switch (type) {
    case ChecksumType::none:
      return "none";
    case ChecksumType::sha256:
      return "sha256";
    case ChecksumType::crc32:
      return "crc32";
    case ChecksumType::block_tree:
      return "block_tree";
  }
  return "unknown";
}

}  // namespace

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

std::string uuid_text(const Uuid& uuid) {
  std::string text = hex(uuid);
  for (const std::size_t position : {20, 16, 12, 8}) text.insert(position, 1, '-');
  return text;
}

ChecksumFacts checksum_facts(const Reader& reader) {
  const FileHeader header = reader.header();
  ChecksumFacts facts{.type = std::string(checksum_name(header.checksum))};
  if (header.checksum == ChecksumType::block_tree) {
    facts.leaves = header.leaves == LeafAlgorithm::sha256 ? "sha256" : "xxh3_128";
    facts.block_bytes = std::uint64_t{1} << header.block_log2;
  }
  if (header.checksum != ChecksumType::none) {
    facts.digest = hex(reader.closing_checksum().bytes);
  } else {
    facts.type = "crc32";  // of each tensor, which a reader compares as well
  }
  return facts;
}

std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata) {
  if (metadata.empty()) return std::vector<GrowthEvent>();
  try {
    return parse_growth_history(metadata);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace thalia::inspect
