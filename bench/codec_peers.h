// The codecs that weights are compressed with, ours and others, under one shape.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/cpu/element_layout.h"
#include "thalia/types.h"

namespace thalia::bench {

/// Works on one chunk. Neither function is called by two threads at once.
struct ChunkCodec {
  std::string name;
  /// Replaces `out`; where it is not smaller than the raw bytes, the chunk would be stored.
  std::function<void(ByteSpan raw, std::vector<std::byte>& out)> encode;
  /// Of what encode() made, if it was smaller.
  std::function<void(ByteSpan stored, MutableByteSpan raw)> decode;
};

/// plane_entropy and packed_exponents with each set of instructions that there is.
std::vector<ChunkCodec> our_codecs(codec::ElementLayout layout);
/// zstd -1, zstd -3 and lz4, each of the bytes as they are and of their planes.
std::vector<ChunkCodec> other_codecs(codec::ElementLayout layout);

/// Chunks of 1 MiB of some data, what a codec makes of them, and memory to decode to.
class CodedChunks {
 public:
  CodedChunks(ChunkCodec codec, ByteSpan raw);
  void encode();
  void decode();
  /// Raw bytes by stored bytes, where a chunk that does not shrink is stored.
  double ratio() const;

 private:
  ByteSpan chunk(std::size_t i) const;

  ChunkCodec codec_;
  ByteSpan raw_;
  std::vector<std::vector<std::byte>> stored_;
  std::vector<std::byte> out_, decoded_;
};

}  // namespace thalia::bench
