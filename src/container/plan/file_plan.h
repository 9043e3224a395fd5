// What a file will hold, before any of it is written: regions, tensors and connections, checked as
// they are declared. No file, no offsets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/chunk.h"
#include "format/delta.h"
#include "format/extent.h"
#include "format/header.h"
#include "format/quantized.h"
#include "integrity/content_hash.h"
#include "thalia/options.h"
#include "thalia/region.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::container {

// Finds which of many things has a name, where the names are kept with the things.

/// Places of things in a list by the hashes of their names: 8 bytes a slot and no memory for a
/// name, since a state of many small tensors is declared while the training waits. Places are
/// those of the list, so the table stays true if the list is moved. Externally synchronised.
class NameTable {
 public:
  static std::uint32_t hash_of(std::string_view name) noexcept {
    const std::size_t hash = std::hash<std::string_view>()(name);
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
  }
  /// Fetches what contains() will look at: the table of a large state is in no cache.
  void prefetch(std::uint32_t hash) const noexcept {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & mask()]);
  }
  /// @param has_name takes a place, and says whether the name is the one of the thing there.
  template <typename HasName>
  bool contains(std::uint32_t hash, HasName has_name) const {
    if (slots_.empty()) return false;
    for (std::size_t i = hash & mask(); slots_[i].place != kNone; i = (i + 1) & mask()) {
      if (slots_[i].hash == hash && has_name(slots_[i].place)) return true;
    }
    return false;
  }
  /// The name is not there yet.
  void insert(std::uint32_t hash, std::uint32_t place) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    put({hash, place});
    ++count_;
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  static constexpr std::size_t kFirstSlots = 16;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t place = kNone;
  };

  std::size_t mask() const noexcept { return slots_.size() - 1; }
  void put(Slot slot) noexcept {
    std::size_t i = slot.hash & mask();
    while (slots_[i].place != kNone) i = (i + 1) & mask();
    slots_[i] = slot;
  }
  void grow() {
    const std::vector<Slot> before = std::move(slots_);
    slots_ = std::vector<Slot>(before.empty() ? kFirstSlots : 2 * before.size());
    for (const Slot& slot : before) {
      if (slot.place != kNone) put(slot);
    }
  }

  std::vector<Slot> slots_;  ///< a power of two, half of them empty
  std::size_t count_ = 0;
};

// The bytes of a payload that somebody else holds.

/// Runs of borrowed bytes, one after the other, none of them empty. Most payloads are one run,
/// which takes no memory of its own.
class PayloadPieces {
 public:
  PayloadPieces() = default;
  PayloadPieces(ByteSpan piece) : one_(piece) {}
  PayloadPieces(std::vector<ByteSpan> pieces) : many_(std::move(pieces)) {
    std::erase_if(many_, [](ByteSpan piece) { return piece.empty(); });
  }

  // A range, which a span of pieces is made from.
  auto begin() const noexcept { return all().begin(); }
  auto end() const noexcept { return all().end(); }
  std::size_t size() const noexcept { return all().size(); }
  bool empty() const noexcept { return all().empty(); }
  const ByteSpan& front() const noexcept { return all().front(); }

 private:
  std::span<const ByteSpan> all() const noexcept {
    if (!many_.empty()) return many_;
    return {&one_, one_.empty() ? 0u : 1u};
  }

  ByteSpan one_;
  std::vector<ByteSpan> many_;  ///< if there are more, or were
};

/// Stands for the connectivity section where a region's number is asked for: its matrices come
/// after all regions.
inline constexpr std::uint32_t kConnectivity = 0xFFFFFFFF;

struct TensorPlan {
  TensorSpec spec;
  std::uint64_t logical_length = 0;
  PayloadPieces pieces;  ///< the borrowed payload; empty if streamed
  std::uint32_t region = 0;
  bool streamed = false;

  /// The payload lies in the file that is appended to, where it stays.
  bool in_place = false;
  /// The pieces are the bytes of `chunks`, whose offsets count from the payload's first byte until
  /// it is placed.
  bool in_chunks = false;

  bool digested = false;  ///< the digest is known from elsewhere

  // What few tensors have lies elsewhere: a state may have a million of the others.
  std::unique_ptr<format::QuantizedSideData> quantized{};  ///< if the encoding is quantized

  // For a delta:
  std::unique_ptr<format::DeltaTensor> delta{};  ///< where the payload needs the base
  std::optional<Codec> codec{};                  ///< in place of the save's

  // Known once the payload was seen:
  integrity::ContentDigest digest;
  std::uint64_t stored_offset = 0;
  std::uint64_t stored_length = 0;
  std::vector<format::ChunkEntry> chunks;

  /// The encoding of the tensor that a reader gets; in a delta it is not that of the stored bytes.
  Encoding result_encoding() const { return delta ? delta->encoding : spec.encoding; }

