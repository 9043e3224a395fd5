// What a delta is taken against: the files of a chain, or a state in memory. docs/format/deltas.md,
// "Delta files".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "state/delta/file_chain.h"
#include "state/delta/partwise_bytes.h"
#include "thalia/state/delta.h"
#include "thalia/types.h"

namespace thalia::state {

/// One tensor of a base: what it is, and its bytes once they are asked for.
class BaseTensor {
 public:
  virtual ~BaseTensor() = default;
  const TensorLayout& layout() const noexcept { return tensor_.layout; }
  std::uint64_t size() const noexcept { return tensor_.logical_bytes; }
  /// The CRC-32 is 0 where crc32() is not known.
  integrity::ContentDigest digest() const noexcept {
    return {crc32_.value_or(0), tensor_.content_hash};
  }
  /// nullopt where the base does not state it.
  std::optional<std::uint32_t> crc32() const noexcept { return crc32_; }
  /// The bytes, which stay valid as long as what is returned lives. @throws UsageError for memory
  /// that is not what the digest says; what reading throws.
  virtual std::shared_ptr<const PartwiseBytes> open() = 0;
  /// The same before they are held against the digest: for a guess, or for who reads all of them
  /// and calls check() before anything that came of them is used.
  virtual std::shared_ptr<const PartwiseBytes> open_unchecked() { return open(); }
  /// Whether check() is still to be called for the bytes of open_unchecked().
  virtual bool needs_check() const noexcept { return false; }
  /// @param hash the content hash of the bytes as they are now. @throws UsageError if it is not the
  /// tensor's.
  virtual void check(const Digest128& hash) { static_cast<void>(hash); }

 protected:
  BaseTensor(const ChainTensor& tensor, std::optional<std::uint32_t> crc32)
      : tensor_(tensor), crc32_(crc32) {}

 private:
  ChainTensor tensor_;
  std::optional<std::uint32_t> crc32_;
};

/// The names of what is in a base, to find what a state no longer has.
struct BaseNames {
  struct Region {
    std::string name;
    std::vector<std::string> tensors;
  };
  struct Connection {
    std::string source;  ///< short names
    std::string target;
    bool delays = false;
  };
  std::vector<Region> regions;
  std::vector<Connection> connections;
};

class BaseState {
 public:
  virtual ~BaseState() = default;
  virtual std::filesystem::path path() const = 0;
  virtual FileIdentity identity() const = 0;
  virtual std::uint64_t file_bytes() const = 0;
  /// The files that the target may not replace.
  virtual std::vector<std::filesystem::path> files() const = 0;
  virtual BaseNames names() const = 0;
  /// null if it has none. @throws FormatError, IntegrityError, naming the file.
  virtual std::unique_ptr<BaseTensor> find(const TensorKey& key) const = 0;
};

/// Borrows the chain.
std::unique_ptr<BaseState> file_base(const ChainReader& chain);

/// Borrows both. @param work whose threads hold memory against its digests, until it is cancelled.
std::unique_ptr<BaseState> memory_base(const SavedState& saved, const Work& work);

}  // namespace thalia::state
