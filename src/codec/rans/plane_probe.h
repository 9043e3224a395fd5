// Which planes of a chunk are worth a closer look, from a sample that costs little.
#pragma once

#include <array>
#include <cstddef>

#include "codec/cpu/element_layout.h"
#include "codec/cpu/processor.h"
#include "codec/planes/split_kernels.h"
#include "thalia/bytes.h"

namespace thalia::codec {

/// How plane_entropy cuts elements.
struct ElementKind {
  std::size_t width;
  bool is_rotated;
};
ElementKind element_kind(ElementLayout layout) noexcept;

/// Whether a plane of `count` bytes that takes so many bits, tables left out, should be coded: a
/// gain of less than a hundredth does not pay for the time.
bool is_worth_coding(std::size_t count, double bits);

/// By the entropy of words from everywhere in the chunk, which has one word or more.
std::array<bool, kMaxPlanes> promising_planes(const ElementKind& kind, ByteSpan raw, VectorSet set);

}  // namespace thalia::codec
