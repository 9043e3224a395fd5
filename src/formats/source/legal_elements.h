// What no .thalia file may hold: a bool that is neither 0 nor 1, a ternary of -2. A conversion that
// took such elements along would write a file that its own check refuses.
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::formats {

/// Watches a payload that passes in pieces. In a sparse tensor it checks the values.
class LegalElements {
 public:
  explicit LegalElements(const TensorLayout& layout) noexcept;

  /// The next piece. @throws FormatError (bad_value), naming no tensor.
  void pass(ByteSpan piece);

 private:
  DType dtype_;
  std::uint64_t at_ = 0;               ///< of the next piece
  std::uint64_t begin_ = 0, end_ = 0;  ///< of what is looked at
};

/// A whole payload. @throws as LegalElements::pass().
inline void check_legal(const TensorLayout& layout, ByteSpan payload) {
  LegalElements(layout).pass(payload);
}

}  // namespace thalia::formats
