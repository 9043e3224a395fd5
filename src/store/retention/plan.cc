// In three passes over the entries by age: which are wanted, which limits say otherwise, and which
// are needed as bases by those that stay. The last two repeat where a budget has to fit bases too.
// What is damaged is never counted as one of those that are kept: it stays beside them for as long
// as it is newer, since a part of it may still be salvaged.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "store/retention/condition.h"
#include "thalia/store/retention.h"

namespace thalia {
namespace {

using Fate = RetentionDecision::Fate;

std::string span_of(std::uint64_t seconds) {
  struct Unit {
    std::uint64_t seconds;
    const char* name;
  };
  for (const Unit& unit : {Unit{86'400, "d"}, Unit{3'600, "h"}, Unit{60, "min"}})
    if (seconds % unit.seconds == 0) return fmt::format("{} {}", seconds / unit.seconds, unit.name);
  return fmt::format("{} s", seconds);
}

class RetentionPlan {
 public:
  RetentionPlan(std::span<const CheckpointEntry> entries, const RetentionPolicy& policy,
                const RetentionFacts& facts)
      : entries_(entries),
        policy_(policy),
        facts_(facts),
        decisions_(entries.size()),
        by_age_(entries.size()),
        is_damaged_(entries.size()) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      decisions_[i] = {i, Fate::remove, {}};
      by_file_.emplace(entries[i].file, i);
    }
    std::iota(by_age_.begin(), by_age_.end(), std::size_t{0});
    std::ranges::stable_sort(by_age_, {}, [&](std::size_t i) {
      return std::pair(!entries_[i].left_behind, entries_[i].step);
    });
    for (std::size_t i = 0; i < entries.size(); ++i) {
      bool damaged = entries[i].condition == Condition::damaged;
      for_each_base(
          i, [&](std::size_t base) { damaged |= entries[base].condition == Condition::damaged; });
      is_damaged_[i] = damaged;
    }
    for (const std::size_t i : by_age_)
      if (!is_damaged_[i]) newest_whole_ = i;
  }

  std::vector<RetentionDecision> run() {
    if (entries_.empty()) return {};
    if (!newest_whole_) {
      // What is damaged may still be salvaged.
      for (const std::size_t i : by_age_) keep(i, "no checkpoint is whole");
      return std::move(decisions_);
    }
    keep_protected();
    keep_by_rules();
    say_why_not();
    drop_old();
    keep_bases();
    drop_beyond_budget();
    return std::move(decisions_);
  }

 private:
  bool is_kept(std::size_t i) const { return decisions_[i].fate != Fate::remove; }
  bool is_protected(std::size_t i) const {
    // The newest stays if nothing else would.
    return !entries_[i].protected_by.empty() || i == *newest_whole_;
  }

  void keep(std::size_t i, std::string reason) {
    if (is_kept(i)) return;
    decisions_[i] = {i, Fate::keep, std::move(reason)};
  }
  void drop(std::size_t i, std::string reason) {
    decisions_[i] = {i, Fate::remove, std::move(reason)};
  }

