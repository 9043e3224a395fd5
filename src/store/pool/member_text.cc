// A member that a text lacks leaves what the file's name has told; one that is wrong makes the
// whole text unreadable. Values are read into a copy first, so that no rating is half of one text.
#include "store/pool/member_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/fail.h"
#include "json/reader.h"
#include "store/run/config_text.h"
#include "store/run/fields.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

constexpr std::uint64_t kAnyCount = ~std::uint64_t{0};
constexpr unsigned kEvictionDepth = 4;

void add_history(Value& object, const PoolMember& member) {
  object.add("rated_at", member.rated_at);
  Value& history = object.add("history", Value::array());
  for (const PoolRating& past : member.history) {
    Value entry = Value::object();
    entry.add("mu", past.rating.mu);
    entry.add("sigma", past.rating.sigma);
    entry.add("games_played", past.games_played);
    entry.add("win_rate", past.win_rate);
    entry.add("rated_at", past.rated_at);
    history.push_back(std::move(entry));
  }
}

void add_rating(Value& object, const PoolMember& member) {
  object.add("mu", member.rating.mu);
  object.add("sigma", member.rating.sigma);
  object.add("games_played", member.games_played);
  object.add("win_rate", member.win_rate);
  object.add("promoted_at", member.promoted_at);
}

Value meta_of(const PoolMember& member) {
  Value object = Value::object();
  object.add("version", member.version);
  object.add("source_global_step", member.step);
  object.add("source_phase", member.phase);
  add_rating(object, member);
  return object;
}

std::vector<PoolRating> history_of(Fields& fields) {
  std::vector<PoolRating> history;
  const std::vector<Value>* const list = fields.list("history");
  if (list == nullptr) return history;
  for (const Value& element : *list) {
    Fields entry(element, "history.");
    PoolRating past{.rating = {.mu = entry.number("mu").value_or(Rating{}.mu),
                               .sigma = entry.number("sigma").value_or(Rating{}.sigma)},
                    .games_played = entry.integer("games_played", 0, kAnyCount).value_or(0),
                    .win_rate = entry.number("win_rate").value_or(0),
                    .rated_at = entry.integer("rated_at", 0, kAnyCount).value_or(0)};
    if (!is_rating(past.rating) || !is_win_rate(past.win_rate))
      entry.fail("sigma", fmt::format("mu {}, sigma {}", past.rating.mu, past.rating.sigma),
                 "finite numbers, sigma 0 or more");
    history.push_back(past);
  }
  return history;
}

// Members that are not there leave what the member has.
void read_rating(Fields& fields, PoolMember& member) {
  const Rating rating{.mu = fields.number("mu").value_or(member.rating.mu),
                      .sigma = fields.number("sigma").value_or(member.rating.sigma)};
  if (!is_rating(rating))
    fields.fail("sigma", fmt::format("mu {}, sigma {}", rating.mu, rating.sigma),
                "finite numbers, sigma 0 or more");
  const double win_rate = fields.number("win_rate").value_or(member.win_rate);
  if (!is_win_rate(win_rate)) fields.fail("win_rate", fmt::format("{}", win_rate), "0 to 1");
  member.games_played = fields.integer("games_played", 0, kAnyCount).value_or(member.games_played);
  member.promoted_at = fields.integer("promoted_at", 0, kAnyCount).value_or(member.promoted_at);
  member.rating = rating;
  member.win_rate = win_rate;
}

}  // namespace

bool is_rating(const Rating& rating) noexcept {
  return std::isfinite(rating.mu) && std::isfinite(rating.sigma) && rating.sigma >= 0;
}

bool is_win_rate(double value) noexcept {
  return value >= 0 && value <= 1;
}

void rate(PoolMember& member, const PoolRating& now) {
  member.history.push_back(member);
  if (member.history.size() > kMostRatings) member.history.erase(member.history.begin());
  static_cast<PoolRating&>(member) = now;
}

std::string meta_text(const PoolMember& member) {
  Value object = meta_of(member);
  add_history(object, member);
  return pretty_json(object);
}

void read_meta(std::string_view text, PoolMember& member) {
  const Value object = parse_json(text);
  Fields fields(object);
  PoolMember read = member;
  const std::uint64_t version = fields.integer("version", 1, kMaxVersion).value_or(member.version);
  if (version != member.version)
    fields.fail("version", std::to_string(version), std::to_string(member.version));
  fields.integer("source_global_step", 0, kMaxStep);
  read.phase = fields.text("source_phase").value_or(member.phase);
  read_rating(fields, read);
  read.rated_at = fields.integer("rated_at", 0, kAnyCount).value_or(read.promoted_at);
  read.history = history_of(fields);
  member = std::move(read);
}

std::string eviction_text(const PoolMember& member, std::uint64_t now) {
  Value object = meta_of(member);
  add_history(object, member);
  object.add("file", member.name);
  object.add("evicted_at", now);
  return to_json(object) + "\n";
}

std::uint64_t last_evicted(std::string_view log) {
  std::uint64_t last = 0;
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    if (line.empty()) continue;
    try {
      json::walk_object(line, kEvictionDepth, [&](std::string_view key, json::Value& value) {
        if (key != "version") return;
        const std::uint64_t version = value.unsigned_integer().value_or(0);
        if (version <= kMaxVersion) last = std::max(last, version);
      });
    } catch (const FormatError&) {
      // A crash tore it, and its version was not removed then.
    }
  }
  return last;
}

std::string roster_text(const PoolView& view) {
  Value roster = Value::object();
  roster.add("next_version", view.next_version);
  Value& anchors = roster.add("anchors", Value::array());
  for (const PoolMember& anchor : view.anchors) {
    Value object = Value::object();
    object.add("gate", anchor.name);
    object.add("source_global_step", anchor.step);
    object.add("source_phase", anchor.phase);
    add_rating(object, anchor);
    anchors.push_back(std::move(object));
  }
  Value& versions = roster.add("versions", Value::array());
  for (const PoolMember& member : view.versions) {
    Value object = meta_of(member);
    object.add("file", member.name);
    versions.push_back(std::move(object));
  }
  return pretty_json(roster);
}

void read_anchor_rating(std::string_view roster, PoolMember& anchor) {
  const Value object = parse_json(roster);
  Fields fields(object);
  const std::vector<Value>* const anchors = fields.list("anchors");
  if (anchors == nullptr) return;
  for (const Value& element : *anchors) {
    Fields of_anchor(element, "anchors.");
    if (of_anchor.text("gate") != anchor.name) continue;
    PoolMember read = anchor;
    read_rating(of_anchor, read);
    // The gate tells when it was promoted.
    read.promoted_at = anchor.promoted_at;
    anchor = std::move(read);
    return;
  }
}

std::uint64_t parse_version(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find('\n'));
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (error == std::errc() && stop == end && number <= kMaxVersion) return number;
  throw FormatError(ErrorCode::bad_value, {},
                    {.value = fmt::format("'{}'", printable(text, 60)),
                     .bound = fmt::format("a number up to {}", kMaxVersion)});
}

}  // namespace thalia::store
