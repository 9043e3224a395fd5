// Chunks of 1 MiB of weights through each codec and back on one core: ours with each set of
// instructions, zstd and lz4 of the bytes as they are and of their planes, all beside memcpy; and
// the fastest of ours beside the others. How far each shrinks them follows its name.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codec/cpu/element_layout.h"
#include "codec/exponents/packed_exponents.h"
#include "codec/float/conversion.h"
#include "codec/frame/lz4_frame.h"
#include "codec/frame/zstd_frame.h"
#include "codec/planes/split.h"
#include "codec/rans/plane_entropy.h"
#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "settings.h"
#include "thalia/formats/safetensors.h"
#include "thalia/types.h"

namespace thalia::bench {
namespace {

// The codecs that weights are compressed with, ours and others, under one shape.
//
// Codecs under one shape, so that all are measured by the same loop. Every chunk that shrinks is
// decoded and compared once before anything is timed, so that no figure comes from a codec that
// loses bytes.

/// Works on one chunk. Neither function is called by two threads at once.
struct ChunkCodec {
  std::string name;
  /// Replaces `out`; if it is not smaller than the raw bytes, the chunk would be stored.
  std::function<void(ByteSpan raw, std::vector<std::byte>& out)> encode;
  /// Decodes what encode() made, if it was smaller.
  std::function<void(ByteSpan stored, MutableByteSpan raw)> decode;
};

/// plane_entropy and packed_exponents with each set of instructions that there is.
std::vector<ChunkCodec> our_codecs(codec::ElementLayout layout);
/// zstd -1, zstd -3 and lz4, each of the bytes as they are and of their planes.
std::vector<ChunkCodec> other_codecs(codec::ElementLayout layout);

/// Chunks of 1 MiB of some data, what a codec makes of them, and memory to decode to.
class CodedChunks {
 public:
  CodedChunks(ChunkCodec codec, ByteSpan raw);
  void encode();
  void decode();
  /// Raw bytes by stored bytes, where a chunk that does not shrink is stored.
  double ratio() const;

 private:
  ByteSpan chunk(std::size_t i) const;

  ChunkCodec codec_;
  ByteSpan raw_;
  std::vector<std::vector<std::byte>> stored_;
  std::vector<std::byte> out_, decoded_;
};

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

}  // namespace
}  // namespace thalia::bench

namespace thalia::bench::codec_subject {
namespace {

using codec::ElementLayout;

struct Weights {
  std::string name;
  ElementLayout layout;
  std::function<std::vector<std::byte>()> make;
};

std::vector<std::byte> normal(DType dtype, std::uint64_t bytes) {
  const auto weights = measure::normal_f32(bytes * 4 / (dtype_bits(dtype) / 8));
  std::vector<std::byte> out(bytes);
  codec::convert_elements(DType::f32, dtype, as_byte_span(weights), out);
  return out;
}

// All tensors of the type, one after the other.
std::vector<std::byte> tensors_of(const SafetensorsFile& file, DType dtype) {
  std::vector<std::byte> out;
  for (const NamedArray& tensor : file.tensors()) {
    if (tensor.dtype != dtype) continue;
    const ByteSpan bytes = tensor.bytes;
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

std::vector<Weights> all_weights(const Settings& settings) {
  std::vector<Weights> out;
  const auto add = [&](const std::string& name, DType dtype, auto make) {
    out.push_back(
        {name + " in " + std::string(dtype_name(dtype)), codec::element_layout(dtype), make});
  };
  if (!settings.data.empty()) {
    const auto file = std::make_shared<SafetensorsFile>(SafetensorsFile::open(settings.data));
    const std::string name = std::filesystem::path(settings.data).filename().string();
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64})
      if (!tensors_of(*file, dtype).empty())
        add(name, dtype, [=] { return tensors_of(*file, dtype); });
    return out;
  }
  for (const DType dtype : {DType::bf16, DType::f32, DType::f16}) {
    const std::uint64_t bytes = settings.bytes();
    add("normal, sigma 0.02,", dtype, [=] { return normal(dtype, bytes); });
  }
  return out;
}

struct Subject {
  std::vector<std::byte> raw, copied;
  std::unique_ptr<CodedChunks> ours, other;
};

std::string with_ratio(const ChunkCodec& codec, const CodedChunks& chunks) {
  char text[32];
  std::snprintf(text, sizeof text, " (%.4f)", chunks.ratio());
  return codec.name + text;
}

using Direction = void (CodedChunks::*)();

// Beside memcpy if there is no other codec.
void add_comparison(PairedSuite& suite, const Weights& weights, const ChunkCodec& ours,
                    const ChunkCodec* other, Direction direction, const char* what) {
  const std::string of = weights.name + ", " + what + ", " + ours.name + " beside ";
  suite.add(of + (other == nullptr ? "memcpy" : other->name), [=, second = other == nullptr
                                                                               ? ChunkCodec{}
                                                                               : *other] {
    const auto subject = std::make_shared<Subject>();
    subject->raw = weights.make();
    subject->ours = std::make_unique<CodedChunks>(ours, subject->raw);
    Comparison comparison;
    comparison.ours = {with_ratio(ours, *subject->ours), [=] { (*subject->ours.*direction)(); }};
    if (second.name.empty()) {
      subject->copied.resize(subject->raw.size());
      comparison.floor = {"memcpy", [=] { copy(subject->raw, subject->copied); }};
    } else {
      subject->other = std::make_unique<CodedChunks>(second, subject->raw);
      comparison.floor = {with_ratio(second, *subject->other),
                          [=] { (*subject->other.*direction)(); }};
    }
    comparison.bytes = subject->raw.size();
    return comparison;
  });
}

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  for (const Weights& weights : all_weights(settings)) {
    const auto ours = our_codecs(weights.layout), others = other_codecs(weights.layout);
    for (const auto& [direction, what] :
         {std::pair<Direction, const char*>{&CodedChunks::encode, "encode"},
          std::pair<Direction, const char*>{&CodedChunks::decode, "decode"}}) {
      for (const auto* codecs : {&ours, &others})
        for (const ChunkCodec& codec : *codecs)
          add_comparison(suite, weights, codec, nullptr, direction, what);
      // The last two are those of the fastest set.
      for (std::size_t i = ours.size() - 2; i < ours.size(); ++i)
        for (const ChunkCodec& other : others)
          add_comparison(suite, weights, ours[i], &other, direction, what);
    }
  }
  return false;
}

}  // namespace thalia::bench::codec_subject
