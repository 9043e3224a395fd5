// Which planes of a chunk are worth a closer look, from a sample that costs little.
#pragma once

#include <array>
#include <cstddef>

#include "codec/cpu/element_layout.h"
#include "codec/cpu/processor.h"
#include "codec/planes/split_kernels.h"
#include "thalia/types.h"

namespace thalia::codec {

/// How plane_entropy cuts elements.
struct ElementKind {
  std::size_t width;
  bool is_rotated;
};
ElementKind element_kind(ElementLayout layout) noexcept;

/// Whether a plane of `count` bytes should be coded if that takes `bits` bits, tables left out:
/// saving less than a hundredth is not worth the time.
bool is_worth_coding(std::size_t count, double bits);

/// Decides by the entropy of sampled words from all over the chunk, which must have at least one
/// word.
std::array<bool, kMaxPlanes> promising_planes(const ElementKind& kind, ByteSpan raw, VectorSet set);

}  // namespace thalia::codec
