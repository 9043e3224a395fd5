// The only way from a chunk's bytes to its stored form and back: choice, filter, codec. A chunk is
// complete in itself, so any number of threads may encode and decode at once; what they reuse is
// thread_local.
// Decoding trusts nothing. The caller checks the CRC-32 of the stored bytes, but anybody who writes
// a hostile file can compute that too: a decoder must refuse what is wrong, and stay within `raw`.
#include "codec/chunk/codec.h"

#include <algorithm>

#include "base/fail.h"
#include "codec/chunk/choice.h"
#include "codec/chunk/filter.h"
#include "codec/cpu/scratch.h"
#include "codec/exponents/packed_exponents.h"
#include "codec/frame/frame_error.h"
#include "codec/frame/lz4_frame.h"
#include "codec/frame/zstd_frame.h"
#include "codec/rans/plane_entropy.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

[[noreturn]] void fail_codec(Codec codec) {
  throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such codec",
                         {.section = "payload",
                          .field = "codec",
                          .value = std::to_string(static_cast<int>(codec)),
                          .bound = fmt::format("at most {}", kCodecCount - 1)});
}

void decode_bytes(Codec codec, ByteSpan stored, MutableByteSpan raw) {
  switch (codec) {
    case Codec::none:
      if (stored.size() != raw.size())
        fail_frame("none", "wrong length", std::to_string(stored.size()),
                   std::to_string(raw.size()));
      std::copy(stored.begin(), stored.end(), raw.begin());
      return;
    case Codec::zstd:
      return zstd_decode(stored, raw);
    case Codec::lz4:
      return lz4_decode(stored, raw);
    case Codec::plane_entropy:
      return plane_entropy_decode(stored, raw);
    case Codec::packed_exponents:
      return packed_exponents_decode(stored, raw);
  }
  fail_codec(codec);
}

// Codec store is not handled here: `out` stays as it is, and encode_chunk() stores the raw bytes.
void encode_choice(const ChunkChoice& choice, ElementLayout layout, ByteSpan raw,
                   std::vector<std::byte>& out) {
  thread_local Scratch scratch;
  const bool filters = choice.filter != format::Filter::none;
  const Scratch::Lease filtered = scratch.take(filters ? raw.size() : 0);
  if (filters) {
    apply_filter(choice.filter, raw, filtered.bytes());
    raw = filtered.bytes();
  }
  if (choice.codec == Codec::zstd) zstd_encode(choice.level, raw, out);
  if (choice.codec == Codec::lz4) lz4_encode(choice.level, raw, out);
  if (choice.codec == Codec::plane_entropy) plane_entropy_encode(layout, raw, out);
  if (choice.codec == Codec::packed_exponents) packed_exponents_encode(layout, raw, out);
}

struct Levels {
  int lowest;
  int highest;
  int standard;
};

Levels levels_of(Codec codec) {
  switch (codec) {
    case Codec::none:
    case Codec::plane_entropy:
    case Codec::packed_exponents:
      return {0, 0, 0};
    case Codec::zstd:
      return {1, 22, 3};
    case Codec::lz4:
      return {1, 12, 1};
  }
  fail_codec(codec);
}

// Codecs know only their own stream; the section of the file is added here.
template <typename Decode>
void in_payload(const Decode& decode) {
  try {
    decode();
  } catch (Error& error) {
    error.add_section("payload");
    throw;
  }
}

}  // namespace

int checked_level(Codec codec, int level) {
  check_option("codec", format::code_of(codec), 0, kCodecCount - 1);
  const auto [lowest, highest, standard] = levels_of(codec);
  if (level == 0) return standard;
  if (level >= lowest && level <= highest) return level;
  fail_argument(ErrorCode::bad_argument, "compression_level", std::to_string(level),
                highest == 0 ? "none: this codec has no levels"
                             : fmt::format("{} to {}, or 0 for {}", lowest, highest, standard));
}

ChunkForm encode_chunk(Codec wanted, int level, ElementLayout layout, ByteSpan raw,
                       std::vector<std::byte>& out) {
  const ChunkChoice choice = choose_coding(wanted, checked_level(wanted, level), layout, raw);
  encode_choice(choice, layout, raw, out);
  // A chunk must save at least its own entry in the directory, so that compression makes no file
  // larger. The choice was made on a sample; this compares the real sizes.
  if (choice.codec != Codec::none && out.size() + sizeof(format::ChunkEntry) < raw.size())
    return {choice.codec, choice.filter};
  out.assign(raw.begin(), raw.end());
  return {};
}

void decode_chunk(Codec codec, format::Filter filter, ByteSpan stored, MutableByteSpan raw) {
  check_filter(filter);
  in_payload([&] {
    if (filter == format::Filter::none) return decode_bytes(codec, stored, raw);
    // A filter is undone out of place, so the codec decodes to scratch memory first.
    thread_local Scratch scratch;
    const Scratch::Lease filtered = scratch.take(raw.size());
    decode_bytes(codec, stored, filtered.bytes());
    undo_filter(filter, filtered.bytes(), raw);
  });
}

void decode_two_chunks(const StoredChunk& first, const StoredChunk& second) {
  const ChunkForm plain{Codec::plane_entropy, format::Filter::none};
  if (first.form == plain && second.form == plain) {
    in_payload([&] {
      plane_entropy_decode_two({first.stored, first.raw}, {second.stored, second.raw});
    });
  } else {
    for (const StoredChunk* const chunk : {&first, &second})
      decode_chunk(chunk->form.codec, chunk->form.filter, chunk->stored, chunk->raw);
  }
}

}  // namespace thalia::codec
