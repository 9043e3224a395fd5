// Which tensors of a model an adapter can change, and which of two models changed.
// docs/format/peft.md, "What an adapter holds".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/source/opened_file.h"
#include "thalia/formats/lora_adapter.h"

namespace thalia::formats::weight_sync {

/// A matrix that an adapter can change.
struct LoraTensor {
  std::size_t before = 0;  ///< its place in the base
  std::size_t after = 0;
  std::string module{};
  bool is_transposed = false;  ///< inputs × outputs
};

struct LoraTensors {
  std::vector<LoraTensor> tensors{};      ///< changed or not, in the order of the new model
  std::vector<LeftOutTensor> left_out{};  ///< changed, and an adapter cannot hold it
};

/// Other tensors than matrices are compared. @throws as OpenedFile::read().
LoraTensors find_lora_tensors(const OpenedFile& base, const OpenedFile& next, const Work& work);

}  // namespace thalia::formats::weight_sync
