// A model file before it is written: all of it but the elements, whose lengths are known. So the
// lengths of the messages around them are known, too, and elements go straight to the disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/source/tensor_sink.h"
#include "thalia/formats/onnx.h"

namespace thalia::formats::onnx {

struct OnnxPlannedTensor {
  std::string head{};               ///< before the elements; of a sparse one before its positions
  std::string middle{};             ///< of a sparse one: between positions and values
  std::uint64_t payload_bytes = 0;  ///< logical bytes
  bool external = false;
  std::uint64_t offset = 0;  ///< in the data file, of an external one
};

struct OnnxPlan {
  std::string front{};
  std::vector<OnnxPlannedTensor> tensors{};  ///< in the order of the input
  std::string back{};
  /// The bytes of the model. A model of more than kMostMessageBytes cannot be written.
  std::uint64_t model_bytes = 0;
  std::uint64_t data_bytes = 0;     ///< of the data file; 0: none
  std::uint64_t payload_bytes = 0;  ///< of all tensors
};

/// Where elements of external tensors begin in their file: a multiple of this, so that they can be
/// mapped.
inline constexpr std::uint64_t kDataAlignment = 4096;
/// Smaller tensors stay in the model.
inline constexpr std::uint64_t kLeastExternalBytes = 1024;

/// What save_onnx() refuses. Raises the model's versions to what the tensors need.
void check_input(const std::vector<SinkTensor>& tensors, const OnnxMetadata& metadata,
                 OnnxModel& model);
/// Sets versions that check_input() would refuse to ones that it takes.
void correct_versions(OnnxModel& model);

/// @param location name of the data file; empty: all elements are in the model.
OnnxPlan make_plan(const std::vector<SinkTensor>& tensors, const OnnxMetadata& metadata,
                   const OnnxModel& model, const std::string& location);

}  // namespace thalia::formats::onnx
