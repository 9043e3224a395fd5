// One tensor's bytes in, compressed chunks out: cut, compressed on several threads, written one
// behind the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/options.h"

namespace thalia::container {

/// Where compressed chunks go and how they are made; borrowed by the streams that use it.
struct ChunkTarget {
  int fd;
  std::filesystem::path path;
  format::Codec codec;
  int level;
  std::uint32_t chunk_bytes;
  unsigned threads;
  std::stop_token cancel{};
};

/// Holds at most a few chunks a thread. Externally synchronised.
class ChunkStream {
 public:
  ChunkStream(const ChunkTarget& target, std::uint64_t offset) : target_(target), offset_(offset) {}

  /// @throws IoError.
  void append(ByteSpan bytes);
  /// Writes what is left. @return bytes stored.
  std::uint64_t finish();
  /// After finish(): the entries; empty where no chunk shrank, so that the tensor lies raw in the
  /// file.
  std::vector<format::ChunkEntry> take_chunks();

 private:
  std::size_t batch_bytes() const;
  void store(ByteSpan raw);

  const ChunkTarget& target_;
  std::uint64_t offset_;
  std::uint64_t stored_ = 0;
  std::vector<std::byte> pending_;
  std::vector<format::ChunkEntry> chunks_;
};

}  // namespace thalia::container
