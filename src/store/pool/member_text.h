// The texts of a pool: what lies beside a version, in the log of those that went, and in the
// roster. docs/format/store.md, "Pool".
#pragma once

#include <string>

#include "thalia/state/value.h"
#include "thalia/store/pool.h"

namespace thalia::store {

inline constexpr std::string_view kVersionFile = "VERSION";
inline constexpr std::string_view kRoster = "roster.json";
inline constexpr std::string_view kEvictions = "pool_evictions.jsonl";

/// A number that JSON readers in doubles have, too.
inline constexpr std::uint64_t kMaxVersion = (1ull << 53) - 1;

/// A finite mu, and a finite sigma of 0 or more.
bool is_rating(const Rating& rating) noexcept;
bool is_win_rate(double value) noexcept;

/// A member's rating takes its place among those that it had. If there are more than kMostRatings,
/// the oldest go.
inline constexpr std::size_t kMostRatings = 10'000;
void rate(PoolMember& member, const PoolRating& now);

/// JSON of NAME.meta.json.
std::string meta_text(const PoolMember& member);
/// Fills in what such a text says of the member, whose version and step are known by its name.
/// @throws FormatError (bad_json, bad_value), and the member is as it was: also if the text is
/// of another version.
void read_meta(std::string_view text, PoolMember& member);

/// A line of the log, with all ratings that the member had.
std::string eviction_text(const PoolMember& member, std::uint64_t now);
/// The largest version in a log; 0 if it has none. Other lines are passed over.
std::uint64_t last_evicted(std::string_view log);

std::string roster_text(const PoolView& view);
/// Fills in what a roster says of an anchor's rating. @throws FormatError.
void read_anchor_rating(std::string_view roster, PoolMember& anchor);

/// The number in VERSION. @throws FormatError (bad_value).
std::uint64_t parse_version(std::string_view text);

}  // namespace thalia::store
