// Decodes any bytes as a chunk of each codec and filter, of a length that the input says, and takes
// them through each codec and filter and back, as elements that it chooses. Each set of
// instructions has to do the same.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "codec/chunk/codec.h"
#include "codec/exponents/packed_exponents.h"
#include "codec/planes/split.h"
#include "codec/rans/plane_entropy.h"
#include "format/chunk.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace codec_target {

using codec::Content;
using codec::ElementLayout;
using codec::VectorSet;

using Bytes = std::vector<std::byte>;

constexpr ElementLayout kLayouts[] = {
    {Content::floats, 2, 8},   {Content::floats, 2, 5},   {Content::floats, 4, 8},
    {Content::floats, 8, 11},  {Content::floats, 1, 4},   {Content::bytes, 1, 0},
    {Content::integers, 2, 0}, {Content::integers, 4, 0}, {Content::indices, 8, 0},
};

struct StreamCodec {
  bool (*encode)(ElementLayout, ByteSpan, Bytes&, VectorSet);
  void (*decode)(ByteSpan, MutableByteSpan, VectorSet);
};
constexpr StreamCodec kStreamCodecs[] = {
    {codec::plane_entropy_encode, codec::plane_entropy_decode},
    {codec::packed_exponents_encode, codec::packed_exponents_decode},
};

std::vector<VectorSet> present_sets() {
  std::vector<VectorSet> sets;
  for (const VectorSet set : codec::kVectorSets)
    if (codec::has_vector_set(set)) sets.push_back(set);
  return sets;
}

// Decodes into memory of its own, so that a sanitizer sees a byte too far. Nothing if it is
// refused.
std::optional<Bytes> decoded(const StreamCodec& codec, ByteSpan stored, std::size_t raw_length,
                             VectorSet set) {
  Bytes raw(raw_length);
  try {
    codec.decode(stored, raw, set);
  } catch (const CompressionError&) {
    return std::nullopt;
  }
  return raw;
}

void decode_as_each(ByteSpan stored, std::size_t raw_length, const std::vector<VectorSet>& sets) {
  for (const StreamCodec& codec : kStreamCodecs) {
    const auto expected = decoded(codec, stored, raw_length, VectorSet::portable);
    for (const VectorSet set : sets)
      FUZZ_REQUIRE(decoded(codec, stored, raw_length, set) == expected);
  }
  for (std::uint8_t codec = 0; codec < kCodecCount; ++codec) {
    for (std::uint8_t filter = 0; filter < format::kFilterCount; ++filter) {
      Bytes raw(raw_length);
      try {
        codec::decode_chunk(Codec{codec}, format::Filter{filter}, stored, raw);
      } catch (const FormatError&) {
      } catch (const UnsupportedError&) {
      }
    }
  }
}

void code_and_back(ElementLayout layout, ByteSpan raw, const std::vector<VectorSet>& sets) {
  for (const StreamCodec& codec : kStreamCodecs) {
    Bytes expected;
    const bool shrinks = codec.encode(layout, raw, expected, VectorSet::portable);
    FUZZ_REQUIRE(shrinks == (expected.size() < raw.size()));
    for (const VectorSet set : sets) {
      Bytes stored;
      FUZZ_REQUIRE(codec.encode(layout, raw, stored, set) == shrinks && stored == expected);
      if (!shrinks) continue;
      const auto back = decoded(codec, stored, raw.size(), set);
      FUZZ_REQUIRE(back && std::equal(raw.begin(), raw.end(), back->begin()));
    }
  }
}

using Filter = void (*)(std::size_t, ByteSpan, MutableByteSpan, VectorSet);

void filter_and_back(Filter split, Filter join, std::size_t width, ByteSpan raw,
                     const std::vector<VectorSet>& sets) {
  Bytes expected(raw.size());
  split(width, raw, expected, VectorSet::portable);
  for (const VectorSet set : sets) {
    Bytes planes(raw.size()), back(raw.size());
    split(width, raw, planes, set);
    FUZZ_REQUIRE(planes == expected);
    join(width, planes, back, set);
    FUZZ_REQUIRE(std::equal(raw.begin(), raw.end(), back.begin()));
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  static const std::vector<VectorSet> sets = present_sets();
  constexpr std::size_t kHead = 3;
  if (size < kHead) return;
  const ElementLayout layout = kLayouts[data[0] % std::size(kLayouts)];
  const std::size_t raw_length = data[1] + std::size_t{256} * data[2];
  const ByteSpan bytes = std::as_bytes(std::span(data + kHead, size - kHead));
  decode_as_each(bytes, raw_length, sets);
  code_and_back(layout, bytes, sets);
  for (const std::size_t width : {2, 4, 8})
    filter_and_back(codec::split_planes, codec::join_planes, width, bytes, sets);
  for (const std::size_t width : {4, 8}) {
    filter_and_back(codec::split_difference_planes, codec::join_difference_planes, width, bytes,
                    sets);
  }
}

}  // namespace codec_target
}  // namespace

FUZZ_TARGET(codec)
