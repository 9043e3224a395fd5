// Tensors of a checkpoint, or of a part of one, against those of a model. docs/format/store.md,
// "Loading".
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "thalia/store/run.h"

namespace thalia::store {

struct HeldTensor {
  std::string region;
  std::string name;
  DType dtype;
  Shape shape;
};

/// @param path of the checkpoint, for messages. @throws as thalia::check_strictly().
void check_strictly(std::span<const HeldTensor> held, std::span<const ExpectedTensor> expected,
                    const std::filesystem::path& path);

}  // namespace thalia::store
