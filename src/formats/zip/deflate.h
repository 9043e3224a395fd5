// Raw deflate streams (RFC 1951), as zip archives hold them: no zlib or gzip header around them.
#pragma once

#include <cstdint>
#include <memory>

#include "formats/source/piece_sink.h"
#include "thalia/types.h"

namespace thalia::formats {

/// No deflate stream decodes to more bytes than this for each of its own: 258 for two bits.
inline constexpr std::uint64_t kMostInflation = 1032;

/// The checksum of the zlib format (RFC 1950), which other formats use too.
std::uint32_t adler32_of(ByteSpan bytes) noexcept;

/// Decodes a stream in order. Externally synchronised.
class InflateStream {
 public:
  /// `deflated` has to outlive the stream.
  explicit InflateStream(ByteSpan deflated);
  ~InflateStream();
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  /// The next out.size() bytes. @throws CompressionError where the stream is damaged, or ends
  /// before.
  void read(MutableByteSpan out);
  /// @throws CompressionError unless the stream and its bytes end here.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Makes a stream; the same bytes whatever the pieces. Externally synchronised.
class DeflateStream {
 public:
  /// `level` 1 to 9, or -1: zlib's default.
  explicit DeflateStream(int level = -1);
  ~DeflateStream();
  DeflateStream(const DeflateStream&) = delete;
  DeflateStream& operator=(const DeflateStream&) = delete;

  void write(ByteSpan raw, const PieceSink& sink);
  void finish(const PieceSink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalia::formats
