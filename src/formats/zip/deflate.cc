// The only source that sees zlib. It counts what is at hand in 32 bits, so longer spans are handed
// to it in parts.
#include "formats/zip/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/error.h"

namespace thalia::formats {
namespace {

constexpr std::size_t kZlibPart = std::size_t{1} << 30;
constexpr std::size_t kDeflateBuffer = std::size_t{1} << 16;

[[noreturn]] void fail_deflate(std::string_view what) {
  throw CompressionError("deflate", std::string(what));
}

// zlib takes a pointer to bytes that it does not change, without const.
Bytef* zlib_input(ByteSpan bytes) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
}

}  // namespace

struct InflateStream::State {
  z_stream zlib{};
  ByteSpan ahead;  ///< not handed to zlib yet
  bool ended = false;

  void refill() {
    if (zlib.avail_in != 0) return;
    const ByteSpan next = ahead.first(std::min(ahead.size(), kZlibPart));
    ahead = ahead.subspan(next.size());
    zlib.next_in = zlib_input(next);
    zlib.avail_in = static_cast<uInt>(next.size());
  }
};

InflateStream::InflateStream(ByteSpan deflated) : state_(std::make_unique<State>()) {
  state_->ahead = deflated;
  if (inflateInit2(&state_->zlib, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}

InflateStream::~InflateStream() {
  inflateEnd(&state_->zlib);
}

void InflateStream::read(MutableByteSpan out) {
  z_stream& zlib = state_->zlib;
  while (!out.empty()) {
    if (state_->ended) fail_deflate("the stream ends before the size that the archive tells");
    state_->refill();
    const std::size_t room = std::min(out.size(), kZlibPart);
    zlib.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib.avail_out = static_cast<uInt>(room);
    const int result = inflate(&zlib, Z_NO_FLUSH);
    out = out.subspan(room - zlib.avail_out);
    if (result == Z_STREAM_END) {
      state_->ended = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result == Z_BUF_ERROR && zlib.avail_in == 0 && state_->ahead.empty()) {
      fail_deflate("the stream is cut off");
    } else if (result != Z_OK) {
      fail_deflate(zlib.msg == nullptr ? "the stream is damaged" : zlib.msg);
    }
  }
}

void InflateStream::finish() {
  // The mark of the end may still be ahead: it gives no byte, and any other code does.
  if (!state_->ended) {
    z_stream& zlib = state_->zlib;
    std::byte beyond{};
    do {
      state_->refill();
      zlib.next_out = reinterpret_cast<Bytef*>(&beyond);
      zlib.avail_out = 1;
      const int result = inflate(&zlib, Z_NO_FLUSH);
      if (zlib.avail_out == 0) fail_deflate("the stream is longer than the archive tells");
      if (result == Z_MEM_ERROR) throw std::bad_alloc();
      state_->ended = result == Z_STREAM_END;
      if (!state_->ended && result != Z_OK) fail_deflate("the stream does not end");
    } while (!state_->ended);
  }
  if (state_->zlib.avail_in != 0 || !state_->ahead.empty())
    fail_deflate("bytes follow the end of the stream");
}

struct DeflateStream::State {
  z_stream zlib{};
  std::vector<std::byte> buffer = std::vector<std::byte>(kDeflateBuffer);

  void run(int flush, const PieceSink& sink) {
    int result = Z_OK;
    do {
      zlib.next_out = reinterpret_cast<Bytef*>(buffer.data());
      zlib.avail_out = static_cast<uInt>(buffer.size());
      result = deflate(&zlib, flush);
      const std::size_t made = buffer.size() - zlib.avail_out;
      if (made != 0) sink(ByteSpan(buffer).first(made));
    } while (zlib.avail_out == 0 || (flush == Z_FINISH && result == Z_OK));
  }
};

DeflateStream::DeflateStream(int level) : state_(std::make_unique<State>()) {
  // 8: how much memory zlib takes by default, which its output depends on.
  if (deflateInit2(&state_->zlib, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

DeflateStream::~DeflateStream() {
  deflateEnd(&state_->zlib);
}

void DeflateStream::write(ByteSpan raw, const PieceSink& sink) {
  while (!raw.empty()) {
    const ByteSpan part = raw.first(std::min(raw.size(), kZlibPart));
    state_->zlib.next_in = zlib_input(part);
    state_->zlib.avail_in = static_cast<uInt>(part.size());
    state_->run(Z_NO_FLUSH, sink);
    raw = raw.subspan(part.size());
  }
}

void DeflateStream::finish(const PieceSink& sink) {
  state_->run(Z_FINISH, sink);
}

std::uint32_t adler32_of(ByteSpan bytes) noexcept {
  uLong sum = adler32(0, nullptr, 0);
  while (!bytes.empty()) {
    const ByteSpan part = bytes.first(std::min(bytes.size(), kZlibPart));
    sum = adler32(sum, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
    bytes = bytes.subspan(part.size());
  }
  return static_cast<std::uint32_t>(sum);
}

}  // namespace thalia::formats
