// The stream of plane_entropy. docs/format/format.md, "plane_entropy". Each plane is stored,
// constant or coded if that pays; a sample of the chunk decides which planes are looked at at
// all, as the mantissas of floats are noise that no code shortens. Parsing checks all lengths
// before a byte is decoded: the planes and the tail fill the stored bytes exactly. Decoding then
// goes block by block through all planes at once, so that the coded bytes of a block are still in
// the first cache when they are joined to words.
#include "codec/rans/plane_entropy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "codec/cpu/scratch.h"
#include "codec/frame/frame_error.h"
#include "codec/planes/split_kernels.h"
#include "codec/rans/code.h"
#include "codec/rans/coded_plane.h"
#include "codec/rans/plane_probe.h"
#include "format/plane_codecs.h"

namespace thalia::codec {
namespace {

using format::PlaneEntropyHeader;
using format::PlaneEntry;
using format::PlaneMode;

// Words of a block: the planes of 8 bytes take 16 KiB, half of a usual first cache. A multiple of
// the states, since only the last call of PlaneDecoder::decode() may end within a group.
constexpr std::size_t kPlaneBlock = 2048;
static_assert(kPlaneBlock % kRansStates == 0);
// Keeps counts within 32 bits; an estimate may be somewhat higher than the true count.
constexpr std::size_t kLongest = std::size_t{1} << 31;

std::size_t head_bytes(std::size_t width) {
  return sizeof(PlaneEntropyHeader) + width * sizeof(PlaneEntry);
}

// The planes of a chunk. The first planes, up to the first promising one, will be stored as they
// are, so they are split straight to their final place in `out`. All others go to scratch memory,
// as their place depends on how short the planes before them become.
class SplitPlanes {
 public:
  SplitPlanes(const ElementKind& kind, ByteSpan raw, const std::array<bool, kMaxPlanes>& promising,
              std::byte* out, VectorSet set) {
    const std::size_t count = raw.size() / kind.width;
    if (kind.width == 1) {
      // Bytes are a plane already.
      planes_[0] = raw.data();
      return;
    }
    std::size_t in_place = 0;
    while (in_place < kind.width && !promising[in_place]) ++in_place;
    thread_local Scratch scratch;
    memory_.emplace(scratch, (kind.width - in_place) * count);
    std::byte* planes[kMaxPlanes];
    for (std::size_t k = 0; k < kind.width; ++k) {
      planes[k] = k < in_place ? out + k * count : memory_->bytes().data() + (k - in_place) * count;
      planes_[k] = planes[k];
    }
    plane_kernels(set).of(kind.width, kind.is_rotated).split(raw.data(), count, planes);
  }
  const std::byte* operator[](std::size_t k) const { return planes_[k]; }

