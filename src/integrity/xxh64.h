// XXH64, seed 0: the checksum of MCKP files. docs/format/mckp.md, "Checksums".
#pragma once

#include <cstdint>
#include <memory>

#include "thalia/types.h"

namespace thalia::integrity {

std::uint64_t xxh64(ByteSpan bytes) noexcept;

/// The hash of bytes that come in pieces. Externally synchronised.
class Xxh64 {
 public:
  Xxh64();
  ~Xxh64();
  Xxh64(Xxh64&&) noexcept;
  Xxh64& operator=(Xxh64&&) noexcept;
  void reset() noexcept;
  void update(ByteSpan bytes) noexcept;
  std::uint64_t finish() const noexcept;

 private:
  struct Free {
    void operator()(void* state) const noexcept;
  };
  std::unique_ptr<void, Free> state_;
};

}  // namespace thalia::integrity
