// .thalia files of the tests of formats.
#pragma once

#include <filesystem>
#include <string>

#include "thalia/options.h"
#include "thalia/reader.h"

namespace thalia::test {

/// Options with which equal input gives equal bytes.
SaveOptions fixed_identity(SaveOptions options = {});

/// A file with a bit of everything: three regions (one empty, one with a name longer than 31
/// bytes), all roles, csr and coo with narrow and wide indices, packed and empty tensors, configs,
/// metadata, two connections, one with delays.
void write_rich_checkpoint(const std::filesystem::path& path, const SaveOptions& options);

/// Everything that a file says, whatever its checksums and compression, one line an item.
std::string describe(const Reader& reader);
std::string describe(const std::filesystem::path& path);

}  // namespace thalia::test
