// The content hash of a checkpoint: SHA-256 over what its tensors are, however they are stored.
// docs/mckp.md, "Content hash".
#pragma once

#include <string>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/shape.h"

namespace thalia::interop {

/// Of xxh3_128: 16 bytes and zeros, which are not part of it.
Digest256 tensor_digest(const Digest128& xxh3) noexcept;
/// Of a tensor's bytes.
/// @param threads for xxh3_128; 0: one a core.
Digest256 tensor_digest(LeafAlgorithm algorithm, ByteSpan bytes, unsigned threads);

/// Externally synchronised.
class ContentHashList {
 public:
  explicit ContentHashList(LeafAlgorithm algorithm) : algorithm_(algorithm) {}
  /// @param digest as tensor_digest(), of the tensor's bytes, of which there are `size`.
  void add(std::string name, DType dtype, const Shape& shape, std::uint64_t size,
           const Digest256& digest);
  /// Of all that were added, in any order.
  Digest256 finish() const;

 private:
  struct Entry {
    std::string name;
    std::string text;  ///< what is hashed
  };
  LeafAlgorithm algorithm_;
  std::vector<Entry> entries_;
};

}  // namespace thalia::interop
