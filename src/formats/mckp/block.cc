// Encodes and decodes the pieces of one tensor's payload. Every piece covers 4 MiB of the coded
// form, except the last, and depends on no other piece: threads may take them in any order and
// write into one tensor. The coded form is what goes into the codec: the tensor itself, its grouped
// bytes, its difference to a base, or its packed codes.
//
// MckpBlock trusts no length. Its constructor cuts the payload up and checks that the pieces fill
// the coded form exactly, so decode() only meets errors within a piece. Products of a delta of low
// rank are one piece, which their own reader checks before it asks for memory.
#include "formats/mckp/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/cpu/element_layout.h"
#include "codec/exponents/packed_exponents.h"
#include "codec/frame/frame.h"
#include "codec/frame/lz4_block.h"
#include "codec/frame/zstd_extent.h"
#include "codec/frame/zstd_frame.h"
#include "codec/lossy/code_packing.h"
#include "codec/lossy/low_rank.h"
#include "codec/lossy/quantize.h"
#include "codec/rans/plane_entropy.h"
#include "container/read/low_rank_arrays.h"
#include "container/read/step_delta.h"
#include "format/little_endian.h"
#include "formats/mckp/format.h"
#include "formats/source/byte_grouping.h"

namespace thalia::formats {
namespace {

[[noreturn]] void fail_payload(std::string_view field, std::uint64_t value, std::string bound,
                               std::string message = {}) {
  throw FormatError(ErrorCode::inconsistent, std::move(message),
                    {.field = std::string(field),
                     .value = fmt::format("{} bytes", value),
                     .bound = std::move(bound)});
}

codec::UniformScale scale_of(const MckpTensor& tensor) {
  return {.minimum = tensor.quantization->minimum, .scale = tensor.quantization->scale};
}

// What `length` bytes of codes from `begin` on stand for.
// Where the values begin, there the grouped part of a tensor does: two calls where a piece has a
// share of both.
template <typename Call>
void split_at_values(const MckpTensor& tensor, std::uint64_t begin, std::uint64_t length,
                     const Call& call) {
  const std::uint64_t values =
      tensor.method.plane_width == 0 ? begin + length : mckp_values_begin(tensor);
  const std::uint64_t before = begin < values ? std::min(length, values - begin) : 0;
  // (first byte of the tensor's part, width of a plane, begin in that part, begin and length in the
  // piece)
  if (before > 0) call(std::uint64_t{0}, 0u, begin, std::uint64_t{0}, before);
  if (before < length) {
    call(values, tensor.method.plane_width, begin + before - values, before, length - before);
  }
}

void gather_piece(const MckpTensor& tensor, ByteSpan raw, ByteSpan base, std::uint64_t begin,
                  MutableByteSpan out) {
  split_at_values(tensor, begin, out.size(),
                  [&](std::uint64_t first, unsigned width, std::uint64_t in_part,
                      std::uint64_t in_piece, std::uint64_t length) {
                    gather_planes(raw.subspan(first), base.empty() ? base : base.subspan(first),
                                  width, in_part, out.subspan(in_piece, length));
                  });
}

void scatter_piece(const MckpTensor& tensor, ByteSpan coded, std::uint64_t begin,
                   MutableByteSpan raw) {
  split_at_values(tensor, begin, coded.size(),
                  [&](std::uint64_t first, unsigned width, std::uint64_t in_part,
                      std::uint64_t in_piece, std::uint64_t length) {
                    scatter_planes(coded.subspan(in_piece, length), width, in_part,
                                   tensor.method.delta, raw.subspan(first));
                  });
}

template <typename Bytes>
Bytes part_of(const MckpTensor& tensor, std::uint64_t begin, std::uint64_t length, Bytes raw) {
  const RawRange range = mckp_raw_range(tensor, begin, length);
  return raw.subspan(range.begin, range.length);
}

std::uint64_t count_of(const MckpTensor& tensor, ByteSpan numbers) {
  return numbers.size() / (dtype_bits(tensor.dtype) / 8);
}

void quantize_piece(const MckpTensor& tensor, ByteSpan raw, std::uint64_t begin,
                    MutableByteSpan out) {
  const unsigned bits = tensor.quantization->bits;
  const ByteSpan numbers = part_of(tensor, begin, out.size(), raw);
  std::vector<std::uint8_t> codes(count_of(tensor, numbers));
  codec::quantize(tensor.dtype, numbers, bits, scale_of(tensor), codes);
  codec::pack_codes(mckp_code_bits(bits), codes, out);
}

void restore_piece(const MckpTensor& tensor, ByteSpan coded, std::uint64_t begin,
                   MutableByteSpan raw) {
  const unsigned bits = tensor.quantization->bits;
  const MutableByteSpan numbers = part_of(tensor, begin, coded.size(), raw);
  std::vector<std::uint8_t> codes(count_of(tensor, numbers));
  codec::unpack_codes(mckp_code_bits(bits), coded, codes);
  for (const std::uint8_t code : codes) {
    // Widths of 3, 5, 6 and 7 bits are stored in 8, so a damaged code may be out of range.
    if (code >> bits != 0)
      fail_payload("payload", code, fmt::format("codes of {} bits", bits), "a code out of range");
  }
  codec::dequantize(tensor.dtype, codes, scale_of(tensor), numbers);
}

codec::ElementLayout hint_of(const MckpTensor& tensor) {
  if (tensor.method.quantized) return {codec::Content::integers, 1};
  return codec::element_layout(tensor.dtype);
}

}  // namespace

RawRange mckp_raw_range(const MckpTensor& tensor, std::uint64_t begin, std::uint64_t length) {
  if (!tensor.method.quantized) return {.begin = begin, .length = length};
  const std::uint64_t width = dtype_bits(tensor.dtype) / 8;
  // Codes fill whole bytes: one byte of them stands for this many bytes of the tensor. The last
  // byte may be filled up with codes that stand for nothing, hence the minimum.
  const std::uint64_t raw_a_coded = 8 / mckp_code_bits(tensor.quantization->bits) * width;
  const std::uint64_t first = begin * raw_a_coded;
  return {.begin = first, .length = std::min(length * raw_a_coded, tensor.original_size - first)};
}

// zstd frames tell their own length, and stored pieces have that of the raw bytes.
bool mckp_has_piece_lengths(Codec codec) noexcept {
  return codec != Codec::none && codec != Codec::zstd;
}

void encode_mckp_piece(const MckpTensor& tensor, int level, ByteSpan raw, ByteSpan base,
                       std::uint64_t begin, std::uint64_t end, std::vector<std::byte>& out) {
  const MckpMethod& method = tensor.method;
  std::vector<std::byte> coded;
  ByteSpan content;
  if (method.quantized || method.plane_width != 0 || !base.empty()) {
    coded.resize(end - begin);
    if (method.quantized) {
      quantize_piece(tensor, raw, begin, coded);
    } else {
      gather_piece(tensor, raw, base, begin, coded);
    }
    content = coded;
  } else {
    content = raw.subspan(begin, end - begin);
  }
  switch (method.codec) {
    case Codec::none:
      out.assign(content.begin(), content.end());
      break;
    case Codec::zstd:
      codec::zstd_encode(level, content, out);
      break;
    case Codec::lz4:
      codec::lz4_block_encode(level, content, out);
      break;
    case Codec::packed_exponents:
      codec::packed_exponents_encode(hint_of(tensor), content, out);
      break;
    case Codec::plane_entropy:
      codec::plane_entropy_encode(hint_of(tensor), content, out);
  }
  // A piece as long as its content is the content itself: that is how a reader tells.
  if (mckp_has_piece_lengths(method.codec) && out.size() >= content.size())
    out.assign(content.begin(), content.end());
}

MckpBlock::MckpBlock(const MckpTensor& tensor, ByteSpan payload)
    : tensor_(tensor), length_(mckp_coded_length(tensor)) {
  if (tensor.method.low_rank || tensor.method.steps) {
    pieces_.push_back({payload, 0, length_});
    return;
  }
  switch (tensor.method.codec) {
    case Codec::none:
      if (payload.size() != length_)
        fail_payload("compressed_size", payload.size(), std::to_string(length_),
                     "a stored payload of another size");
      for (std::uint64_t begin = 0; begin < length_; begin += kMckpPiece) {
        const std::uint64_t length = std::min(kMckpPiece, length_ - begin);
        pieces_.push_back({payload.subspan(begin, length), begin, length});
      }
      break;
    case Codec::zstd:
      split_frames(payload);
      break;
    case Codec::lz4:
    case Codec::plane_entropy:
    case Codec::packed_exponents:
      split_pieces(payload);
  }
}

void MckpBlock::split_frames(ByteSpan payload) {
  std::uint64_t begin = 0;
  while (!payload.empty()) {
    const codec::FrameExtent frame = codec::zstd_extent(payload);
    // Without this check a frame could claim more than the tensor has and be written after its
    // end.
    if (frame.content > length_ - begin)
      fail_payload("payload", frame.content, fmt::format("{} bytes", length_ - begin),
                   "frames of more than the tensor");
    pieces_.push_back({payload.first(frame.stored), begin, frame.content});
    begin += frame.content;
    payload = payload.subspan(frame.stored);
  }
  if (begin != length_)
    fail_payload("payload", begin, fmt::format("{} bytes", length_),
                 "frames of less than the tensor");
}

void MckpBlock::split_pieces(ByteSpan payload) {
  format::le32 stored;
  for (std::uint64_t begin = 0; begin < length_;) {
    const std::uint64_t length = std::min(kMckpPiece, length_ - begin);
    if (payload.size() < sizeof(stored))
      fail_payload("payload", payload.size(), "4 bytes", "no room for the length of a piece");
    std::memcpy(&stored, payload.data(), sizeof(stored));
    payload = payload.subspan(sizeof(stored));
    // A piece that does not shrink is stored raw, so no stored piece is longer than its content.
    if (stored > payload.size() || stored > length)
      fail_payload("payload", stored, fmt::format("{} bytes", std::min(payload.size(), length)),
                   "the length of a piece");
    pieces_.push_back({payload.first(stored), begin, length});
    payload = payload.subspan(stored);
    begin += length;
  }
  if (!payload.empty()) fail_payload("payload", payload.size(), "0", "bytes after the last piece");
}

void MckpBlock::decode_codec(const Piece& piece, MutableByteSpan out) const {
  const Codec codec = tensor_.method.codec;
  if (codec == Codec::zstd) return codec::zstd_decode(piece.stored, out);
  // See encode_mckp_piece(): of equal length means raw.
  if (codec == Codec::none || piece.stored.size() == piece.length) {
    std::copy(piece.stored.begin(), piece.stored.end(), out.begin());
  } else if (codec == Codec::lz4) {
    codec::lz4_block_decode(piece.stored, out);
  } else if (codec == Codec::packed_exponents) {
    codec::packed_exponents_decode(piece.stored, out);
  } else {
    codec::plane_entropy_decode(piece.stored, out);
  }
}

void MckpBlock::decode_piece(const Piece& piece, MutableByteSpan raw) const {
  const MckpMethod& method = tensor_.method;
  if (!method.delta && !method.quantized && method.plane_width == 0)
    return decode_codec(piece, raw.subspan(piece.begin, piece.length));
  std::vector<std::byte> coded(piece.length);
  decode_codec(piece, coded);
  if (method.quantized) {
    restore_piece(tensor_, coded, piece.begin, raw);
  } else {
    scatter_piece(tensor_, coded, piece.begin, raw);
  }
}

// The factors are needed for each element, and read once.
void MckpBlock::add_products(MutableByteSpan raw, unsigned threads,
                             io::MemoryBudget& budget) const {
  constexpr std::uint64_t kTurn = 1 << 16;  // elements that a thread makes at a time
  format::TensorEntry matrix{};
  matrix.stored_offset = tensor_.offset;
  matrix.shape[0] = tensor_.shape[0];
  matrix.shape[1] = tensor_.shape[1];
  const codec::LowRankFactors factors =
      container::read_low_rank(matrix, pieces_.front().stored, budget);
  if (factors.rank == 0) fail_payload("rank", 0, "1 or more", "a delta of no products");
  const std::uint64_t width = dtype_bits(tensor_.dtype) / 8;
  const std::uint64_t elements = raw.size() / width;
  parallel_for((elements + kTurn - 1) / kTurn, threads, [&](std::size_t turn) {
    const std::uint64_t first = turn * kTurn;
    const std::uint64_t count = std::min(kTurn, elements - first);
    codec::add_low_rank(tensor_.dtype, factors, first, raw.subspan(first * width, count * width));
  });
}

// Chunk by chunk, each in the place of its base.
void MckpBlock::add_steps(MutableByteSpan raw, unsigned threads, io::MemoryBudget& budget) const {
  const ByteSpan stored = pieces_.front().stored;
  const std::uint64_t width = dtype_bits(tensor_.dtype) / 8;
  format::TensorEntry entry{};
  entry.dtype = tensor_.dtype;
  entry.ndim = 1;
  entry.shape[0] = raw.size() / width;
  entry.logical_length = stored.size();
  const codec::StepDecoder decoder =
      container::read_step_delta(entry, stored.first(container::step_head_bytes(entry)), budget);
  parallel_for(decoder.chunks(), threads, [&](std::size_t i) {
    const auto chunk = decoder.chunk(i);
    const MutableByteSpan part = raw.subspan(chunk.first * width, chunk.elements * width);
    container::decode_steps(decoder, stored.subspan(chunk.offset, chunk.length), part, part);
  });
}

void MckpBlock::decode(MutableByteSpan raw, unsigned threads, io::MemoryBudget& budget) const {
  if (tensor_.method.low_rank) return add_products(raw, threads, budget);
  if (tensor_.method.steps) return add_steps(raw, threads, budget);
  if (pieces_.size() <= 1) threads = 1;
  parallel_for(pieces_.size(), threads, [&](std::size_t i) { decode_piece(pieces_[i], raw); });
}

}  // namespace thalia::formats
