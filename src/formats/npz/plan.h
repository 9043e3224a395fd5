// What an .npy or .npz file will hold, decided before anything is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/npz/origin.h"
#include "formats/source/npy_type.h"
#include "formats/source/tensor_sink.h"

namespace thalia::formats::npz {

struct PlannedArray {
  std::size_t tensor = 0;  ///< in the input
  std::string member;      ///< of an archive
  std::string head;        ///< the array's header
  NpyType type{};
  Shape shape{};            ///< as the header says it
  bool reordered = false;   ///< goes to Fortran order
  std::uint64_t bytes = 0;  ///< of its elements
  std::size_t element_bytes = 1;
};

struct Plan {
  std::vector<PlannedArray> arrays{};  ///< in the order of the file
  bool deflated = false;
  bool old_zip64 = false;
  std::vector<std::string> losses{};
  std::uint64_t bytes = 0;  ///< of all elements
};

/// @throws UnsupportedError naming the tensor; FormatError (limit_exceeded) for a tensor too large
/// to be reordered in memory, or metadata that are no JSON object.
Plan plan_arrays(const SinkInput& input, const SinkOptions& options);

}  // namespace thalia::formats::npz
