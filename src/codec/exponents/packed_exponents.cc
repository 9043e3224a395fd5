// The stream of packed_exponents, written and read in one pass over the words.
// docs/format/format.md, "packed_exponents". The lengths of all parts but the escapes follow from
// the header and the raw length, so encoding writes every part to its final place, and decoding
// checks the length of the whole before it begins. Each step takes a block of words: the planes
// below the highest go straight between words and stream, and only the highest bytes pass through a
// small buffer. Blocks and groups are whole, so the vector kernels never see a partial group; the
// last one is filled up.
#include "codec/exponents/packed_exponents.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "codec/exponents/kernels.h"
#include "codec/frame/frame_error.h"
#include "codec/planes/split_kernels.h"
#include "format/plane_codecs.h"

namespace thalia::codec {
namespace {

using format::PackedExponentsHeader;

// Words of a block, so many that their highest bytes stay in the first cache between splitting and
// packing. A multiple of kGroup, so that only the last group of a chunk can be incomplete.
constexpr std::size_t kExponentBlock = 4096;
// The code is chosen from a 32nd of the groups, at least 32 and at most 128 of them, from all over
// the chunk: the shares of the exponents need no more, and a chunk may span several tensors.
constexpr std::size_t kFewestSampled = 32, kMostSampled = 128;

// Where the parts of a stream lie. All but the escapes have lengths that follow from the header.
struct Parts {
  Parts(const ExponentCode& code, std::size_t width, std::uint64_t raw_bytes)
      : count(raw_bytes / width), groups((count + kGroup - 1) / kGroup) {
    codes = sizeof(PackedExponentsHeader) + code.escape();
    low = codes + groups * 8 * code.code_bits;
    planes = low + groups * 8 * code.low_bits();
    tail = planes + count * (width - 1);
    escapes = tail + raw_bytes % width;
  }
  std::uint64_t count, groups;
  std::uint64_t codes, low, planes, tail, escapes;
};

// How often each highest byte occurs in the sample. The kernels split words into all their planes;
// only the highest one is counted.
ByteCounts sampled_counts(const PlaneKernels::Pair& kernels, std::size_t width, ByteSpan raw) {
  ByteCounts counts{};
  const std::size_t count = raw.size() / width;
  const std::size_t groups = count / kGroup;
  const std::size_t sampled = std::clamp(groups / 32, kFewestSampled, kMostSampled);
  const std::size_t step = std::max<std::size_t>(1, groups / sampled) * kGroup;
  std::byte bytes[kMaxPlanes][kGroup];
  std::byte* planes[kMaxPlanes];
  for (std::size_t k = 0; k < kMaxPlanes; ++k) planes[k] = bytes[k];
  for (std::size_t i = 0; i < count; i += step) {
    const std::size_t n = std::min(kGroup, count - i);
    kernels.split(raw.data() + i * width, n, planes);
    for (std::size_t j = 0; j < n; ++j)
      ++counts[std::to_integer<std::uint8_t>(bytes[width - 1][j])];
  }
  return counts;
}

// Whether the code takes fewer bits than the bytes themselves, by the sample. It spares noise a
// full encoding that would be thrown away.
bool is_promising(const ExponentCode& code, const ByteCounts& counts) {
  const std::uint64_t total = sum_of(counts);
  std::uint64_t coded = 0;
  for (unsigned byte = 0; byte < counts.size(); ++byte) {
    const auto* const end = code.symbols.begin() + code.escape();
    if (std::find(code.symbols.begin(), end, byte & code.symbol_mask()) != end)
      coded += counts[byte];
  }
  return code.bits(total, total - coded) < total * 8;
}

// Writes the stream to `out`, which must have room for raw.size() bytes, a block and the slack.
// Returns the stream's length, or 0 as soon as it is sure not to be shorter than `raw`.
std::size_t encode(const ExponentCode& code, std::size_t width, ByteSpan raw, std::byte* out,
                   const PlaneKernels::Pair& kernels, const ExponentKernels& exponents) {
  const Parts parts(code, width, raw.size());
  if (parts.escapes >= raw.size()) return 0;
  const ExponentLookup lookup(code);
  std::byte* planes[kMaxPlanes];
  for (std::size_t k = 0; k + 1 < width; ++k) planes[k] = out + parts.planes + k * parts.count;
  std::byte highest[kExponentBlock];
  std::byte* codes = out + parts.codes;
  std::byte* low = out + parts.low;
  std::byte* escapes = out + parts.escapes;
  for (std::size_t i = 0; i < parts.count; i += kExponentBlock) {
    const std::size_t n = std::min<std::size_t>(kExponentBlock, parts.count - i);
    const std::size_t groups = (n + kGroup - 1) / kGroup;
    planes[width - 1] = highest;
    kernels.split(raw.data() + i * width, n, planes);
    // Fills up the last group with the symbol of code 0, whose low bits are zero: so the bits that
    // stand for no word are zero, as the format asks, and none of them is an escape.
    std::fill(highest + n, highest + groups * kGroup, std::byte{code.symbols[0]});
    escapes = exponents.pack(lookup, highest, groups, codes, escapes);
    // Checked for each block, as the room after the escapes is one block and the slack.
    if (static_cast<std::size_t>(escapes - out) >= raw.size()) return 0;
    if (code.low_bits() != 0) exponents.pack_low(code.low_bits(), highest, groups, low);
    codes += groups * 8 * code.code_bits;
    low += groups * 8 * code.low_bits();
    for (std::size_t k = 0; k + 1 < width; ++k) planes[k] += n;
  }
  const std::size_t tail = raw.size() % width;
  if (tail != 0) std::memcpy(out + parts.tail, raw.data() + raw.size() - tail, tail);
  const auto escape_count = static_cast<std::uint32_t>(escapes - out - parts.escapes);
  const PackedExponentsHeader header{.element_bytes = static_cast<std::uint8_t>(width),
                                     .symbol_bits = static_cast<std::uint8_t>(code.symbol_bits),
                                     .code_bits = static_cast<std::uint8_t>(code.code_bits),
                                     .zero_3 = 0,
                                     .escape_count = escape_count};
  std::memcpy(out, &header, sizeof(header));
  std::memcpy(out + sizeof(header), code.symbols.data(), code.escape());
  return static_cast<std::size_t>(escapes - out);
}

struct PackedStream {
  std::size_t width;
  ExponentCode code;
  Parts parts;
};

// Checks everything that can be checked before a byte is decoded. The sum of the lengths cannot
// wrap: the raw length is that of memory, and the parts are small multiples of it. Unused entries
// of the symbols are zero and pass the check.
PackedStream parse_packed(ByteSpan stored, std::uint64_t raw_bytes) {
  PackedExponentsHeader header;
  if (stored.size() < sizeof(header))
    fail_frame(kPackedExponentsName, "stored bytes", stored.size(),
               fmt::format("{} or more", sizeof(header)));
  std::memcpy(&header, stored.data(), sizeof(header));
  const std::size_t width = header.element_bytes;
  if (width != 2 && width != 4 && width != 8)
    fail_frame(kPackedExponentsName, "element_bytes", width, "2, 4 or 8");
  if (header.symbol_bits < 1 || header.symbol_bits > 8)
    fail_frame(kPackedExponentsName, "symbol_bits", header.symbol_bits, "1 to 8");
  if (header.code_bits < 1 || header.code_bits > ExponentCode::kMaxCodeBits)
    fail_frame(kPackedExponentsName, "code_bits", header.code_bits,
               fmt::format("1 to {}", ExponentCode::kMaxCodeBits));
  if (header.zero_3 != 0) fail_frame(kPackedExponentsName, "zero_3", header.zero_3, "0");
  ExponentCode code{.symbol_bits = header.symbol_bits, .code_bits = header.code_bits};
  const Parts parts(code, width, raw_bytes);
  const std::uint64_t length = parts.escapes + header.escape_count;
  if (stored.size() != length)
    fail_frame(kPackedExponentsName, "stored bytes", stored.size(), std::to_string(length));
  std::memcpy(code.symbols.data(), stored.data() + sizeof(header), code.escape());
  const auto refuse_low_bits = [&](std::string_view what, std::uint8_t symbol) {
    if ((symbol & ~code.symbol_mask()) != 0)
      fail_frame(kPackedExponentsName, what, symbol,
                 fmt::format("no bit below the highest {}", code.symbol_bits));
  };
  for (const std::uint8_t symbol : code.symbols) refuse_low_bits("symbol", symbol);
  for (const std::byte escape : stored.subspan(parts.escapes))
    refuse_low_bits("escape", std::to_integer<std::uint8_t>(escape));
  return {width, code, parts};
}

// The bits of the last group that stand for no word must be zero, so that a file has no place where
// bytes could be hidden, or change without notice.
void check_padding(const PackedStream& stream, ByteSpan stored) {
  const std::size_t used = stream.parts.count % kGroup;
  if (used == 0) return;
  const auto check = [&](std::uint64_t end, unsigned planes) {
    for (unsigned j = 0; j < planes; ++j) {
      format::le64 plane;
      std::memcpy(&plane, stored.data() + end - 8 * (j + 1), sizeof(plane));
      if (plane >> used != 0) fail_frame(kPackedExponentsName, "padding", plane >> used, "0");
    }
  };
  check(stream.parts.low, stream.code.code_bits);
  check(stream.parts.planes, stream.code.low_bits());
}

}  // namespace

// A symbol is the highest bits of a byte, so all bytes with it follow each other: the low bits make
// no difference to the code.
ExponentLookup::ExponentLookup(const ExponentCode& chosen) : code(chosen) {
  std::memset(code_of, static_cast<int>(code.escape()), sizeof(code_of));
  for (unsigned i = 0; i < code.escape(); ++i)
    std::memset(code_of + code.symbols[i], static_cast<int>(i), std::size_t{1} << code.low_bits());
}

#ifdef __x86_64__
const ExponentKernels& exponent_kernels(VectorSet set) noexcept {
  return set == VectorSet::avx512 ? kAvx512Exponents
         : set == VectorSet::avx2 ? kAvx2Exponents
                                  : kPortableExponents;
}
#else
const ExponentKernels& exponent_kernels(VectorSet) noexcept {
  return kPortableExponents;
}
#endif

bool packed_exponents_encode(ElementLayout layout, ByteSpan raw, std::vector<std::byte>& out,
                             VectorSet set) {
  const std::size_t width = layout.element_bytes;
  std::size_t length = 0;
  if (layout.content == Content::floats && width > 1 && raw.size() >= width &&
      raw.size() <= std::numeric_limits<std::uint32_t>::max()) {
    const PlaneKernels::Pair& kernels = plane_kernels(set).of(width, true);
    const ByteCounts counts = sampled_counts(kernels, width, raw);
    const unsigned symbol_bits = std::min<unsigned>(layout.exponent_bits, 8);
    const ExponentCode code = choose_exponent_code(counts, symbol_bits);
    if (is_promising(code, counts)) {
      // `out` only grows: a vector that is used again is not filled with zeros again. The last
      // resize cuts it to the stream.
      const std::size_t room = raw.size() + kExponentBlock + kEscapeSlack;
      if (out.size() < room) out.resize(room);
      length = encode(code, width, raw, out.data(), kernels, exponent_kernels(set));
    }
  }
  if (length == 0) {
    out.assign(raw.begin(), raw.end());
    return false;
  }
  out.resize(length);
  return true;
}

void packed_exponents_decode(ByteSpan stored, MutableByteSpan raw, VectorSet set) {
  const PackedStream stream = parse_packed(stored, raw.size());
  check_padding(stream, stored);
  const auto& [width, code, parts] = stream;
  const PlaneKernels::Pair& kernels = plane_kernels(set).of(width, true);
  const ExponentKernels& exponents = exponent_kernels(set);
  const std::byte* planes[kMaxPlanes];
  for (std::size_t k = 0; k + 1 < width; ++k)
    planes[k] = stored.data() + parts.planes + k * parts.count;
  std::byte highest[kExponentBlock];
  const std::byte* codes = stored.data() + parts.codes;
  const std::byte* low = stored.data() + parts.low;
  const std::byte* escapes = stored.data() + parts.escapes;
  const std::byte* const end = stored.data() + stored.size();
  for (std::size_t i = 0; i < parts.count; i += kExponentBlock) {
    const std::size_t n = std::min<std::size_t>(kExponentBlock, parts.count - i);
    const std::size_t groups = (n + kGroup - 1) / kGroup;
    escapes = exponents.unpack(code, codes, groups, escapes, end, highest);
    if (escapes == nullptr)
      fail_frame(kPackedExponentsName, "escapes", stored.size() - parts.escapes,
                 "one for each code");
    if (code.low_bits() != 0) exponents.add_low(code.low_bits(), low, groups, highest);
    planes[width - 1] = highest;
    kernels.join(planes, n, raw.data() + i * width);
    codes += groups * 8 * code.code_bits;
    low += groups * 8 * code.low_bits();
    for (std::size_t k = 0; k + 1 < width; ++k) planes[k] += n;
  }
  // Fewer codes asked for an escape than there are.
  if (escapes != end) {
    fail_frame(kPackedExponentsName, "escapes", stored.size() - parts.escapes,
               fmt::format("{}, as many as codes", escapes - stored.data() - parts.escapes));
  }
  const std::size_t tail = raw.size() % width;
  if (tail != 0) std::memcpy(raw.data() + raw.size() - tail, stored.data() + parts.tail, tail);
}

}  // namespace thalia::codec
