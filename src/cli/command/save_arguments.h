// The options of every command that writes a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "thalia/convert.h"

namespace thalia::cli {

struct SaveArguments {
  std::string codec;  ///< empty: not given
  int level = 0;
  std::string checksum = "block_tree";
  std::string leaves = "xxh3_128";
  unsigned threads = 0;
  std::uint64_t max_header_bytes = 100'000'000;
  bool sha256 = false;
  bool json = false;

  void declare(CLI::App& app);
  /// @throws UsageError naming the option and what it can be.
  ConvertOptions options(const Session& session) const;
};

/// What was done, as one line and one a loss, or as JSON.
void print_result(Output& out, const ConvertResult& result, const std::string& output,
                  bool as_json);

}  // namespace thalia::cli
