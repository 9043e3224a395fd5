// The migrations that migrate() and convert() are made of. Each puts the output in its place and
// fills in its bytes, losses and warnings.
#pragma once

#include <filesystem>

#include "io/file/input_file.h"
#include "thalia/formats/convert.h"

namespace thalia::formats {

void v01_to_thalia(const io::InputFile& source, const std::filesystem::path& target,
                   const MigrateOptions& options, MigrateResult& result);
void thalia_to_v01(const io::InputFile& source, const std::filesystem::path& target,
                   const MigrateOptions& options, MigrateResult& result);
void v01_to_v01(const io::InputFile& source, const std::filesystem::path& target,
                const MigrateOptions& options, MigrateResult& result);

}  // namespace thalia::formats
