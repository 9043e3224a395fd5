// Tensors in element types that 0.1 files have.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/memory/allocation_limit.h"
#include "thalia/state/value.h"

namespace thalia::formats {

/// The narrowest type of 0.1 that holds every element of a type; the type itself if 0.1 has it;
/// nullopt if none does.
std::optional<DType> v01_holder(DType dtype) noexcept;
/// The same elements in that type. @throws UnsupportedError (unsupported_feature) if there is
/// none, or an element of u64 is above 2^63 - 1; FormatError (limit_exceeded): an element of one
/// bit becomes one of 32.
Tensor v01_widened(const Tensor& tensor, io::MemoryBudget& budget);

/// Widens the tensors of one tree after the other, and knows what became of them.
class V01Widener {
 public:
  /// @param budget of all tensors together, which are in memory until the file is written.
  explicit V01Widener(io::MemoryBudget& budget) : budget_(budget) {}

  /// @param region for messages. @throws as v01_widened(), naming region and tensor.
  void widen(Value& tree, std::string_view region);
  /// One sentence for each kind of change.
  std::vector<std::string> sentences() const;

 private:
  using Names = std::vector<std::string>;
  io::MemoryBudget& budget_;
  std::map<std::pair<DType, DType>, Names> widened_;
  Names rows_;  ///< csr tensors, which are read again as coo
};

}  // namespace thalia::formats
