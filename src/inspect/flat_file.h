// Files of formats without regions as the commands show them.
#pragma once

#include <filesystem>
#include <string>

#include "inspect/file_tensors.h"
#include "inspect/opened_tensor.h"
#include "thalia/delta.h"
#include "thalia/formats/any_file.h"
#include "thalia/mckp.h"

namespace thalia::inspect {

/// Calls `visit` with each tensor, in the order of the file. `shared_memory`: as of OpenOptions.
void visit_flat(const std::filesystem::path& path, FileFormat format, const ChainOptions& chain,
                bool shared_memory, const VisitTensor& visit);
OpenedTensor open_flat(const std::filesystem::path& path, FileFormat format,
                       const std::string& name, const ChainOptions& chain);

}  // namespace thalia::inspect
