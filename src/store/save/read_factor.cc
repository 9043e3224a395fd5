// What did not change is read as it is from the full file. What did change is read through the
// chain, as a restore reads it: verified, and on all cores. A sample of that is held against as
// much of a full file that is compressed, which is read and decoded. Both lie in the page cache: of
// the disk, the bytes of the chain are the measure.
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "base/stopwatch.h"
#include "codec/chunk/codec.h"
#include "codec/cpu/element_layout.h"
#include "integrity/content_hash.h"
#include "store/save/delta_choice.h"

namespace thalia::store {
namespace {

// Large enough for several cores to have a share of one.
constexpr std::uint64_t kPieceRead = 4 << 20;
constexpr std::uint64_t kMostSampled = 64 << 20;
// Less takes too little time to be told from noise in two rounds, and gets more of them.
constexpr std::uint64_t kEnoughChanged = 4 << 20;
// Still less takes no time that anybody waits for.
constexpr std::uint64_t kFewestChanged = 256 << 10;
constexpr std::uint64_t kRounds = 2;
constexpr std::uint64_t kMostRounds = 16;

constexpr std::uint64_t kChunk = 1 << 20;
constexpr std::uint64_t kMostCompressed = 16 << 20;

struct Piece {
  TensorView tensor;
  std::uint64_t begin;
  std::uint64_t length;
  bool is_whole;
};

void add_pieces(const TensorView& tensor, std::uint64_t bytes, std::vector<Piece>& pieces) {
  for (std::uint64_t begin = 0; begin < bytes; begin += kPieceRead) {
    const std::uint64_t length = std::min(bytes - begin, kPieceRead);
    pieces.push_back({tensor, begin, length, length == bytes});
  }
}

/// Pieces of the tensors that changed since the full file.
struct Changed {
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;
  std::uint64_t all_bytes = 0;  ///< of all tensors
};

Changed changed_since(const ChainReader& full, const ChainReader& chain) {
  Changed changed;
  const Reader& reader = chain.reader();
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    const auto same = full.reader().find_region(region.name());
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView tensor = region.tensor(i);
      const ChainTensor now = chain.describe(tensor);
      changed.all_bytes += now.logical_bytes;
      const auto before = same ? same->find(tensor.name()) : std::nullopt;
      if (before && full.describe(*before).content_hash == now.content_hash) continue;
      changed.bytes += now.logical_bytes;
      add_pieces(tensor, now.logical_bytes, changed.pieces);
    }
  }
  return changed;
}

// One of each so many, and not always the same one: layers may repeat at that distance.
std::vector<Piece> sample_of(const Changed& changed) {
  const std::uint64_t step = (changed.bytes + kMostSampled - 1) / kMostSampled;
  std::vector<Piece> chosen;
  for (std::uint64_t begin = 0; begin < changed.pieces.size(); begin += step) {
    const std::uint64_t at = begin + (begin * 2654435761 >> 16) % step;
    if (at < changed.pieces.size()) chosen.push_back(changed.pieces[at]);
  }
  return chosen;
}

std::uint64_t rounds_for(const Changed& changed) {
  return std::clamp(kRounds * kEnoughChanged / changed.bytes, kRounds, kMostRounds);
}

// As they follow each other: as much as has changed, or a little more.
std::vector<Piece> run_of(const ChainReader& full, std::uint64_t most) {
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;
  const Reader& reader = full.reader();
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const std::uint64_t length = full.describe(region.tensor(i)).logical_bytes;
      add_pieces(region.tensor(i), std::min(length, most), pieces);
      if ((bytes += length) >= most) return pieces;
    }
  }
  return pieces;
}

