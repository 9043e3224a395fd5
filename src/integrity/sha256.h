// SHA-256 (FIPS 180-4), incremental.
#pragma once

#include <memory>

#include "thalia/types.h"

namespace thalia::integrity {

/// Externally synchronised. @throws UnsupportedError (unsupported_feature) if the cryptographic
/// library refuses SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  Sha256& update(ByteSpan bytes);
  /// Ends the computation and starts over.
  Digest256 finish();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;
};

Digest256 sha256(ByteSpan bytes);

}  // namespace thalia::integrity
