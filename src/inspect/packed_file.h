// Files of compressed tensors without regions as the commands show them: .mckp and .mst.
#pragma once

#include <filesystem>
#include <string>

#include "inspect/file_tensors.h"
#include "inspect/opened_tensor.h"
#include "thalia/convert.h"
#include "thalia/delta.h"
#include "thalia/mckp.h"
#include "thalia/verify.h"

namespace thalia::inspect {

MckpReadOptions mckp_options(const ChainOptions& chain);

bool is_packed(FileFormat format) noexcept;

/// Checksums, where there are any, and every tensor; of a delta, with those that it was taken
/// against. Errors of the file become findings.
VerifyReport verify_packed(const std::filesystem::path& path, FileFormat format,
                           const ChainOptions& chain, bool quick);
/// Calls `visit` with each tensor, in the order of the file.
void visit_packed(const std::filesystem::path& path, FileFormat format, const ChainOptions& chain,
                  const VisitTensor& visit);
OpenedTensor open_packed(const std::filesystem::path& path, FileFormat format,
                         const std::string& name, const ChainOptions& chain);

}  // namespace thalia::inspect