double seconds_a_byte(const ChainReader& chain, const std::vector<Piece>& pieces) {
  std::vector<std::byte> memory(kPieceRead);
  std::uint64_t bytes = 0;
  const Stopwatch watch;
  for (const Piece& piece : pieces) {
    const MutableByteSpan out = MutableByteSpan(memory).first(piece.length);
    if (piece.is_whole) {
      chain.read(piece.tensor, out);
    } else {
      chain.read_part(piece.tensor, piece.begin, out);
    }
    bytes += piece.length;
  }
  return watch.seconds() / static_cast<double>(bytes);
}

struct CompressedChunk {
  codec::ElementLayout layout;
  std::vector<std::byte> raw;
  codec::ChunkForm form{};
  std::vector<std::byte> stored{};
  Digest128 hash{};
};
/// Chunks of one tensor are decoded beside each other, tensors one after the other.
using CompressedPiece = std::vector<CompressedChunk>;

void for_each_chunk(CompressedPiece& piece, const std::function<void(CompressedChunk&)>& job) {
  parallel_for(piece.size(), resolve_threads(0, piece.size()),
               [&](std::size_t i) { job(piece[i]); });
}

std::vector<CompressedPiece> compressed(const ChainReader& full, const std::vector<Piece>& pieces) {
  std::vector<CompressedPiece> out;
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces) {
    if (bytes >= kMostCompressed) break;
    bytes += piece.length;
    CompressedPiece& chunks = out.emplace_back();
    for (std::uint64_t begin = 0; begin < piece.length; begin += kChunk) {
      chunks.push_back({.layout = codec::element_layout(piece.tensor.dtype()),
                        .raw = std::vector<std::byte>(std::min(piece.length - begin, kChunk))});
      full.read_part(piece.tensor, piece.begin + begin, chunks.back().raw);
    }
    for_each_chunk(chunks, [](CompressedChunk& chunk) {
      chunk.form =
          codec::encode_chunk(Codec::plane_entropy, 0, chunk.layout, chunk.raw, chunk.stored);
    });
  }
  return out;
}

double seconds_a_byte(std::vector<CompressedPiece>& pieces) {
  std::uint64_t bytes = 0;
  const Stopwatch watch;
  for (CompressedPiece& piece : pieces) {
    for_each_chunk(piece, [](CompressedChunk& chunk) {
      codec::decode_chunk(chunk.form.codec, chunk.form.filter, chunk.stored, chunk.raw);
      chunk.hash = integrity::xxh3_128(chunk.raw);
    });
    for (const CompressedChunk& chunk : piece) bytes += chunk.raw.size();
  }
  return watch.seconds() / static_cast<double>(bytes);
}

}  // namespace

std::optional<double> measure_read_factor(const RunFiles& files,
                                          const std::filesystem::path& delta) {
  // What disturbs a reading makes it longer.
  double chained = std::numeric_limits<double>::infinity(), alone = chained, decoded = chained;
  double share = 0;
  std::vector<CompressedPiece> full_file;
  std::uint64_t rounds = kRounds;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    // Opened anew, as what was verified once is not verified again.
    const ChainReader chain = files.open_chain(delta);
    const ChainReader full = files.open_chain(chain.paths().back());
    const Changed changed = changed_since(full, chain);
    if (changed.bytes < kFewestChanged) return std::nullopt;
    rounds = rounds_for(changed);
    share = static_cast<double>(changed.bytes) / static_cast<double>(changed.all_bytes);
    const std::uint64_t most = std::clamp(changed.bytes, kEnoughChanged, kMostSampled);
    const std::vector<Piece> sample = sample_of(changed), run = run_of(full, most);
    chained = std::min(chained, seconds_a_byte(chain, sample));
    alone = std::min(alone, seconds_a_byte(full, run));
    // After that, as it verifies what it reads, too.
    if (full_file.empty()) full_file = compressed(full, run);
    decoded = std::min(decoded, seconds_a_byte(full_file));
  }
  const double as_full = std::max(alone, decoded);
  if (!(as_full > 0)) return std::nullopt;
  return std::max(1.0, (share * chained + (1 - share) * alone) / as_full);
}

}  // namespace thalia::store
