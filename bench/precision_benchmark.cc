// Conversions between floating point types on one core, beside a memcpy of the bytes that they
// read: with each set of instructions, in the cache and out of it, and with what measuring the loss
// adds.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "codec/float/conversion.h"
#include "codec/float/loss.h"
#include "floors.h"
#include "measure/samples.h"
#include "paired.h"
#include "settings.h"

namespace thalia::bench::precision_subject {
namespace {

using codec::InstructionSet;

struct Pair {
  DType from;
  DType to;
};

std::string_view set_name(InstructionSet set) {
  return set == InstructionSet::avx512 ? "avx512"
         : set == InstructionSet::f16c ? "f16c"
                                       : "portable";
}

struct Arrays {
  Arrays(Pair types, std::uint64_t bytes) : pair(types), in(bytes), copied(bytes) {
    const auto weights = measure::normal_f32(bytes * 4 / element_bytes(pair.from));
    codec::convert_elements(DType::f32, pair.from, as_byte_span(weights), in);
    out.resize(bytes / element_bytes(pair.from) * element_bytes(pair.to));
  }
  static std::uint64_t element_bytes(DType dtype) { return dtype_bits(dtype) / 8; }

  void convert(InstructionSet set) { codec::convert_elements(pair.from, pair.to, in, out, set); }

  // A piece at a time, as a conversion of files does.
  void convert_and_measure() {
    constexpr std::uint64_t kPiece = 32 << 10;
    codec::ConversionLoss loss;
    for (std::uint64_t i = 0; i < in.size(); i += kPiece) {
      const ByteSpan piece = ByteSpan(in).subspan(i, std::min(kPiece, in.size() - i));
      const auto scale = [&](std::uint64_t n) {
        return n / element_bytes(pair.from) * element_bytes(pair.to);
      };
      const MutableByteSpan target = MutableByteSpan(out).subspan(scale(i), scale(piece.size()));
      codec::convert_elements(pair.from, pair.to, piece, target);
      codec::measure_loss(pair.from, pair.to, piece, target, loss);
    }
  }

  Pair pair;
  std::vector<std::byte> in, out, copied;
};

}  // namespace

bool add_subject(const Settings& settings, PairedSuite& suite) {
  constexpr Pair kPairs[] = {{DType::f32, DType::f16},  {DType::f32, DType::bf16},
                             {DType::f16, DType::f32},  {DType::bf16, DType::f32},
                             {DType::f64, DType::f32},  {DType::f64, DType::f16},
                             {DType::f64, DType::bf16}, {DType::f16, DType::bf16}};
  const auto add = [&](Pair pair, std::uint64_t bytes, const std::string& how, auto work) {
    const std::string name = std::string(dtype_name(pair.from)) + " to " +
                             std::string(dtype_name(pair.to)) + ", " + how + ", " +
                             size_name(bytes);
    suite.add(name, [=] {
      const auto arrays = std::make_shared<Arrays>(pair, bytes);
      Comparison comparison{
          .ours = {"convert_elements", [=] { work(*arrays); }},
          .floor = {"memcpy, one core", [=] { copy(arrays->in, arrays->copied); }}};
      comparison.bytes = bytes;
      return comparison;
    });
  };
  std::vector<std::uint64_t> sizes{256u << 10, settings.bytes()};
  if (settings.smoke) sizes = {settings.bytes()};
  for (const std::uint64_t bytes : sizes) {
    for (const Pair pair : kPairs) {
      for (const InstructionSet set : codec::kInstructionSets) {
        if (!codec::has_instruction_set(set)) continue;
        add(pair, bytes, std::string(set_name(set)), [=](Arrays& arrays) { arrays.convert(set); });
      }
    }
    for (const DType to : {DType::f16, DType::bf16}) {
      add({DType::f32, to}, bytes, "and measured",
          [](Arrays& arrays) { arrays.convert_and_measure(); });
    }
  }
  return false;
}

}  // namespace thalia::bench::precision_subject
