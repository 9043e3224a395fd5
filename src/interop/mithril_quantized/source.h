// Quantized tensors of the original mithril program, read through the interface of all formats.
#pragma once

#include "interop/shared/source_file.h"

namespace thalia::interop {

/// An OpenSource. The tensors are `codes`, `scales` and, where the file has them, `zero_points`; or
/// with SourceOptions::dequantize the one tensor `tensor` of f32.
std::shared_ptr<const SourceFile> open_mithril_quantized_source(const std::filesystem::path& path,
                                                                const SourceOptions& options);

}  // namespace thalia::interop