 private:
  std::array<const std::byte*, kMaxPlanes> planes_{};
  std::optional<Scratch::Lease> memory_;
};

// Writes a plane to `out` in the mode that suits it.
PlaneEntry encode_plane(ByteSpan plane, bool is_promising, const RansKernels& kernels,
                        MutableByteSpan out) {
  PlaneEntry entry{.mode = PlaneMode::stored,
                   .value = 0,
                   .zero_2 = 0,
                   .length = static_cast<std::uint32_t>(plane.size())};
  if (is_promising) {
    // Before they are counted: the upper bytes of differences are mostly zeros.
    if (std::memcmp(plane.data(), plane.data() + 1, plane.size() - 1) == 0) {
      entry.mode = PlaneMode::constant;
      entry.value = std::to_integer<std::uint8_t>(plane[0]);
      entry.length = 0;
      return entry;
    }
    const ByteCounts counts = estimated_counts(plane, kernels);
    const RansFrequencies frequencies = rans_frequencies(counts);
    if (is_worth_coding(plane.size(), coded_bits(counts, frequencies))) {
      const std::size_t length = code_plane(plane, frequencies, kernels, out.first(plane.size()));
      if (length != 0) {
        entry.mode = PlaneMode::coded;
        entry.length = static_cast<std::uint32_t>(length);
        return entry;
      }
    }
  }
  // A plane that was split to its final place is there already.
  if (plane.data() != out.data()) std::memcpy(out.data(), plane.data(), plane.size());
  return entry;
}

// The stream in `out`, which has room for all planes stored. Returns its length.
std::size_t encode(const ElementKind& kind, ByteSpan raw,
                   const std::array<bool, kMaxPlanes>& promising, MutableByteSpan out,
                   VectorSet set) {
  const std::size_t count = raw.size() / kind.width;
  const PlaneEntropyHeader header{.element_bytes = static_cast<std::uint8_t>(kind.width),
                                  .is_rotated = kind.is_rotated,
                                  .zero_2 = 0};
  std::memcpy(out.data(), &header, sizeof(header));
  std::size_t at = head_bytes(kind.width);
  const SplitPlanes planes(kind, raw, promising, out.data() + at, set);
  for (std::size_t k = 0; k < kind.width; ++k) {
    const PlaneEntry entry =
        encode_plane({planes[k], count}, promising[k], rans_kernels(set), out.subspan(at));
    std::memcpy(out.data() + sizeof(header) + k * sizeof(entry), &entry, sizeof(entry));
    at += entry.length;
  }
  const std::size_t tail = raw.size() % kind.width;
  if (tail != 0) std::memcpy(out.data() + at, raw.data() + raw.size() - tail, tail);
  return at + tail;
}

struct StoredPlane {
  PlaneMode mode = PlaneMode::stored;
  std::byte value{};
  ByteSpan bytes;
  std::optional<PlaneDecoder> decoder;
};

struct CodedPlanes {
  ElementKind kind;
  std::array<StoredPlane, kMaxPlanes> planes;
  ByteSpan tail;
};

ElementKind parse_header(ByteSpan stored) {
  PlaneEntropyHeader header;
  if (stored.size() < sizeof(header))
    fail_frame(kPlaneEntropyName, "stored bytes", stored.size(),
               fmt::format("{} or more", sizeof(header)));
  std::memcpy(&header, stored.data(), sizeof(header));
  const std::size_t width = header.element_bytes;
  if (width != 1 && width != 2 && width != 4 && width != 8)
    fail_frame(kPlaneEntropyName, "element_bytes", width, "1, 2, 4 or 8");
  if (header.is_rotated > (width > 1 ? 1 : 0))
    fail_frame(kPlaneEntropyName, "is_rotated", header.is_rotated, width > 1 ? "0 or 1" : "0");
  if (header.zero_2 != 0) fail_frame(kPlaneEntropyName, "zero_2", header.zero_2, "0");
  if (stored.size() < head_bytes(width))
    fail_frame(kPlaneEntropyName, "stored bytes", stored.size(),
               fmt::format("{} or more", head_bytes(width)));
  return {width, header.is_rotated == 1};
}

void check_entry(const PlaneEntry& entry, std::uint64_t count, std::uint64_t left) {
  const PlaneMode mode = entry.mode;
  if (mode != PlaneMode::stored && mode != PlaneMode::constant && mode != PlaneMode::coded)
    fail_frame(kPlaneEntropyName, "mode", format::code_of(mode), "0 to 2");
  if (mode != PlaneMode::constant && entry.value != 0)
    fail_frame(kPlaneEntropyName, "value", entry.value, "0");
  if (entry.zero_2 != 0) fail_frame(kPlaneEntropyName, "zero_2", entry.zero_2, "0");
  if (mode == PlaneMode::stored && entry.length != count)
    fail_frame(kPlaneEntropyName, "length of a stored plane", entry.length, std::to_string(count));
  if (mode == PlaneMode::constant && entry.length != 0)
    fail_frame(kPlaneEntropyName, "length of a constant plane", entry.length, "0");
  if (entry.length > left)
    fail_frame(kPlaneEntropyName, "length of a plane", entry.length, std::to_string(left));
}

// Checks everything that can be checked before a byte is decoded, and makes the decoders, which
// check their tables. A length is compared with what is left before it is used.
CodedPlanes parse_planes(ByteSpan stored, std::uint64_t raw_bytes) {
  CodedPlanes stream;
  stream.kind = parse_header(stored);
  const std::size_t width = stream.kind.width;
  const std::uint64_t count = raw_bytes / width;
  std::size_t at = head_bytes(width);
  for (std::size_t k = 0; k < width; ++k) {
    PlaneEntry entry;
    std::memcpy(&entry, stored.data() + sizeof(PlaneEntropyHeader) + k * sizeof(entry),
                sizeof(entry));
    check_entry(entry, count, stored.size() - at);
    StoredPlane& plane = stream.planes[k];
    plane.mode = entry.mode;
    plane.value = std::byte{entry.value};
    plane.bytes = stored.subspan(at, entry.length);
    if (plane.mode == PlaneMode::coded) plane.decoder.emplace(plane.bytes);
    at += entry.length;
  }
  stream.tail = stored.subspan(at);
  if (stream.tail.size() != raw_bytes % width)
    fail_frame(kPlaneEntropyName, "bytes after the planes", stream.tail.size(),
               std::to_string(raw_bytes % width));
  return stream;
}

// Decodes a chunk block by block. Stored planes are joined from where they lie; constant ones from
// a block that is filled once. Elements of one byte are a plane already, and need no joining.
class ChunkDecoder {
 public:
  struct Part {
    PlaneDecoder* decoder;
    MutableByteSpan symbols;
  };
  struct Parts {
    std::array<Part, 2 * kMaxPlanes> parts;
    std::size_t count = 0;
  };

