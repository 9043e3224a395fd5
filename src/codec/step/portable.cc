// The kernels of step_delta in plain C++: what all others have to agree with.
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "codec/step/kernels.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

using format::le16;
using format::LittleEndian;

template <typename Code>
Code load(const std::byte* at) noexcept {
  LittleEndian<Code> stored;
  std::memcpy(&stored, at, sizeof(stored));
  return stored;
}

template <typename Code>
void store(Code code, std::byte* at) noexcept {
  const LittleEndian<Code> stored = code;
  std::memcpy(at, &stored, sizeof(stored));
}

template <typename Code>
constexpr Code kSign = static_cast<Code>(1u << (std::numeric_limits<Code>::digits - 1));

// The place of a code among all codes in the order of their values.
template <typename Code>
Code ordinal(Code code, bool is_float) noexcept {
  if (!is_float) return code;
  return static_cast<Code>((code & kSign<Code>) != 0 ? ~code : code | kSign<Code>);
}

template <typename Code>
Code code_at(Code ordinal, bool is_float) noexcept {
  if (!is_float) return ordinal;
  return static_cast<Code>((ordinal & kSign<Code>) != 0 ? ordinal ^ kSign<Code> : ~ordinal);
}

template <typename Code>
int step_of(Code base, Code next, bool is_float) noexcept {
  const auto step = static_cast<Code>(ordinal(next, is_float) - ordinal(base, is_float));
  constexpr int kCodes = 1 << (8 * sizeof(Code));
  return step < kCodes / 2 ? step : step - kCodes;
}

unsigned exponent_of(unsigned code, const StepKind& kind) noexcept {
  return kind.is_float ? code >> kind.exponent_shift & kind.exponent_mask : 0;
}

std::size_t class_of(unsigned code, const StepKind& kind, unsigned first_class) noexcept {
  const unsigned exponent = exponent_of(code, kind);
  if (exponent <= first_class) return 0;
  return exponent - first_class < kStepClasses ? exponent - first_class : kStepClasses - 1;
}

std::size_t magnitude_of(int step) noexcept {
  const auto distance = static_cast<unsigned>(step < 0 ? -step : step);
  if (distance < 4) return distance;
  const auto magnitude = static_cast<std::size_t>(std::bit_width(distance)) + 1;
  return magnitude < kStepEscape ? magnitude : kStepEscape;
}

std::size_t symbol_of(int step) noexcept {
  const std::size_t magnitude = magnitude_of(step);
  if (magnitude == 0 || magnitude == kStepEscape) return magnitude == 0 ? 0 : kStepSymbols - 1;
  return 2 * magnitude - (step > 0);
}

template <typename Code>
void count_codes(const StepKind& kind, const std::byte* base, const std::byte* next,
                 std::size_t count, StepExponentCounts& counts) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const Code old = load<Code>(base + i * sizeof(Code));
    const int step = step_of(old, load<Code>(next + i * sizeof(Code)), kind.is_float);
    ++counts[exponent_of(old, kind)][symbol_of(step)];
  }
}

template <typename Code>
void append_extras(const StepKind& kind, const std::byte* base, const std::byte* next,
                   std::size_t count, StepBitSink& sink) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const int step = step_of(load<Code>(base + i * sizeof(Code)),
                             load<Code>(next + i * sizeof(Code)), kind.is_float);
    const std::size_t magnitude = magnitude_of(step);
    if (magnitude < 4) continue;
    const bool is_escape = magnitude == kStepEscape;
    const std::uint64_t extra =
        is_escape ? static_cast<Code>(step)
                  : static_cast<unsigned>(step < 0 ? -step : step) - kStepLeast[magnitude];
    sink.pending |= extra << sink.count;
    sink.count += is_escape ? kind.bits() : kStepExtraBits[magnitude];
    for (; sink.count >= 8; sink.count -= 8, sink.pending >>= 8)
      *sink.at++ = static_cast<std::byte>(sink.pending & 0xff);
  }
}

template <typename Code>
std::byte* encode_codes(const StepModel& model, const std::byte* base, const std::byte* next,
                        std::size_t count, std::uint32_t* states, std::byte* words) noexcept {
  const unsigned lane_mask = model.lanes - 1u;
  for (std::size_t i = count; i-- > 0;) {
    const Code old = load<Code>(base + i * sizeof(Code));
    const int step = step_of(old, load<Code>(next + i * sizeof(Code)), model.kind.is_float);
    const std::size_t row = class_of(old, model.kind, model.first_class);
    const std::size_t magnitude = magnitude_of(step);
    const std::uint32_t frequency = model.tables.frequency[magnitude][row];
    std::uint32_t start = model.tables.start[magnitude][row];
    if (step < 0 && magnitude != kStepEscape) start += frequency;
    std::uint32_t& state = states[i & lane_mask];
    // The bound is 2^32 where the frequency is all: one less is compared.
    if (state > (frequency << 17) - 1) {
      words -= sizeof(le16);
      store(static_cast<std::uint16_t>(state & 0xffff), words);
      state >>= 16;
    }
    state = (state / frequency << kStepScaleBits) + state % frequency + start;
  }
  return words;
}

