// The options of every command that writes a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cli/options/compression_arguments.h"
#include "cli/terminal/session.h"
#include "thalia/formats/convert.h"

namespace thalia::cli {

struct SaveArguments {
  CompressionArguments compression;
  ChecksumType checksum = ChecksumType::block_tree;
  LeafAlgorithm leaves = LeafAlgorithm::xxh3_128;
  std::uint64_t max_header_bytes = 100'000'000;
  bool sha256 = false;

  void declare(CLI::App& app);
  /// @throws UsageError naming the option and what it can be.
  ConvertOptions options(const Session& session) const;
};

/// Prints what was done: a line for the file and one for each loss, or JSON of that schema.
void print_result(const Session& session, std::string_view schema,
                  std::span<const std::string> inputs, const std::string& output,
                  const ConvertResult& result);

}  // namespace thalia::cli
