// PyTorch's files: .pt, .pth and .bin of torch.save, and programs of TorchScript. Nothing of them
// is ever run: their pickles are read by a reader that knows tensors and plain containers, and
// refuses every other Python object by its name. open_any() reads them. docs/format/pt.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia {

/// Writes a dictionary of tensors atomically (temporary, sync, rename), as torch.save does: the
/// names are its keys, and bytes are borrowed until it returns. torch.load opens it with
/// weights_only=True, and with mmap=True.
/// @throws IoError; UsageError (duplicate, size_mismatch, bad_argument); UnsupportedDtypeError for
/// types that torch lacks. @return bytes of the file.
std::uint64_t save_pt(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                      const OutputOptions& output = {});

}  // namespace thalia
