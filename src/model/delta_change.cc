#include "model/delta_change.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/chunk_codec.h"
#include "model/byte_xor.h"
#include "thalia/format/constants.h"
#include "thalia/format/delta.h"

namespace thalia::model {
namespace {

using format::kDeltaBlockElements;

// A piece of the content hash: whole blocks of a list, whatever the width of an element.
constexpr std::uint64_t kPiece = format::kContentPiece;
static_assert(kPiece % (16 * kDeltaBlockElements) == 0);

constexpr std::uint64_t kSample = 64 << 10;
constexpr std::uint64_t kSamples = 16;
// What is compared at once before its elements are.
constexpr std::size_t kStride = 4096;

void list_element(const std::byte* element, unsigned width, std::uint64_t number,
                  ChangeList::Part& out) {
  out.positions.push_back(static_cast<std::uint16_t>(number));
  out.values.insert(out.values.end(), element, element + width);
}

// The elements of a block whose bits differ.
void list_block(ByteSpan base, ByteSpan now, unsigned width, ChangeList::Part& out) {
  const std::size_t before = out.positions.size();
  for (std::size_t at = 0; at < now.size(); at += kStride) {
    const std::size_t end = std::min(at + kStride, now.size());
    if (std::memcmp(base.data() + at, now.data() + at, end - at) == 0) continue;
    for (std::size_t i = at; i < end; i += width) {
      if (std::memcmp(base.data() + i, now.data() + i, width) != 0)
        list_element(now.data() + i, width, i / width, out);
    }
  }
  out.counts.push_back(out.positions.size() - before);
}

std::size_t encoded_size(format::Codec codec, int level, ByteSpan bytes,
                         std::vector<std::byte>& scratch) {
  codec::encode_chunk(codec, level, bytes, scratch);
  return scratch.size();
}

}  // namespace

void Change::read_pair(std::uint64_t begin, MutableByteSpan result, MutableByteSpan base) const {
  base_.read(begin, base);
  std::memcpy(result.data(), bytes_.data() + begin, result.size());
  within_.apply(base, result);
}

void Change::difference(std::uint64_t begin, MutableByteSpan out) const {
  if (within_.is_exact()) {
    base_.read(begin, out);
    return xor_into(out, bytes_.subspan(begin, out.size()));
  }
  std::vector<std::byte> base(out.size());
  read_pair(begin, out, base);
  xor_into(out, base);
}

Change::Estimate Change::estimate(unsigned width) const {
  const std::uint64_t size = bytes_.size();
  const std::uint64_t count = std::min(kSamples, (size + kSample - 1) / kSample);
  const format::Codec codec = options_.compression;
  const int level = options_.compression_level;
  const bool raw = codec == format::Codec::store;
  std::vector<std::byte> now(std::min(size, kSample));
  std::vector<std::byte> base(now.size());
  std::vector<std::byte> scratch;
  Estimate out;
  std::uint64_t sampled = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    // Evenly over the tensor, the first at its beginning and the last at its end.
    const std::uint64_t last = size - now.size();
    const std::uint64_t begin = count == 1 ? 0 : last / (count - 1) * i / 64 * 64;
    read_pair(begin, now, base);
    ChangeList::Part part;
    list_block(base, now, width, part);
    const ByteSpan positions = as_byte_span(part.positions);
    out.list_raw += static_cast<double>(positions.size() + part.values.size());
    out.list += static_cast<double>(encoded_size(codec, level, positions, scratch) +
                                    encoded_size(codec, level, part.values, scratch));
    out.whole += static_cast<double>(encoded_size(codec, level, now, scratch));
    xor_into(base, now);
    out.difference += static_cast<double>(
        encoded_size(raw ? format::Codec::zstd : codec, raw ? 0 : level, base, scratch));
    sampled += now.size();
  }
  const double scale = static_cast<double>(size) / static_cast<double>(sampled);
  for (double* value : {&out.list_raw, &out.list, &out.whole, &out.difference}) *value *= scale;
  return out;
}

Change::Scan Change::scan(unsigned width, std::uint64_t most_list) const {
  const std::uint64_t size = bytes_.size();
  const std::uint64_t pieces = (size + kPiece - 1) / kPiece;
  std::vector<integrity::PieceDigest> digests(pieces);
  ChangeList list;
  list.parts.resize(pieces);
  std::atomic<std::uint64_t> listed{0};
  parallel_for(pieces, options_.threads, [&](std::size_t i) {
    stop_if_cancelled(options_.cancel);
    const std::uint64_t begin = i * kPiece;
    const std::uint64_t length = std::min(kPiece, size - begin);
    std::vector<std::byte> now(length);
    std::vector<std::byte> base(length);
    read_pair(begin, now, base);
    integrity::PieceHasher hasher;
    hasher.update(now);
    digests[i] = hasher.finish();
    if (listed.load(std::memory_order_relaxed) > most_list) return;
    ChangeList::Part& part = list.parts[i];
    const std::uint64_t block = kDeltaBlockElements * width;
    for (std::uint64_t at = 0; at < length; at += block) {
      const std::uint64_t part_length = std::min(block, length - at);
      list_block(ByteSpan(base).subspan(at, part_length), ByteSpan(now).subspan(at, part_length),
                 width, part);
    }
    listed.fetch_add(part.positions.size() * (2 + width), std::memory_order_relaxed);
  });
  Scan out{.digest = integrity::join_pieces(digests), .list = std::nullopt};
  if (listed > most_list) return out;
  for (const ChangeList::Part& part : list.parts) list.count += part.positions.size();
  out.list = std::move(list);
  return out;
}

}  // namespace thalia::model
