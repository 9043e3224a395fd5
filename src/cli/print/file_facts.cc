#include "cli/print/file_facts.h"

#include <fmt/format.h>

#include <utility>

namespace thalia::cli {

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

FileTotals total(const Reader& reader) {
  FileTotals totals;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) totals.add(region.tensor(t));
  }
  for (std::uint32_t c = 0; c < reader.connection_count(); ++c) {
    const ConnectionView connection = reader.connection(c);
    totals.add(connection.weights);
    if (connection.delays) totals.add(*connection.delays);
  }
  return totals;
}

std::vector<std::string_view> codec_names(const FileTotals& totals) {
  std::vector<std::string_view> names;
  for (const Codec codec : totals.codecs) names.push_back(codec_name(codec));
  return names;
}

std::string ratio_text(std::uint64_t logical_bytes, std::uint64_t stored_bytes) {
  // A file without payloads has no ratio.
  if (stored_bytes == 0) return "1.00x";
  return fmt::format("{:.2f}x",
                     static_cast<double>(logical_bytes) / static_cast<double>(stored_bytes));
}

std::string_view checksum_name(const FileHeader& header) {
  switch (header.checksum) {
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

std::string_view leaf_name(const FileHeader& header) {
  return header.leaves == LeafAlgorithm::sha256 ? "sha256" : "xxh3_128";
}

bool has_tree(const FileHeader& header) {
  return header.checksum == ChecksumType::block_tree;
}

bool has_base(const FileHeader& header) {
  return header.base_checksum != Digest256{};
}

}  // namespace thalia::cli