// The next `width` extra bits, 16 at most.
bool take_bits(StepRun& run, unsigned width, unsigned& value) noexcept {
  const auto size = static_cast<std::uint64_t>(run.end - run.begin);
  if (run.bits + width > 8 * size) return false;
  value = 0;
  unsigned have = 0;
  while (have < width) {
    const auto byte = std::to_integer<unsigned>(*(run.end - 1 - run.bits / 8));
    const auto skip = static_cast<unsigned>(run.bits % 8);
    const unsigned taken = width - have < 8 - skip ? width - have : 8 - skip;
    value |= (byte >> skip & ((1u << taken) - 1)) << have;
    have += taken;
    run.bits += taken;
  }
  return true;
}

template <typename Code>
bool decode_codes(StepRun& run, const std::byte* base, std::byte* out, std::size_t count) noexcept {
  const StepModel& model = run.model;
  const StepTables& tables = model.tables;
  const unsigned lane_mask = model.lanes - 1u;
  for (std::size_t i = 0; i < count; ++i) {
    const Code old = load<Code>(base + i * sizeof(Code));
    const std::size_t row = class_of(old, model.kind, model.first_class);
    std::uint32_t& state = run.states[i & lane_mask];
    const std::uint32_t slot = state & (kStepScale - 1);
    std::size_t magnitude = 0;
    while (magnitude < kStepEscape && slot >= tables.start[magnitude + 1][row]) ++magnitude;
    const std::uint32_t frequency = tables.frequency[magnitude][row];
    std::uint32_t start = tables.start[magnitude][row];
    int step = kStepLeast[magnitude];
    unsigned extra = 0;
    if (magnitude == kStepEscape) {
      if (!take_bits(run, model.kind.bits(), extra)) return false;
      step = static_cast<int>(extra);
    } else if (magnitude != 0) {
      if (!take_bits(run, kStepExtraBits[magnitude], extra)) return false;
      step += static_cast<int>(extra);
      if (slot - start >= frequency) {
        start += frequency;
        step = -step;
      }
    }
    state = frequency * (state >> kStepScaleBits) + slot - start;
    if (state < kStepLow) {
      if (run.end - run.words < std::ptrdiff_t{sizeof(le16)}) return false;
      state = state << 16 | load<std::uint16_t>(run.words);
      run.words += sizeof(le16);
    }
    const auto moved = static_cast<Code>(ordinal(old, model.kind.is_float) + step);
    store(code_at(moved, model.kind.is_float), out + i * sizeof(Code));
  }
  return true;
}

// One at a time is all there is, and whether there were enough bytes is said by that.
std::size_t decode_none(StepRun&, const std::byte*, std::byte*, std::size_t) noexcept {
  return 0;
}

}  // namespace

void step_count_some(const StepKind& kind, const std::byte* base, const std::byte* next,
                     std::size_t count, StepExponentCounts& counts) noexcept {
  (kind.bytes == 1 ? count_codes<std::uint8_t> : count_codes<std::uint16_t>)(kind, base, next,
                                                                             count, counts);
}

void step_extras_some(const StepKind& kind, const std::byte* base, const std::byte* next,
                      std::size_t count, StepBitSink& sink) noexcept {
  (kind.bytes == 1 ? append_extras<std::uint8_t> : append_extras<std::uint16_t>)(kind, base, next,
                                                                                 count, sink);
}

std::byte* step_encode_some(const StepModel& model, const std::byte* base, const std::byte* next,
                            std::size_t count, std::uint32_t* states, std::byte* words) noexcept {
  return (model.kind.bytes == 1
              ? encode_codes<std::uint8_t>
              : encode_codes<std::uint16_t>)(model, base, next, count, states, words);
}

bool step_decode_some(StepRun& run, const std::byte* base, std::byte* out,
                      std::size_t count) noexcept {
  return (run.model.kind.bytes == 1 ? decode_codes<std::uint8_t>
                                    : decode_codes<std::uint16_t>)(run, base, out, count);
}

const StepKernels kPortableStep = {.count = step_count_some,
                                   .extras = step_extras_some,
                                   .encode = step_encode_some,
                                   .decode = decode_none};

}  // namespace thalia::codec
