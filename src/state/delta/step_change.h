// A change as steps of its elements. docs/format/deltas.md, "step_delta".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codec/step/step_code.h"
#include "integrity/content_hash.h"
#include "state/delta/change.h"
#include "thalia/types.h"

namespace thalia::state {

/// The steps of a dense tensor, counted in one pass over a change and coded in a second one, on as
/// many threads as the change's options say. Borrows the change.
class StepChange {
 public:
  /// Counts. @param with_base whether base_hash() is asked for. @throws CancelledError.
  StepChange(const DeltaChange& change, const codec::StepKind& kind, bool with_base = false);

  /// The digest of what comes out.
  const integrity::ContentDigest& digest() const noexcept { return digest_; }
  /// The content hash of the base, as it is now.
  const Digest128& base_hash() const noexcept { return base_hash_; }
  /// Elements that differ.
  std::uint64_t changed() const noexcept { return changed_; }
  /// What coding will take, nearly.
  std::uint64_t expected_bytes() const noexcept { return code_.expected_bytes; }

  /// Codes. @param kept bytes that may stay in memory; if there are more, they are made again when
  /// they are written. @return bytes that write() writes. @throws CancelledError.
  std::uint64_t encode(std::uint64_t kept);
  using Write = std::function<void(ByteSpan)>;
  void write(const Write& write) const;

 private:
  struct Coding;
  void encode_chunk(std::size_t number, Coding& coding, std::vector<std::byte>& out) const;

  const DeltaChange& change_;
  codec::StepKind kind_;
  integrity::ContentDigest digest_;
  Digest128 base_hash_;
  std::uint64_t changed_ = 0;
  codec::StepCode code_;
  std::vector<std::uint32_t> lengths_;          ///< of chunks
  std::vector<std::vector<std::byte>> chunks_;  ///< none if they are not kept
};

}  // namespace thalia::state
