// The content hash of a checkpoint: SHA-256 over its tensors, however they are stored.
// docs/format/mckp.md, "Content hash".
#pragma once

#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats {

/// The 16 bytes of an xxh3_128 digest, and zeros that are not part of it.
Digest256 tensor_digest(const Digest128& xxh3) noexcept;
/// The digest of a tensor's bytes.
/// @param threads for xxh3_128; 0: one a core.
Digest256 tensor_digest(LeafAlgorithm algorithm, ByteSpan bytes, unsigned threads);

/// Externally synchronised.
class ContentHashList {
 public:
  explicit ContentHashList(LeafAlgorithm algorithm) : algorithm_(algorithm) {}
  /// @param digest what tensor_digest() gives for the tensor's bytes. @param size their number.
  void add(std::string name, const TensorLayout& layout, std::uint64_t size,
           const Digest256& digest);
  /// The hash of all tensors that were added, in any order.
  Digest256 finish() const;

 private:
  struct Entry {
    std::string name;
    std::string text;  ///< what is hashed
  };
  LeafAlgorithm algorithm_;
  std::vector<Entry> entries_;
};

}  // namespace thalia::formats
