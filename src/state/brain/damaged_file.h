// A damaged file opened by whatever tables can be had of it: for salvage().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "container/file/open_file.h"
#include "thalia/error.h"
#include "thalia/recover.h"

namespace thalia::state {

/// True of an error that says something of the bytes; others end the work.
bool is_damage(const Error& error);
/// Its sentence, without file and place.
std::string reason_of(const Error& error);

struct DamagedFile {
  std::shared_ptr<const detail::OpenFile> file;  ///< verifies nothing
  std::uint64_t available = 0;                   ///< of its bytes those that are real: the first
  SalvageTables tables = SalvageTables::header;
  std::string fault{};           ///< as SalvageResult's
  bool tables_verified = false;  ///< as SalvageResult's
};

/// By the file's own tables if they hold, else by the best of what there is. A copy that it
/// needs has no name, and lies on the file system of `output`. @throws as salvage().
DamagedFile open_damaged(const std::filesystem::path& input, const std::filesystem::path& output,
                         const SalvageOptions& options);

}  // namespace thalia::state
