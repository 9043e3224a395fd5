// How the files of a run are called. docs/format/store.md, "Names".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "container/write/sha256_ending.h"

namespace thalia::store {

inline constexpr std::string_view kCheckpoints = "checkpoints";
inline constexpr std::string_view kFollowers = "followers";
inline constexpr std::string_view kGates = "gates";
inline constexpr std::string_view kEvaluation = "eval";
inline constexpr std::string_view kJournal = "journal.jsonl";
inline constexpr std::string_view kBestMeta = "best.meta.json";
inline constexpr std::string_view kDigestEnding = container::kSha256Ending;
inline constexpr std::string_view kMetaEnding = ".meta.json";

/// Letters, digits, '.', '-' and '_', the first a letter or a digit, 64 at most.
bool is_name(std::string_view name) noexcept;
/// Letters, digits and '.', and none that other files of a run end in.
bool is_extension(std::string_view extension) noexcept;

/// "ckpt_phase1_step00010000.thalia". @throws UsageError (bad_argument) for a step beyond kMaxStep.
std::string checkpoint_name(std::string_view phase, std::uint64_t step, std::string_view extension);
/// The step of such a name; nullopt for any other.
std::optional<std::uint64_t> checkpoint_step(std::string_view file, std::string_view phase,
                                             std::string_view extension) noexcept;

/// "pool_v0042_step00120000.thalia"; more than four digits where a version has them.
std::string pool_name(std::uint64_t version, std::uint64_t step, std::string_view extension);
struct PoolName {
  std::uint64_t version;
  std::uint64_t step;
};
std::optional<PoolName> parse_pool_name(std::string_view file, std::string_view extension) noexcept;

}  // namespace thalia::store
