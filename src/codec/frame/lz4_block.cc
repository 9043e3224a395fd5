// Blocks go through liblz4's one-call functions. The decoder is the safe one: it reads no byte
// after `stored` and writes none after `raw`, whatever the bytes are. It counts in `int`, hence
// the limit of 2 GB.
#include "codec/frame/lz4_block.h"

#include <lz4.h>
#include <lz4hc.h>

#include <cassert>
#include <limits>
#include <new>

#include "codec/frame/frame_error.h"
#include "codec/frame/lz4_level.h"

namespace thalia::codec {
namespace {

const char* chars(ByteSpan bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}

}  // namespace

void lz4_block_encode(int level, ByteSpan raw, std::vector<std::byte>& out) {
  assert(raw.size() <= LZ4_MAX_INPUT_SIZE);
  const int size = static_cast<int>(raw.size());
  const int room = LZ4_compressBound(size);
  out.resize(static_cast<std::size_t>(room));
  char* const to = reinterpret_cast<char*>(out.data());
  const int length = level < kFirstDenseLz4Level
                         ? LZ4_compress_default(chars(raw), to, size, room)
                         : LZ4_compress_HC(chars(raw), to, size, room, level);
  if (length <= 0) throw std::bad_alloc();  // with enough room there is no other failure
  out.resize(static_cast<std::size_t>(length));
}

void lz4_block_decode(ByteSpan stored, MutableByteSpan raw) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (stored.size() > kMost || raw.size() > kMost)
    fail_frame("lz4", "a block of more than 2 GB", fmt::format("{} bytes", stored.size()));
  const int length =
      LZ4_decompress_safe(chars(stored), reinterpret_cast<char*>(raw.data()),
                          static_cast<int>(stored.size()), static_cast<int>(raw.size()));
  if (length < 0) fail_frame("lz4", "a broken block");
  if (static_cast<std::size_t>(length) != raw.size())
    fail_frame("lz4", "decodes to another size", fmt::format("{} bytes", length),
               fmt::format("{} bytes", raw.size()));
}

}  // namespace thalia::codec
