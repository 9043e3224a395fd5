// Deltas whose front says something else than what was written.
#pragma once

#include <filesystem>
#include <string>

#include "container/file/delta_prefix.h"
#include "format/delta.h"
#include "support/bytes.h"
#include "support/files.h"

namespace thalia::test {

/// Gives the prefix of a delta another path, reference and header, and its CRC anew.
template <typename Edit>
void edit_prefix(const std::filesystem::path& path, Edit edit) {
  std::string bytes = read_file(path);
  const container::DeltaPrefix found = container::checked_delta_prefix(bytes_of(bytes));
  format::DeltaHeader header = found.header;
  format::DeltaReference reference = found.reference;
  std::string base(found.path);
  edit(header, reference, base);
  const auto prefix = container::build_delta_prefix(header, reference, base);
  bytes.replace(0, found.reference.container_offset, text_of(prefix));
  write_file(path, bytes);
}

/// Gives it another path to its base.
inline void edit_base_path(const std::filesystem::path& delta, const std::string& path) {
  edit_prefix(delta, [&](auto&, auto&, std::string& base) { base = path; });
}

}  // namespace thalia::test
