// Codecs under one shape, so that all are measured by the same loop. Every chunk that shrinks is
// decoded and compared once before anything is timed, so that no figure comes from a codec that
// loses bytes.
#include "codec_peers.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "codec/exponents/packed_exponents.h"
#include "codec/frame/lz4_frame.h"
#include "codec/frame/zstd_frame.h"
#include "codec/planes/split.h"
#include "codec/rans/plane_entropy.h"

namespace thalia::bench {
namespace {

using Bytes = std::vector<std::byte>;
using codec::ElementLayout;
using codec::VectorSet;

constexpr std::size_t kChunk = 1 << 20;

std::string set_name(VectorSet set) {
  return set == VectorSet::avx512 ? "avx512" : set == VectorSet::avx2 ? "avx2" : "portable";
}

// The same codec for byte planes. Splitting and joining count as part of its time, as they do for
// the codecs that do it themselves.
ChunkCodec of_planes(const ChunkCodec& codec, std::size_t width) {
  return {codec.name + " of byte planes",
          [=, planes = Bytes()](ByteSpan raw, Bytes& out) mutable {
            planes.resize(raw.size());
            codec::split_planes(width, raw, planes);
            codec.encode(planes, out);
          },
          [=, planes = Bytes()](ByteSpan stored, MutableByteSpan raw) mutable {
            planes.resize(raw.size());
            codec.decode(stored, planes);
            codec::join_planes(width, planes, raw);
          }};
}

}  // namespace

std::vector<ChunkCodec> our_codecs(ElementLayout layout) {
  std::vector<ChunkCodec> codecs;
  for (const VectorSet set : codec::kVectorSets) {
    if (!codec::has_vector_set(set)) continue;
    codecs.push_back(
        {"plane_entropy, " + set_name(set),
         [=](ByteSpan raw, Bytes& out) { codec::plane_entropy_encode(layout, raw, out, set); },
         [=](ByteSpan stored, MutableByteSpan raw) {
           codec::plane_entropy_decode(stored, raw, set);
         }});
    codecs.push_back(
        {"packed_exponents, " + set_name(set),
         [=](ByteSpan raw, Bytes& out) { codec::packed_exponents_encode(layout, raw, out, set); },
         [=](ByteSpan stored, MutableByteSpan raw) {
           codec::packed_exponents_decode(stored, raw, set);
         }});
  }
  return codecs;
}

std::vector<ChunkCodec> other_codecs(ElementLayout layout) {
  std::vector<ChunkCodec> codecs;
  const auto add = [&](const ChunkCodec& codec) {
    codecs.push_back(codec);
    if (layout.element_bytes > 1) codecs.push_back(of_planes(codec, layout.element_bytes));
  };
  const auto decode_zstd = [](ByteSpan stored, MutableByteSpan raw) {
    codec::zstd_decode(stored, raw);
  };
  for (const int level : {1, 3}) {
    add({"zstd -" + std::to_string(level),
         [=](ByteSpan raw, Bytes& out) { codec::zstd_encode(level, raw, out); }, decode_zstd});
  }
  add({"lz4 -1", [](ByteSpan raw, Bytes& out) { codec::lz4_encode(1, raw, out); },
       [](ByteSpan stored, MutableByteSpan raw) { codec::lz4_decode(stored, raw); }});
  return codecs;
}

CodedChunks::CodedChunks(ChunkCodec codec, ByteSpan raw)
    : codec_(std::move(codec)), raw_(raw), decoded_(kChunk) {
  for (std::size_t i = 0; i * kChunk < raw_.size(); ++i) {
    codec_.encode(chunk(i), out_);
    const bool shrinks = out_.size() < chunk(i).size();
    stored_.push_back(shrinks ? out_ : Bytes(chunk(i).begin(), chunk(i).end()));
    if (!shrinks) continue;
    const MutableByteSpan decoded = MutableByteSpan(decoded_).first(chunk(i).size());
    codec_.decode(stored_.back(), decoded);
    if (!std::equal(decoded.begin(), decoded.end(), chunk(i).begin()))
      throw std::logic_error(codec_.name + " does not give back what it was given");
  }
}

ByteSpan CodedChunks::chunk(std::size_t i) const {
  return raw_.subspan(i * kChunk, std::min(kChunk, raw_.size() - i * kChunk));
}

void CodedChunks::encode() {
  for (std::size_t i = 0; i < stored_.size(); ++i) codec_.encode(chunk(i), out_);
}

void CodedChunks::decode() {
  // A chunk that did not shrink would be stored, so that a copy stands for its decoding.
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const MutableByteSpan decoded = MutableByteSpan(decoded_).first(chunk(i).size());
    if (stored_[i].size() < decoded.size()) {
      codec_.decode(stored_[i], decoded);
    } else {
      std::copy(stored_[i].begin(), stored_[i].end(), decoded.begin());
    }
  }
}

double CodedChunks::ratio() const {
  std::size_t stored = 0;
  for (const auto& chunk : stored_) stored += chunk.size();
  return static_cast<double>(raw_.size()) / static_cast<double>(stored);
}

}  // namespace thalia::bench
