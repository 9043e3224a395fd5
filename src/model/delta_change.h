// What became of one tensor since its base, and the smallest way to say it. docs/format.md,
// "Tensors of a delta" and "Thresholds".
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "integrity/content_hash.h"
#include "model/tensor_chain.h"
#include "thalia/delta.h"

namespace thalia::model {

/// Where elements may keep the base's value: `threshold` is the bound, 0 for exact.
struct KeptWithin {
  double threshold = 0;
  DType dtype = DType::f32;

  bool is_exact() const noexcept { return threshold == 0; }
  /// Gives elements of `bytes` the bits that the base has, where they moved by less. Both hold the
  /// same whole elements.
  void apply(ByteSpan base, MutableByteSpan bytes) const;
};

/// True of the types whose elements may keep the base's value.
bool has_threshold(DType dtype) noexcept;

/// The elements that moved, as sparse_delta stores them.
struct ChangeList {
  struct Part {  ///< of consecutive blocks
    std::vector<std::uint64_t> counts;
    std::vector<std::uint16_t> positions;
    std::vector<std::byte> values;
  };
  std::vector<Part> parts;
  std::uint64_t count = 0;
};

/// The new bytes and the base's, of one length; the base is made piece by piece. Borrows all.
class Change {
 public:
  Change(ByteSpan bytes, const FittedBase& base, KeptWithin within, const DeltaOptions& options)
      : bytes_(bytes), base_(base), within_(within), options_(options) {}

  /// Bytes that each way takes, judged by a few samples.
  struct Estimate {
    double difference = 0;
    double list = 0;
    double list_raw = 0;  ///< before compression
    double whole = 0;
  };
  Estimate estimate(unsigned width) const;

  struct Scan {
    integrity::ContentDigest digest;  ///< of what comes out
    std::optional<ChangeList> list;   ///< nullopt where it would pass the bound
  };
  /// Compares everything, on as many threads as the options say. @param most_list bytes that the
  /// list may have. @throws CancelledError.
  Scan scan(unsigned width, std::uint64_t most_list) const;

  /// The bytes [begin, begin + out.size()) of the difference, as xor_base stores it.
  void difference(std::uint64_t begin, MutableByteSpan out) const;

 private:
  // What comes out, and the base, of a part.
  void read_pair(std::uint64_t begin, MutableByteSpan result, MutableByteSpan base) const;

  ByteSpan bytes_;
  const FittedBase& base_;
  KeptWithin within_;
  const DeltaOptions& options_;
};

}  // namespace thalia::model