  /// From offsets that count from the payload's first byte to absolute ones.
  void move_chunks(std::uint64_t payload_offset) {
    for (format::ChunkEntry& chunk : chunks) chunk.offset = chunk.offset + payload_offset;
  }
};

struct RegionPlan {
  RegionSpec spec;                       ///< only the name if it is kept
  std::optional<format::Extent> kept{};  ///< where it lies in the file that is appended to
  std::vector<std::uint32_t> tensors;    ///< in the order of declaration
  NameTable tensor_names;                ///< of places in `tensors`
};

struct ConnectionPlan {
  std::string source;
  std::string target;
  std::uint32_t weights = kNone;
  std::uint32_t delays = kNone;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
};

/// Where an append begins, and what stays in its place. For a new file: nothing.
struct AppendBase {
  std::uint64_t begin = sizeof(format::Header);  ///< a multiple of 64; the header of a new file
  std::optional<format::Extent> metadata{};
  std::optional<format::Extent> connectivity{};
  std::uint64_t neurons = 0;  ///< of the regions that are kept, together
};

/// What makes the file a delta: its container begins after the header that names the base, which
/// anybody who saves it has written.
struct DeltaContainer {
  std::vector<std::byte> prefix;
  Digest256 base_checksum;
  std::uint64_t base_step = 0;
};

/// Externally synchronised. Every add_ checks its arguments first and changes nothing if it
/// throws UsageError.
class FilePlan {
 public:
  void set_metadata(std::string json);
  std::uint32_t add_region(RegionSpec spec);
  /// `pieces` is ignored where `streamed`.
  std::uint32_t add_tensor(std::uint32_t region, TensorSpec spec, PayloadPieces pieces,
                           bool streamed);
  /// A tensor of encoding quantized: `payload` is its arrays, which `side` describes.
  std::uint32_t add_quantized(std::uint32_t region, TensorSpec spec,
                              const format::QuantizedSideData& side, ByteSpan payload);
  /// A tensor of a file, whose layout was checked when it was read. @throws UsageError for a region
  /// that is not declared, and for a name that it has already.
  std::uint32_t add_copy(std::uint32_t region, TensorPlan tensor);
  /// A tensor that needs no check, of a name that the region does not have yet.
  std::uint32_t append_tensor(std::uint32_t region, TensorPlan tensor);
  bool has_tensor(const RegionPlan& region, std::string_view name) const {
    return has_tensor(region, name, NameTable::hash_of(name));
  }
  std::uint32_t add_connection(std::string_view source, std::string_view target);
  std::uint32_t add_connection_weights(std::uint32_t connection, TensorSpec spec, ByteSpan payload);
  std::uint32_t add_connection_delays(std::uint32_t connection, TensorSpec spec, ByteSpan payload);

  // For an append: the file has a region, or a connection between two, and adding another of that
  // name is refused. Unknown names may be forgotten.
  void note_region(std::string_view name);
  void forget_region(std::string_view name);
  void note_connection(std::string_view source, std::string_view target);
  void forget_connection(std::string_view source, std::string_view target);

  /// What only the whole tells: every connection has weights, and with what an append keeps there
  /// is not more than limits. @throws UsageError.
  void check_complete() const;

  ReadLimits limits{};  ///< that any reader has: of regions and tensors there are no more
  AppendBase base;
  std::optional<DeltaContainer> delta{};
  std::string metadata = "{}";
  std::uint64_t training_steps = 0;
  std::vector<RegionPlan> regions;
  /// A deque: what is declared is not moved when more comes.
  std::deque<TensorPlan> tensors;
  std::vector<ConnectionPlan> connections;

  bool is_sparse(std::uint32_t tensor) const {
    return thalia::is_sparse(tensors[tensor].spec.encoding);
  }

 private:
  std::uint32_t add_matrix(TensorSpec&& spec, ByteSpan payload);
  bool has_tensor(const RegionPlan& region, std::string_view name, std::uint32_t hash) const;
  std::uint64_t check_tensor(const TensorSpec& spec, const PayloadPieces& pieces, bool streamed,
                             const format::QuantizedSideData* quantized) const;
  TensorPlan& store(std::uint32_t region, TensorSpec&& spec, PayloadPieces&& pieces, bool streamed,
                    std::uint64_t length);
  std::uint32_t join_region(std::uint32_t region, std::uint32_t hash);
  void check_region(std::uint32_t region) const;
  void check_unique(std::uint32_t region, std::string_view name, std::uint32_t hash) const;
  std::uint32_t add_named(std::uint32_t region, TensorSpec&& spec, PayloadPieces&& pieces,
                          bool streamed, const format::QuantizedSideData* quantized);
  std::unordered_set<std::string> region_names_;
  std::unordered_set<std::string> connection_names_;
};

/// Throws UsageError unless dtype, role and encoding are enumerators: nothing is asked of others.
void check_codes(const TensorSpec& spec);

/// Zero bytes to pad with; at least 4096 + 64 of them.
ByteSpan zero_bytes();

}  // namespace thalia::container
