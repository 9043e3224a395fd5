// A safetensors model as a source of tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/file_report.h"
#include "interop/shared/opened_file.h"

namespace thalia::interop {

/// A file, an index, or a folder: SafetensorsModel::open(). @throws as that.
std::shared_ptr<const OpenedFile> open_safetensors_source(const std::filesystem::path& path,
                                                          const OpenOptions& options);
/// A VerifyFormat: of a model of several files all that is wrong with each, and with its index.
VerifyReport verify_safetensors(const std::filesystem::path& path, const OpenOptions& options,
                                const VerifyOptions& verify, bool resolve);

}  // namespace thalia::interop
