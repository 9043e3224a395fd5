#include "cli/print/file_facts.h"

#include <fmt/format.h>

#include <utility>

namespace thalia::cli {

using format::ChecksumType;
using format::Header;

std::vector<std::string_view> flag_names(std::uint16_t flags) {
  constexpr std::pair<std::uint16_t, std::string_view> kNames[] = {
      {format::kFlagCompressed, "compressed"},
      {format::kFlagLz4, "lz4"},
      {format::kFlagHomeostatic, "homeostatic"},
      {format::kFlagNeuromodulators, "neuromodulators"},
      {format::kFlagSparse, "sparse"},
      {format::kFlagMixedPrecision, "mixed_precision"},
      {format::kFlagDelta, "delta"}};
  std::vector<std::string_view> names;
  for (const auto& [bit, name] : kNames) {
    if (flags & bit) names.push_back(name);
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
  for (const format::Codec codec : totals.codecs) names.push_back(codec_name(codec));
  return names;
}

std::string ratio_text(std::uint64_t logical_bytes, std::uint64_t stored_bytes) {
  if (stored_bytes == 0) return "1.00x";
  return fmt::format("{:.2f}x",
                     static_cast<double>(logical_bytes) / static_cast<double>(stored_bytes));
}

std::string_view checksum_name(const Header& header) {
  switch (header.checksum_type) {
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

std::string_view leaf_name(const Header& header) {
  return header.leaf_algorithm == format::LeafAlgorithm::sha256 ? "sha256" : "xxh3_128";
}

bool has_tree(const Header& header) {
  return header.checksum_type == ChecksumType::block_tree;
}

std::string version_text(const Header& header) {
  return fmt::format("{}.{}.{}", static_cast<unsigned>(header.major_version),
                     static_cast<unsigned>(header.minor_version),
                     static_cast<unsigned>(header.patch_version));
}

bool has_base(const Header& header) {
  return header.base_checksum != Digest256{};
}

}  // namespace thalia::cli
