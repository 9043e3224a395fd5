// A delta finds its base by an identity that writing the base anew changes. So a file may only be
// written anew while nothing is based on it. Along a chain, the newest first, that holds by itself:
// the one delta that needed a file is based on a newer one by then. All else that needs it, such as
// deltas of a run that went back, moves out of the way and comes back: onto the file that was made
// last, as that does not change any more; or at the begin, when there is none yet, onto the base of
// the newest.
#include "state/rebase/plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "base/fail.h"

namespace thalia::state {
namespace {

constexpr unsigned kDeepest = 255;

using Base = std::optional<std::size_t>;

class Planner {
 public:
  Planner(std::span<const Base> bases, std::span<const std::size_t> order, unsigned max_depth)
      : order_(order),
        now_(bases.begin(), bases.end()),
        wanted_(bases.begin(), bases.end()),
        depth_(bases.size()),
        dependents_(bases.size()),
        is_ordered_(bases.size()),
        moves_(bases.size()),
        is_away_(bases.size()),
        is_done_(bases.size()) {
    for (const Base& base : bases)
      if (base) ++dependents_[*base];
    for (const std::size_t file : order) is_ordered_[file] = true;
    want(max_depth);
  }

  std::vector<RebaseStep> run() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::size_t file = order_[i];
      if (moves_[file]) {
        // What moves first is a delta: a full file stays where it is.
        free(file, i == 0 ? *now_[file] : order_[i - 1]);
        write(file, wanted_[file]);
      }
      is_done_[file] = true;
      settle();
    }
    return std::move(steps_);
  }

 private:
  unsigned depth_now(std::size_t file) const {
    unsigned depth = 0;
    for (; now_[file]; file = *now_[file]) ++depth;
    return depth;
  }

  // What each file is based on at the end, and which files are written at all.
  void want(unsigned max_depth) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::size_t file = order_[i];
      const bool may_be_delta = i > 0 && depth_[order_[i - 1]] < max_depth;
      wanted_[file] = may_be_delta ? Base(order_[i - 1]) : std::nullopt;
      depth_[file] = may_be_delta ? depth_[order_[i - 1]] + 1 : 0;
      moves_[file] = wanted_[file] != now_[file] || (may_be_delta && moves_[order_[i - 1]]);
    }
    others_.resize(now_.size());
    std::iota(others_.begin(), others_.end(), std::size_t{0});
    std::erase_if(others_, [&](std::size_t file) { return bool{is_ordered_[file]}; });
    std::ranges::stable_sort(others_, {}, [&](std::size_t file) { return depth_now(file); });
    for (const std::size_t file : others_) {
      if (!now_[file]) continue;
      const std::size_t base = *now_[file];
      depth_[file] = depth_[base] + 1;
      moves_[file] = moves_[base];
      if (!moves_[file] || depth_[file] <= max_depth) continue;
      wanted_[file] = std::nullopt;
      depth_[file] = 0;
    }
    std::ranges::stable_sort(others_, {}, [&](std::size_t file) { return depth_[file]; });
  }

  bool needs(std::size_t file, std::size_t base) const {
    for (Base at = now_[file]; at; at = now_[*at])
      if (*at == base) return true;
    return false;
  }

  // Nothing needs the file afterwards.
  void free(std::size_t file, std::size_t refuge) {
    if (dependents_[file] == 0) return;
    std::vector<std::size_t> found;
    for (std::size_t other = 0; other < now_.size(); ++other)
      if (needs(other, file)) found.push_back(other);
    std::ranges::stable_sort(found, std::greater(),
                             [&](std::size_t other) { return depth_now(other); });
    for (const std::size_t other : found) {
      write(other, refuge);
      is_away_[other] = true;
    }
  }

  // What had to move, and whose base is what it will be.
  void settle() {
    for (const std::size_t file : others_) {
      if (!is_away_[file]) continue;
      if (wanted_[file] && moves_[*wanted_[file]] && !is_done_[*wanted_[file]]) continue;
      write(file, wanted_[file]);
      is_away_[file] = false;
      is_done_[file] = true;
    }
  }

  void write(std::size_t file, const Base& base) {
    if (now_[file]) --dependents_[*now_[file]];
    if (base) ++dependents_[*base];
    now_[file] = base;
    steps_.push_back({file, base});
  }

  const std::span<const std::size_t> order_;
  std::vector<Base> now_;
  std::vector<Base> wanted_;
  std::vector<unsigned> depth_;  ///< at the end
  std::vector<std::size_t> dependents_;
  std::vector<std::size_t> others_;  ///< that are not in the order; the least deep first
  std::vector<bool> is_ordered_;
  std::vector<bool> moves_;
  std::vector<bool> is_away_;
  std::vector<bool> is_done_;
  std::vector<RebaseStep> steps_;
};

}  // namespace

std::vector<RebaseStep> plan_rebase(std::span<const std::optional<std::size_t>> bases,
                                    std::span<const std::size_t> order, unsigned max_depth) {
  return Planner(bases, order, max_depth).run();
}

std::vector<std::size_t> first_bases(std::span<const RebaseStep> steps) {
  std::vector<std::size_t> found;
  std::vector<std::size_t> written;
  for (const RebaseStep& step : steps) {
    if (step.base && std::ranges::find(written, *step.base) == written.end() &&
        std::ranges::find(found, *step.base) == found.end())
      found.push_back(*step.base);
    written.push_back(step.file);
  }
  return found;
}

void check_rebase_depth(unsigned max_depth) {
  if (max_depth >= 1 && max_depth <= kDeepest) return;
  fail_argument(ErrorCode::bad_argument, "max_depth", std::to_string(max_depth),
                fmt::format("1 to {}", kDeepest));
}

}  // namespace thalia::state
