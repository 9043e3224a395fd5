// A file of tensors under names, whichever format it has, read one tensor at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "thalia/convert.h"
#include "thalia/safetensors.h"
#include "thalia/tensor_value.h"

namespace thalia::interop {

struct TensorList {
  std::vector<SafetensorsTensor> tensors;  ///< without bytes
  std::function<Tensor(std::size_t)> read;
  std::string metadata = "{}";  ///< a JSON object
  std::optional<std::uint64_t> training_step;
  std::uint64_t file_bytes = 0;
};

/// For a safetensors, mckp or mst file, which stays open as long as the list lives.
TensorList open_tensor_list(const std::filesystem::path& path, FileFormat format,
                            const ConvertOptions& options);

/// The members of a JSON object whose values are texts; the keys of the others.
struct TextMembers {
  SafetensorsMetadata texts;
  std::vector<std::string> others;
};
TextMembers text_members(const std::string& object, unsigned max_depth);

}  // namespace thalia::interop
