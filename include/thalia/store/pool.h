// Pool: earlier versions of a model to play against, or to compare with. docs/format/store.md,
// "Pool".
//
//   thalia::RunWriter run("runs/20260115_143022_a1b2c3d4");
//   thalia::Pool pool(run);
//   pool.add("phase3", step, {.mu = 27.1, .sigma = 1.4});
//   thalia::PoolDraw draw = thalia::draw_opponent(pool.view(), seed, game);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/once.h"
#include "thalia/options.h"
#include "thalia/storage.h"
#include "thalia/store/run.h"
#include "thalia/store/writer.h"

namespace thalia {

/// OpenSkill's: a skill estimate and its uncertainty.
struct Rating {
  double mu = 25;
  double sigma = 25.0 / 3.0;
  /// What a phase's metric is made of.
  double conservative() const noexcept { return mu - 3 * sigma; }
  friend bool operator==(const Rating&, const Rating&) = default;
};

/// What games have shown of a member of the pool.
struct PoolRating {
  Rating rating{};
  std::uint64_t games_played = 0;
  double win_rate = 0;         ///< 0 to 1
  std::uint64_t rated_at = 0;  ///< seconds since 1970: from when on it has it, or had it

  friend bool operator==(const PoolRating&, const PoolRating&) = default;
};

struct PoolMember : KeptFile, PoolRating {
  std::uint64_t version = 0;  ///< 0 of an anchor
  std::string name{};         ///< of an anchor, the gate's; else the file's
  std::filesystem::path path{};
  std::uint64_t promoted_at = 0;  ///< seconds since 1970
  bool is_anchor = false;
  std::vector<PoolRating> history{};  ///< what it had before, the oldest first

  friend bool operator==(const PoolMember&, const PoolMember&) = default;
};

struct PoolView {
  PoolConfig config;
  std::vector<PoolMember> versions{};  ///< in the order of their versions
  std::vector<PoolMember> anchors{};   ///< gates; their ratings do not change
  std::uint64_t next_version = 1;
};

/// Reads the pool of a run. What the file next to a version does not say has its default. @throws
/// IoError; UsageError (not_found) where the run has none.
PoolView read_pool(const Run& run);

enum class OpponentKind { self, pool, baseline };

struct PoolDraw {
  OpponentKind kind = OpponentKind::self;
  std::optional<PoolMember> member{};  ///< of kinds pool and baseline
};
/// The same for the same view, seed and index, on every machine: the words of
/// SHA-256("pool" ‖ seed u64 ‖ index u64), little-endian, choose the kind by its weight, and in the
/// pool each member, versions and anchors, alike. A kind that has no member gives its weight to the
/// others.
PoolDraw draw_opponent(const PoolView& view, std::uint64_t seed, std::uint64_t index);

struct PoolAddResult {
  PoolMember member;
  std::vector<std::string> evicted;  ///< files
};

/// Changes a run's pool. Borrows the writer. Internally synchronised.
class Pool {
 public:
  explicit Pool(RunWriter& run);

  PoolView view() const;
  /// Strips a checkpoint of the run to what inference needs, and adds it as the next version: no
  /// number comes twice, whatever was evicted since. Its sigma is that of `current`, or the
  /// configuration's floor if that is more. The oldest versions beyond PoolConfig::keep go, once
  /// all of their ratings are in pool_evictions.jsonl.
  /// @throws as Run::load(), of that step alone; UsageError (wrong_state) for a run of other files.
  PoolAddResult add(std::string_view phase, std::uint64_t step, const Rating& current);
  /// Adds bytes that the caller has stripped, of any kind.
  PoolAddResult add_bytes(std::string_view phase, std::uint64_t step, const Rating& current,
                          ByteSpan bytes);
  /// What games have shown of a version. @throws UsageError (not_found); (bad_argument) for an
  /// anchor, or a win rate that is not one.
  PoolMember rate(std::uint64_t version, const Rating& rating, std::uint64_t games_played,
                  double win_rate);

 private:
  RunWriter& run_;
};

/// The models that were used last, mapped; who holds one keeps it whatever the cache does.
/// Internally synchronised.
class PoolCache {
 public:
  explicit PoolCache(std::size_t capacity = 5, ReadOptions options = {});
  /// @throws as Run::load(), with the digest checked when it is opened.
  ChainReader get(const PoolMember& member);
  std::size_t size() const;
  std::uint64_t hits() const;
  std::uint64_t misses() const;

 private:
  struct Slot {
    std::filesystem::path path;
    ChainReader chain;
  };
  const std::size_t capacity_;
  const ReadOptions options_;
  mutable detail::ThreadLock mutex_;
  std::list<Slot> slots_;  ///< the last used first
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace thalia
