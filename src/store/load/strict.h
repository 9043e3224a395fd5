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

/// As thalia::compare_with_model().
ModelFit compare_with_model(std::span<const HeldTensor> held,
                            std::span<const ExpectedTensor> expected);
/// @param path of the checkpoint, for messages. @throws as thalia::check_strictly().
void require_fit(const ModelFit& fit, const std::filesystem::path& path);

}  // namespace thalia::store