  void keep_protected() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!is_protected(i)) continue;
      std::string why;
      for (const std::string& one : entries_[i].protected_by)
        why += (why.empty() ? "" : ", ") + one;
      if (why.empty()) why = i == by_age_.back() ? "the newest" : "the newest that is whole";
      keep(i, std::move(why));
    }
  }

  void keep_by_rules() {
    const bool has_rule = policy_.keep_last || policy_.keep_every_steps ||
                          policy_.keep_every_seconds || policy_.keep_best || policy_.keep;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!has_rule) keep(i, "no rule asks for less");
      if (policy_.keep && policy_.keep(entries_[i])) keep(i, "asked for");
      if (policy_.keep_every_steps && entries_[i].step % *policy_.keep_every_steps == 0)
        keep(i, fmt::format("a multiple of {} steps", *policy_.keep_every_steps));
    }
    if (policy_.keep_best) keep_best(*policy_.keep_best);
    if (policy_.keep_every_seconds) keep_every(*policy_.keep_every_seconds);
    if (policy_.keep_last) keep_last(*policy_.keep_last);
  }

  void keep_best(std::uint32_t count) {
    std::vector<std::size_t> ranked;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].metric && std::isfinite(*entries_[i].metric) && !is_damaged_[i])
        ranked.push_back(i);
    // The older of equal ones comes first, as for the phase's best.
    std::ranges::sort(ranked, {}, [&](std::size_t i) {
      const double metric = *entries_[i].metric;
      return std::pair(facts_.direction == Direction::min ? metric : -metric, entries_[i].step);
    });
    for (std::size_t rank = 0; rank < std::min<std::size_t>(count, ranked.size()); ++rank)
      keep(ranked[rank], fmt::format("one of the best {}", count));
  }

  void keep_every(std::uint64_t seconds) {
    std::map<std::uint64_t, std::size_t> first;  // by the number of the span
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (is_damaged_[i]) continue;
      const auto [found, is_new] = first.emplace(entries_[i].saved_at / seconds, i);
      if (!is_new && entries_[i].saved_at < entries_[found->second].saved_at) found->second = i;
    }
    for (const auto& [span, i] : first) keep(i, fmt::format("the first in {}", span_of(seconds)));
  }

  // Those that are protected count, whatever their age.
  void keep_last(std::uint32_t count) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i) kept += is_protected(i) && !is_damaged_[i];
    for (auto i = by_age_.rbegin(); i != by_age_.rend() && kept < count; ++i) {
      if (is_protected(*i)) continue;
      if (is_damaged_[*i]) {
        keep(*i, fmt::format("damaged: it is not one of the newest {}", count));
        continue;
      }
      ++kept;
      keep(*i, fmt::format("one of the newest {}", count));
    }
  }

  void say_why_not() {
    for (const std::size_t i : by_age_) {
      if (is_kept(i)) continue;
      drop(i, entries_[i].left_behind ? std::string("left behind: the run went back")
              : policy_.keep_last     ? fmt::format("beyond the newest {}", *policy_.keep_last)
                                      : std::string("no rule asks for it"));
    }
  }

  void drop_old() {
    if (!policy_.max_age_seconds) return;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const std::uint64_t saved = entries_[i].saved_at;
      if (is_protected(i) || facts_.now < saved || facts_.now - saved <= *policy_.max_age_seconds)
        continue;
      drop(i, fmt::format("older than {}", span_of(*policy_.max_age_seconds)));
    }
  }

  // What `i` is based on, all the way down, as far as it is among the entries.
  template <typename Visit>
  void for_each_base(std::size_t i, const Visit& visit) const {
    while (entries_[i].is_delta()) {
      const auto base = by_file_.find(entries_[i].base);
      // A base is less deep; of a circle, which only a journal that somebody wrote can have, one is
      // not.
      if (base == by_file_.end() || entries_[base->second].depth >= entries_[i].depth) return;
      i = base->second;
      visit(i);
    }
  }

  // What is damaged cannot be written anew, and what a save under way makes a delta of must not.
  bool keeps_bases(std::size_t i) const {
    return policy_.needed_bases == NeededBases::keep || is_damaged_[i] ||
           std::ranges::find(entries_[i].protected_by, store::kUnderWay) !=
               entries_[i].protected_by.end();
  }

  // First those that are kept as they are: what they need stays as it is, too.
  void keep_bases() {
    for (const std::size_t i : by_age_) {
      if (!is_kept(i) || !keeps_bases(i)) continue;
      for_each_base(i, [&](std::size_t base) {
        if (is_kept(base)) return;
        decisions_[base] = {base, Fate::keep, fmt::format("needed by {}", entries_[i].file)};
        needed_.push_back(base);
      });
    }
    for (const std::size_t i : by_age_) {
      if (!is_kept(i) || keeps_bases(i)) continue;
      bool loses_base = false;
      for_each_base(i, [&](std::size_t base) { loses_base |= !is_kept(base); });
      if (loses_base) decisions_[i] = {i, Fate::squash, decisions_[i].reason + "; its base goes"};
    }
  }

  void undo_bases() {
    for (const std::size_t base : needed_) drop(base, dropped_reason());
    needed_.clear();
    for (RetentionDecision& decision : decisions_)
      if (decision.fate == Fate::squash) decision.fate = Fate::keep;
  }

  std::string dropped_reason() const {
    return policy_.max_bytes ? fmt::format("beyond {} bytes", *policy_.max_bytes)
                             : std::string("no rule asks for it");
  }

  std::uint64_t kept_bytes() const {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (is_kept(i)) bytes += std::min(entries_[i].bytes, ~std::uint64_t{0} - bytes);
    return bytes;
  }

  // What is damaged goes, then the oldest that nobody protects, and with each the bases that only
  // it needed.
  void drop_beyond_budget() {
    if (!policy_.max_bytes) return;
    std::vector<std::size_t> order = by_age_;
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t i) { return is_damaged_[i]; });
    // First by their own bytes, which needs no look at the bases.
    std::uint64_t bytes = kept_bytes();
    if (bytes <= *policy_.max_bytes) return;
    undo_bases();
    bytes = kept_bytes();
    for (const std::size_t i : order) {
      if (bytes <= *policy_.max_bytes) break;
      if (!is_kept(i) || is_protected(i)) continue;
      bytes -= std::min(bytes, entries_[i].bytes);
      drop(i, dropped_reason());
    }
    keep_bases();
    while (kept_bytes() > *policy_.max_bytes) {
      undo_bases();
      const auto oldest = std::ranges::find_if(
          order, [&](std::size_t i) { return is_kept(i) && !is_protected(i); });
      if (oldest != order.end()) drop(*oldest, dropped_reason());
      keep_bases();
      if (oldest == order.end()) return;
    }
  }

  const std::span<const CheckpointEntry> entries_;
  const RetentionPolicy& policy_;
  const RetentionFacts& facts_;
  std::vector<RetentionDecision> decisions_;
  std::vector<std::size_t> by_age_;  ///< the first to go first
  std::vector<bool> is_damaged_;     ///< itself, or what it is based on
  std::optional<std::size_t> newest_whole_;
  std::map<std::string_view, std::size_t> by_file_;
  std::vector<std::size_t> needed_;  ///< kept as bases alone
};

}  // namespace

std::vector<RetentionDecision> plan_retention(std::span<const CheckpointEntry> entries,
                                              const RetentionPolicy& policy,
                                              const RetentionFacts& facts) {
  return RetentionPlan(entries, policy, facts).run();
}

}  // namespace thalia
