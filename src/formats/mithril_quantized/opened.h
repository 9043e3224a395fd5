// Quantized tensors of the original mithril program, read through the interface of all formats.
#pragma once

#include "formats/source/opened_file.h"

namespace thalia::formats {

/// An OpenFormat. The tensors are `codes`, `scales` and, where the file has them, `zero_points`; or
/// with OpenOptions::dequantize the one tensor `tensor` of f32.
std::shared_ptr<const OpenedFile> open_mithril_quantized_file(const io::InputFile& input,
                                                              const OpenOptions& options);

}  // namespace thalia::formats
