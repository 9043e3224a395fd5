// What became of one tensor since its base, and the smallest way to say it. docs/format/deltas.md,
// "Tensors of a delta" and "Thresholds".
#pragma once

#include <cstdint>
#include <vector>

#include "integrity/content_hash.h"
#include "state/delta/partwise_bytes.h"
#include "thalia/state/delta.h"

namespace thalia::state {

/// Whether elements may keep the base's value: `threshold` is the limit that they stay below, 0 for
/// exact.
struct KeptWithin {
  double threshold = 0;
  DType dtype = DType::f32;

  bool is_exact() const noexcept { return threshold == 0; }
  /// Gives elements of `bytes` the base's bits if they moved by less. Both hold the same whole
  /// elements.
  void apply(ByteSpan base, MutableByteSpan bytes) const;
};

/// True of the types whose elements may keep the base's value.
bool has_threshold(DType dtype) noexcept;

/// The new bytes and the base's, of one length, both made piece by piece. Borrows all; any number
/// of threads.
class DeltaChange {
 public:
  /// Piece i is [i * kPiece, …): a piece of the content hash, and whole blocks of a list whatever
  /// the width of an element.
  static constexpr std::uint64_t kPiece = 1 << 20;

  DeltaChange(const PartwiseBytes& now, const PartwiseBytes& base, KeptWithin within,
              const DeltaOptions& options)
      : now_(now), base_(base), within_(within), options_(options) {}

  std::uint64_t size() const noexcept { return now_.size(); }
  std::uint64_t pieces() const noexcept { return size() / kPiece + (size() % kPiece != 0); }
  const DeltaOptions& options() const noexcept { return options_; }

  /// Bytes that each way of storing would take, estimated from a few samples.
  struct Estimate {
    double difference = 0;
    double list = 0;
    double list_raw = 0;  ///< before compression
    double whole = 0;
  };
  /// @param width bytes of an element.
  Estimate estimate(unsigned width) const;
  /// Whether bytes of the samples differ, as given: the tensor is not the base's.
  bool samples_differ() const;
  /// The same of the first sample alone: of a base that has to be made, a chunk or two.
  bool first_sample_differs() const;

  /// What comes out, and the base, at one place. The buffers are used where bytes do not lie in
  /// memory.
  struct Pair {
    ByteSpan now;
    ByteSpan base;
    std::vector<std::byte> now_buffer;
    std::vector<std::byte> base_buffer;
  };
  void read_pair(std::uint64_t begin, std::uint64_t length, Pair& out) const;
  void read_piece(std::uint64_t i, Pair& out) const;

  /// Digests both sides of a piece part by part, while a part is in the cache. Up to the first part
  /// that differs the base has the hash of the other side.
  class Hasher {
   public:
    /// Borrows the pair. @param with_base whether the base's hash is wanted.
    Hasher(const Pair& pair, bool with_base) : pair_(pair), with_base_(with_base) {}
    /// The next `length` bytes. @param differs whether they may differ from the base's.
    void update(std::size_t length, bool differs);
    std::size_t done() const noexcept { return done_; }
    /// Once, after all parts; `base` is written to if it is wanted.
    void finish(integrity::PieceDigest& now, Digest128* base);

   private:
    const Pair& pair_;
    bool with_base_;
    bool differs_ = false;
    std::size_t done_ = 0;
    integrity::PieceHasher now_;
    integrity::Xxh3 base_;
  };

 private:
  /// Sample i is `length` bytes at i * distance.
  struct Samples {
    std::uint64_t count;
    std::uint64_t length;
    std::uint64_t distance;
  };
  struct Taken;
  /// @param longer how many times as long as usual.
  Samples samples(std::uint64_t longer) const noexcept;
  void take(std::uint64_t begin, std::uint64_t length, unsigned width, Taken& out) const;
  void add_encoded(const Taken& taken, Estimate& out) const;
  bool sample_differs(std::uint64_t begin, std::uint64_t length,
                      std::vector<std::byte> (&buffers)[2]) const;

  const PartwiseBytes& now_;
  const PartwiseBytes& base_;
  KeptWithin within_;
  const DeltaOptions& options_;
};

}  // namespace thalia::state
