// What the threads of an MckpWriter do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/mckp/digest.h"
#include "formats/mckp/format.h"
#include "thalia/formats/mckp.h"

namespace thalia::formats {

/// One tensor while it is compressed.
struct MckpWork {
  MckpWork(LeafAlgorithm digests, std::uint64_t raw_bytes) : digest(digests, raw_bytes) {}

  MckpTensor stored;  ///< all but what compressing tells
  Tensor tensor;
  Tensor base;  ///< where stored.method.delta
  MckpDigest digest;
};

/// The codec that the options ask for, or the usual one.
inline Codec codec_of(const MckpWriteOptions& options) {
  return options.compression.codec.value_or(Codec::plane_entropy);
}

/// Whether a tensor becomes codes, if all its elements are finite.
bool mckp_quantizes(std::string_view name, const Tensor& tensor,
                    const MckpQuantizationOptions& options);

/// Chooses how a tensor is stored. `base` is looked at only where it is of the same kind.
std::shared_ptr<MckpWork> plan_mckp_tensor(std::string name, Tensor tensor,
                                           std::optional<Tensor> base,
                                           const MckpWriteOptions& options);

/// A piece of a tensor's payload.
struct MckpJob {
  std::shared_ptr<MckpWork> tensor;
  std::uint64_t begin = 0;  ///< of the coded form
  std::uint64_t end = 0;
  std::vector<std::byte> out{};

  bool is_last() const noexcept { return end == mckp_coded_length(tensor->stored); }
  /// Makes `out`, and a part of the tensor's digest.
  void run(int level);
};

}  // namespace thalia::formats
