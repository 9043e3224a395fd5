// Chunks of 1 MiB of weights through each codec and back on one core: ours with each set of
// instructions, zstd and lz4 of the bytes as they are and of their planes, all beside memcpy; and
// the fastest of ours beside the others. How far each shrinks them stands behind its name.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "codec/float/conversion.h"
#include "codec_peers.h"
#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "settings.h"
#include "thalia/formats/safetensors.h"

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
  for (const SafetensorsTensor& tensor : file.tensors()) {
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

// Beside memcpy where there is no other codec.
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
