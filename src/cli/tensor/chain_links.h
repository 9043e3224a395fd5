// A checkpoint and all that it is based on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/delta.h"

namespace thalia::cli {

struct ChainLink {
  std::string name;  ///< a path, or the key of a checkpoint in a store
  bool is_delta = false;
  std::optional<std::uint64_t> steps{};
  std::optional<std::uint64_t> timestamp{};
  std::uint64_t disk_bytes = 0;

  std::string_view kind() const noexcept { return is_delta ? "delta" : "full"; }
};

/// The file itself first, the full one last, as headers tell: no payload is read. `what` is the
/// command, for messages. @throws UsageError (bad_argument) for a format without chains; what
/// opening them throws.
std::vector<ChainLink> chain_links(const std::filesystem::path& path, const ChainOptions& options,
                                   std::string_view what);

}  // namespace thalia::cli
