// A coded plane and its decoder. Encoding runs backward from the last symbol, and its words grow
// downward in a buffer of their own, since their number is known only at the end; they are copied
// after the states then. Decoding runs forward through the stored bytes.
// The constructor of a decoder checks bitmap, frequencies and states before a table is made of
// them. decode() checks that there are words, and finish() that all were used and every state has
// come back to where the encoder began: so a plane has one reading, and damage rarely passes
// unseen.
#include "codec/rans/coded_plane.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/cpu/scratch.h"
#include "codec/frame/frame_error.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

using format::le16;
using format::le32;

constexpr std::size_t kBitmapBytes = 256 / 8;
constexpr std::size_t kStateBytes = kRansStates * sizeof(le32);
/// Bytes below the first word that the kernels may touch.
constexpr std::size_t kSlack = 64;

std::byte* write_frequencies(const RansFrequencies& frequencies, std::byte* out) {
  std::memset(out, 0, kBitmapBytes);
  std::byte* at = out + kBitmapBytes;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    if (frequencies[i] == 0) continue;
    out[i / 8] |= std::byte{1} << (i % 8);
    const le16 frequency = frequencies[i];
    std::memcpy(at, &frequency, sizeof(frequency));
    at += sizeof(frequency);
  }
  return at;
}

// Takes what it reads off `coded`.
ByteSpan take(ByteSpan& coded, std::size_t bytes) {
  if (coded.size() < bytes)
    fail_frame(kPlaneEntropyName, "bytes of a coded plane", coded.size(),
               fmt::format("{} more", bytes));
  const ByteSpan taken = coded.first(bytes);
  coded = coded.subspan(bytes);
  return taken;
}

RansFrequencies read_frequencies(ByteSpan& coded) {
  const ByteSpan bitmap = take(coded, kBitmapBytes);
  RansFrequencies frequencies{};
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    if ((bitmap[i / 8] >> (i % 8) & std::byte{1}) == std::byte{0}) continue;
    le16 frequency;
    std::memcpy(&frequency, take(coded, sizeof(frequency)).data(), sizeof(frequency));
    if (frequency < 1 || frequency >= kRansScale)
      fail_frame(kPlaneEntropyName, "frequency", frequency, fmt::format("1 to {}", kRansScale - 1));
    frequencies[i] = frequency;
    sum += frequency;
  }
  if (sum != kRansScale)
    fail_frame(kPlaneEntropyName, "sum of frequencies", sum, std::to_string(kRansScale));
  return frequencies;
}

}  // namespace

std::size_t code_plane(ByteSpan plane, const RansFrequencies& frequencies,
                       const RansKernels& kernels, MutableByteSpan out) {
  const auto zeros = std::count(frequencies.begin(), frequencies.end(), std::uint16_t{0});
  const std::size_t frequency_bytes =
      (frequencies.size() - static_cast<std::size_t>(zeros)) * sizeof(le16);
  if (out.size() < kBitmapBytes + frequency_bytes + kStateBytes) return 0;
  thread_local Scratch scratch;
  const Scratch::Lease memory = scratch.take(plane.size() * sizeof(le16) + kSlack);
  RansEncodeTable table;
  make_table(frequencies, table);
  std::array<std::uint32_t, kRansStates> states;
  states.fill(kRansLow);
  const std::size_t groups = plane.size() / kRansStates;
  const ByteSpan rest = plane.subspan(groups * kRansStates);
  std::byte* const end = memory.bytes().data() + memory.bytes().size();
  // Backward: the incomplete last group first, then the whole groups from the last to the first.
  std::byte* words = rans_encode_some(table, rest.data(), rest.size(), states.data(), end);
  words = kernels.encode(table, plane.data(), groups, states.data(), words);
  std::byte* at = write_frequencies(frequencies, out.data());
  for (const std::uint32_t state : states) {
    const le32 stored = state;
    std::memcpy(at, &stored, sizeof(stored));
    at += sizeof(stored);
  }
  const auto length = static_cast<std::size_t>(at - out.data());
  const auto words_length = static_cast<std::size_t>(end - words);
  if (out.size() - length < words_length) return 0;
  std::memcpy(at, words, words_length);
  return length + words_length;
}

PlaneDecoder::PlaneDecoder(ByteSpan coded)
    : table_(std::make_unique_for_overwrite<RansDecodeTable>()) {
  make_table(read_frequencies(coded), *table_);
  const ByteSpan states = take(coded, kStateBytes);
  for (std::size_t i = 0; i < kRansStates; ++i) {
    le32 state;
    std::memcpy(&state, states.data() + i * sizeof(state), sizeof(state));
    // Such states alone keep the decoder's arithmetic within 32 bits.
    if (state < kRansLow || state >> 16 >= kRansLow)
      fail_frame(kPlaneEntropyName, "state", state,
                 fmt::format("{} to {}", kRansLow, (std::uint64_t{kRansLow} << 16) - 1));
    states_[i] = state;
  }
  words_ = coded.data();
  end_ = words_ + coded.size();
}

RansRun PlaneDecoder::run_into(MutableByteSpan symbols) {
  return {*table_, words_, end_, states_.data(), symbols.data()};
}

void PlaneDecoder::decode_two(PlaneDecoder& first, MutableByteSpan symbols, PlaneDecoder& second,
                              MutableByteSpan others, const RansKernels& kernels) {
  std::size_t done = 0;
  if (kernels.decode_two != nullptr && first.table_->is_compact && second.table_->is_compact) {
    RansRun run = first.run_into(symbols), other = second.run_into(others);
    const std::size_t both = std::min(symbols.size(), others.size());
    done = kRansStates * kernels.decode_two(run, other, both / kRansStates);
    first.words_ = run.words;
    second.words_ = other.words;
  }
  first.decode(symbols.subspan(done), kernels);
  second.decode(others.subspan(done), kernels);
}

void PlaneDecoder::decode(MutableByteSpan symbols, const RansKernels& kernels) {
  // The kernel stops where it could read beyond the words; what is left goes one symbol at a time.
  RansRun run = run_into(symbols);
  const std::size_t groups = kernels.decode(run, symbols.size() / kRansStates);
  words_ = run.words;
  const MutableByteSpan rest = symbols.subspan(groups * kRansStates);
  if (!rans_decode_some(*table_, words_, end_, rest.size(), states_.data(), rest.data()))
    fail_frame(kPlaneEntropyName, "words left of a coded plane", 0, "1 or more");
}

void PlaneDecoder::finish() const {
  if (words_ != end_)
    fail_frame(kPlaneEntropyName, "bytes left of a coded plane",
               static_cast<std::uint64_t>(end_ - words_), "0");
  for (const std::uint32_t state : states_)
    if (state != kRansLow)
      fail_frame(kPlaneEntropyName, "last state", state, std::to_string(kRansLow));
}

}  // namespace thalia::codec
