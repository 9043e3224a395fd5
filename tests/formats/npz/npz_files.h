// Files and tensors of the tests of .npy and .npz files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/tensor_value.h"

namespace thalia::test {

/// In tests/data/formats/npz.
std::filesystem::path npz_sample(const char* name);
/// Bytes that look random.
Tensor random_numbers(DType dtype, const Shape& shape);
/// Reads and writes a file through source and sink, by the ends of the paths. `metadata`: in place
/// of those of the source, unless empty. @return the losses that were announced.
std::vector<std::string> rewrite_npz(const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const std::string& metadata = {});

}  // namespace thalia::test
