#include "container/read/stored_connection.h"

#include <cstddef>

#include "base/fail.h"
#include "format/connectivity.h"
#include "format/directory.h"
#include "format/fixed_name.h"

namespace thalia::container {

StoredConnection stored_connection(const detail::OpenFile& file, std::uint32_t i) {
  const format::ConnectionEntry& entry = file.connection_entry(i);
  const std::uint32_t matrices = file.region_count();  // the directory's last region holds them
  if (file.directory().region_count == matrices) {
    fail_field(ErrorCode::inconsistent, "directory", "region_count",
               file.header().directory_offset + offsetof(format::DirectoryHeader, region_count),
               std::to_string(matrices),
               fmt::format("{}, with connections in the file", matrices + 1));
  }
  // Matrices are found by name; offsets in the entry repeat their places for other programs, and
  // only a verifier compares them.
  const auto weights = file.find_tensor(matrices, fmt::format("{}.weights", i));
  if (!weights) {
    fail_field(ErrorCode::inconsistent, "connectivity", "weight_offset",
               file.header().connectivity_offset,
               fmt::format("connection {} without weights in the directory", i),
               fmt::format("'{}.weights'", i));
  }
  const auto delays = file.find_tensor(matrices, fmt::format("{}.delays", i));
  return {.source = std::string(format::fixed_name(entry.source_region)),
          .target = std::string(format::fixed_name(entry.target_region)),
          .weights = *weights,
          .delays = delays};
}

}  // namespace thalia::container
