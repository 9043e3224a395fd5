// Encoding runs backward from a chunk's last element, and its words grow downward in a buffer of
// their own, since their number is known only at the end. Extra bits are made forward before that,
// and lie in the stream from the chunk's last byte down.
#include "codec/step/step_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/step/step_counts.h"
#include "codec/step/step_tables.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

using format::le16;
using format::le32;

/// Bytes beyond the last extra bits and below the first word that the kernels may touch.
constexpr std::size_t kStepSlack = 64;

void append(std::vector<std::byte>& out, ByteSpan bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::uint64_t step_head_bytes(const StepCode& code) noexcept {
  const std::uint64_t chunks = code.chunks();
  return 4 + (chunks > 1 ? chunks * sizeof(le32) : 0) + code.explicit_tables.size();
}

std::vector<std::byte> step_head(const StepCode& code, std::span<const std::uint32_t> lengths) {
  std::vector<std::byte> out;
  out.reserve(step_head_bytes(code));
  for (const std::uint8_t field : {code.table, code.first_class, code.lanes_log2, code.chunk_log2})
    out.push_back(std::byte{field});
  if (lengths.size() > 1) {
    for (const std::uint32_t length : lengths) {
      const le32 stored = length;
      append(out, std::as_bytes(std::span(&stored, 1)));
    }
  }
  append(out, code.explicit_tables);
  return out;
}

StepEncoder::StepEncoder(const StepKind& kind, const StepCode& code, VectorSet set)
    : model_{.kind = kind,
             .first_class = code.first_class,
             .lanes = static_cast<std::uint8_t>(1u << code.lanes_log2),
             .tables = step_tables(code.rows)},
      kernels_(step_kernels(set)) {
  // Elements that were not counted are the caller's mistake: they are coded wrongly, without a
  // division by zero.
  for (auto& frequencies : model_.tables.frequency)
    for (std::uint16_t& frequency : frequencies) frequency = std::max<std::uint16_t>(frequency, 1);
}

std::uint32_t StepEncoder::encode(ByteSpan base, ByteSpan next, std::vector<std::byte>& out) {
  const std::size_t width = model_.kind.bytes, lanes = model_.lanes;
  const std::size_t count = base.size() / width;
  if (words_ == nullptr || room_ < count) {
    words_ = std::make_unique_for_overwrite<std::byte[]>(count * sizeof(le16) + kStepSlack);
    extras_ = std::make_unique_for_overwrite<std::byte[]>(count * width + kStepSlack);
    room_ = count;
  }

  StepBitSink sink{.at = extras_.get()};
  kernels_.extras(model_.kind, base.data(), next.data(), count, sink);
  if (sink.count != 0) *sink.at++ = static_cast<std::byte>(sink.pending & 0xff);

  std::array<std::uint32_t, kStepMostLanes> states;
  states.fill(kStepLow);
  std::byte* const end = words_.get() + room_ * sizeof(le16) + kStepSlack;
  const std::size_t rest = count % lanes, whole = count - rest;
  std::byte* words = step_encode_some(model_, base.data() + whole * width,
                                      next.data() + whole * width, rest, states.data(), end);
  words = kernels_.encode(model_, base.data(), next.data(), whole, states.data(), words);

  const std::size_t before = out.size();
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const le32 stored = states[lane];
    append(out, std::as_bytes(std::span(&stored, 1)));
  }
  append(out, {words, static_cast<std::size_t>(end - words)});
  const auto extras = static_cast<std::size_t>(sink.at - extras_.get());
  out.resize(out.size() + extras);
  std::reverse_copy(extras_.get(), sink.at, out.data() + out.size() - extras);
  return static_cast<std::uint32_t>(out.size() - before);
}

std::vector<std::byte> step_encode(const StepKind& kind, ByteSpan base, ByteSpan next,
                                   VectorSet set) {
  StepCounts counts(kind);
  counts.count(base, next, set);
  const StepCode code = choose_step_code(counts);
  StepEncoder encoder(kind, code, set);
  std::vector<std::uint32_t> lengths;
  lengths.reserve(code.chunks());
  // The head is as long whatever the lengths are: it is written over once they are known.
  std::vector<std::byte> out;
  const std::uint64_t expected = code.expected_bytes + code.expected_bytes / 64 + kStepSlack;
  out.reserve(expected);
  out.resize(step_head_bytes(code));
  const std::size_t most = static_cast<std::size_t>(code.chunk_elements()) * kind.bytes;
  for (std::size_t at = 0; at < base.size(); at += most) {
    const std::size_t length = std::min(most, base.size() - at);
    lengths.push_back(encoder.encode(base.subspan(at, length), next.subspan(at, length), out));
  }
  const std::vector<std::byte> head = step_head(code, lengths);
  std::copy(head.begin(), head.end(), out.begin());
  return out;
}

}  // namespace thalia::codec
