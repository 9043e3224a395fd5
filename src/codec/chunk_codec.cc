#include "codec/chunk_codec.h"

#include <algorithm>

#include "base/fail.h"
#include "codec/lz4_frame.h"
#include "codec/zstd_frame.h"

namespace thalia::codec {
namespace {

[[noreturn]] void fail_codec(format::Codec codec) {
  throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such codec",
                         {.section = "payload",
                          .field = "codec",
                          .value = std::to_string(static_cast<int>(codec)),
                          .bound = "0 (store), 1 (zstd) or 2 (lz4)"});
}

void decode_frame(format::Codec codec, ByteSpan stored, MutableByteSpan raw) {
  switch (codec) {
    case format::Codec::store:
      if (stored.size() != raw.size()) {
        throw FormatError(ErrorCode::bad_value, "a stored chunk",
                          {.section = "payload",
                           .field = "stored_length",
                           .value = std::to_string(stored.size()),
                           .bound = std::to_string(raw.size())});
      }
      std::copy(stored.begin(), stored.end(), raw.begin());
      return;
    case format::Codec::zstd:
      return zstd_decode(stored, raw);
    case format::Codec::lz4:
      return lz4_decode(stored, raw);
    case format::Codec::plane_entropy:
    case format::Codec::packed_exponents:
      break;
  }
  fail_codec(codec);
}

}  // namespace

LevelRange level_range(format::Codec codec) {
  switch (codec) {
    case format::Codec::store:
      return {0, 0, 0};
    case format::Codec::zstd:
      return {1, 22, 3};
    case format::Codec::lz4:
      return {1, 12, 1};
    case format::Codec::plane_entropy:
    case format::Codec::packed_exponents:
      break;
  }
  fail_codec(codec);
}

format::Codec encode_chunk(format::Codec wanted, int level, ByteSpan raw,
                           std::vector<std::byte>& out) {
  const LevelRange range = level_range(wanted);
  if (level == 0) level = range.standard;
  if (level < range.lowest || level > range.highest) {
    fail_argument(ErrorCode::bad_argument, "level", std::to_string(level),
                  fmt::format("{} to {}", range.lowest, range.highest));
  }
  if (wanted == format::Codec::zstd) zstd_encode(level, raw, out);
  if (wanted == format::Codec::lz4) lz4_encode(level, raw, out);
  if (wanted != format::Codec::store && out.size() < raw.size()) return wanted;
  out.assign(raw.begin(), raw.end());
  return format::Codec::store;
}

void decode_chunk(format::Codec codec, format::Filter filter, ByteSpan stored,
                  MutableByteSpan raw) {
  if (filter != format::Filter::none) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "this version has no such filter",
                           {.section = "payload",
                            .field = "filter",
                            .value = std::to_string(static_cast<int>(filter)),
                            .bound = "0 (none)"});
  }
  try {
    decode_frame(codec, stored, raw);
  } catch (Error& error) {
    error.add_section("payload");
    throw;
  }
}

}  // namespace thalia::codec
