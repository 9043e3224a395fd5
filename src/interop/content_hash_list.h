// The content hash of a checkpoint: SHA-256 over what its tensors are, however they are stored.
// docs/mckp.md, "Content hash".
#pragma once

#include <string>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/shape.h"

namespace thalia::interop {

/// Externally synchronised.
class ContentHashList {
 public:
  /// @param sha256 of the tensor's bytes, of which there are `size`.
  void add(std::string name, DType dtype, const Shape& shape, std::uint64_t size,
           const Digest256& sha256);
  /// Of all that were added, in any order.
  Digest256 finish() const;

 private:
  struct Entry {
    std::string name;
    std::string text;  ///< what is hashed
  };
  std::vector<Entry> entries_;
};

}  // namespace thalia::interop
