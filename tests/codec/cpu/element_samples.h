// Chunks of elements for tests of codecs, and what every codec has to do with them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/cpu/element_layout.h"
#include "codec/cpu/processor.h"
#include "thalia/types.h"

namespace thalia::test {

using Bytes = std::vector<std::byte>;

struct ElementSample {
  std::string name;
  Bytes bytes;
};

/// Normal weights, mean 0, sigma 0.02, as floats of this layout; of integers, of sigma 30.
Bytes normal_elements(codec::ElementLayout layout, std::size_t count, std::uint64_t seed = 1);

/// Chunks of all kinds and of lengths that are not whole elements: nothing, weights, zeros, one
/// value, two values, every byte, special floats, noise, noise in some planes only.
std::vector<ElementSample> element_samples(codec::ElementLayout layout);

/// The layouts of floats of 2, 4 and 8 bytes, of fp8, and of integers and bytes.
std::vector<codec::ElementLayout> float_layouts();
std::vector<codec::ElementLayout> all_layouts();

std::vector<codec::VectorSet> present_vector_sets();

struct StreamCodec {
  bool (*encode)(codec::ElementLayout, ByteSpan, Bytes&, codec::VectorSet);
  void (*decode)(ByteSpan, MutableByteSpan, codec::VectorSet);
};

/// Decodes with fences around the raw bytes, from bytes that end where the stream ends. @throws
/// what the codec throws. The fences are checked in any case.
Bytes decode_fenced(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length,
                    codec::VectorSet set);

/// Each sample of each layout comes back, with the same stream from each set of instructions and
/// from each set again, and a stream is smaller than what it holds.
void check_round_trips(const StreamCodec& codec, const std::vector<codec::ElementLayout>& layouts);

/// Every truncation is refused; a flip of any bit of any byte, a byte more, and other raw lengths
/// are refused with CompressionError or decode to something.
void check_survives_damage(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length);

/// The codec and message of the CompressionError that decoding ends with; empty if it does not.
std::string refusal(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length);

}  // namespace thalia::test
