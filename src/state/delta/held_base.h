// A state that somebody holds already, in memory or as another file, as the end of a chain: deltas
// over it are read down to it, and what it was saved in is not opened. docs/use/follow.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "state/delta/file_chain.h"
#include "state/delta/partwise_bytes.h"
#include "thalia/state/delta.h"
#include "thalia/types.h"

namespace thalia::state {

struct HeldBytes {
  ChainTensor tensor;
  std::optional<std::uint32_t> crc32{};  ///< if it is known
  std::shared_ptr<const PartwiseBytes> bytes;
};

/// Immutable while chains that end in it are in use; any number of threads.
class HeldBase {
 public:
  virtual ~HeldBase() = default;
  /// That of the file that the state was saved in.
  virtual FileIdentity identity() const = 0;
  virtual std::optional<HeldBytes> find(const TensorKey& key) const = 0;

 protected:
  HeldBase() = default;
  HeldBase(const HeldBase&) = default;
  HeldBase& operator=(const HeldBase&) = default;
};

/// What a delta's header calls its base by.
FileIdentity identity_of(const detail::OpenFile& file, unsigned depth);

}  // namespace thalia::state