  ChunkDecoder(ByteSpan stored, MutableByteSpan raw, VectorSet set)
      : stream_(parse_planes(stored, raw.size())),
        raw_(raw),
        count_(raw.size() / width()),
        kernels_(width() == 1 ? nullptr
                              : &plane_kernels(set).of(width(), stream_.kind.is_rotated)) {
    for (std::size_t k = 0; k < width(); ++k) {
      const StoredPlane& plane = stream_.planes[k];
      if (plane.mode == PlaneMode::constant)
        std::memset(blocks_[k], std::to_integer<int>(plane.value), kPlaneBlock);
      planes_[k] = plane.mode == PlaneMode::stored ? plane.bytes.data() : blocks_[k];
    }
  }

  bool is_done() const noexcept { return at_ == count_; }
  /// Adds what is to be decoded for the next block, before join_block().
  void begin_block(Parts& parts) {
    if (is_done()) return;
    for (std::size_t k = 0; k < width(); ++k) {
      if (std::optional<PlaneDecoder>& decoder = stream_.planes[k].decoder)
        parts.parts[parts.count++] = {&*decoder, {kernels_ ? blocks_[k] : out(), block()}};
    }
  }
  void join_block() {
    if (is_done()) return;
    const std::size_t n = block();
    if (kernels_ != nullptr) {
      kernels_->join(planes_, n, out());
    } else if (!stream_.planes[0].decoder) {
      std::memcpy(out(), planes_[0], n);
    }
    for (std::size_t k = 0; k < width(); ++k)
      if (stream_.planes[k].mode == PlaneMode::stored) planes_[k] += n;
    at_ += n;
  }
  void finish() {
    for (const StoredPlane& plane : stream_.planes)
      if (plane.decoder) plane.decoder->finish();
    std::copy(stream_.tail.begin(), stream_.tail.end(), raw_.end() - stream_.tail.size());
  }

 private:
  std::size_t width() const noexcept { return stream_.kind.width; }
  std::size_t block() const noexcept { return std::min(kPlaneBlock, count_ - at_); }
  std::byte* out() const noexcept { return raw_.data() + at_ * width(); }

  CodedPlanes stream_;
  MutableByteSpan raw_;
  std::size_t count_;  ///< words
  std::size_t at_ = 0;
  const PlaneKernels::Pair* kernels_;
  std::byte blocks_[kMaxPlanes][kPlaneBlock];
  const std::byte* planes_[kMaxPlanes];
};

// Coded planes two at a time, of one chunk or of both.
void decode_parts(const ChunkDecoder::Parts& parts, const RansKernels& kernels) {
  std::size_t i = 0;
  for (; i + 2 <= parts.count; i += 2) {
    const auto& [first, symbols] = parts.parts[i];
    const auto& [second, others] = parts.parts[i + 1];
    PlaneDecoder::decode_two(*first, symbols, *second, others, kernels);
  }
  if (i < parts.count) parts.parts[i].decoder->decode(parts.parts[i].symbols, kernels);
}

// One chunk or two.
void decode(std::initializer_list<ChunkDecoder*> chunks, VectorSet set) {
  const auto is_done = [](const ChunkDecoder* chunk) { return chunk->is_done(); };
  while (!std::all_of(chunks.begin(), chunks.end(), is_done)) {
    ChunkDecoder::Parts parts;
    for (ChunkDecoder* const chunk : chunks) chunk->begin_block(parts);
    decode_parts(parts, rans_kernels(set));
    for (ChunkDecoder* const chunk : chunks) chunk->join_block();
  }
  for (ChunkDecoder* const chunk : chunks) chunk->finish();
}

}  // namespace

bool plane_entropy_encode(ElementLayout layout, ByteSpan raw, std::vector<std::byte>& out,
                          VectorSet set) {
  const ElementKind kind = element_kind(layout);
  if (raw.size() >= kind.width && raw.size() <= kLongest) {
    const auto promising = promising_planes(kind, raw, set);
    if (std::find(promising.begin(), promising.end(), true) != promising.end()) {
      // Room by which a vector grows is filled with zeros. One that held a long stream mostly gets
      // such a one again; into another a short one is copied.
      const std::size_t room = head_bytes(kind.width) + raw.size();
      thread_local Scratch scratch;
      const bool is_long = out.size() >= room / 2;
      const Scratch::Lease memory = scratch.take(is_long ? 0 : room);
      if (is_long) out.resize(room);
      const MutableByteSpan stream = is_long ? MutableByteSpan(out) : memory.bytes();
      const std::size_t length = encode(kind, raw, promising, stream, set);
      if (length < raw.size()) {
        if (is_long) {
          out.resize(length);
        } else {
          out.assign(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(length));
        }
        return true;
      }
    }
  }
  out.assign(raw.begin(), raw.end());
  return false;
}

void plane_entropy_decode(ByteSpan stored, MutableByteSpan raw, VectorSet set) {
  ChunkDecoder chunk(stored, raw, set);
  decode({&chunk}, set);
}

void plane_entropy_decode_two(const CodedChunk& first, const CodedChunk& second, VectorSet set) {
  ChunkDecoder chunk(first.stored, first.raw, set), other(second.stored, second.raw, set);
  decode({&chunk, &other}, set);
}

}  // namespace thalia::codec
