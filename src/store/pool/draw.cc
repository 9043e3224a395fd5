// How a draw is made, for programs that make the same ones.
//
// The digest SHA-256("pool" ‖ seed ‖ index), both numbers as u64, little-endian, is four words of
// 64 bits, little-endian: w0 to w3. All that follows is in double precision of IEEE 754.
//
// Members. The versions in the order of their numbers, then the anchors that the configuration
// names, as the view has them.
//
// Kind. The kinds in their order are self, pool and baseline. The weight of pool is 0 if there
// is no member, that of baseline if its gate is not there. With total = self + pool + baseline,
// added from left to right, x = (w0 >> 11) · 2^-53 · total, and the kind is the first whose weight,
// added to those before it, is more than x; the last one with a weight if none is, which
// rounding can do. If all weights are 0, it is self.
//
// Member, of n. The first of w1, w2 and w3 that is less than 2^64 - (2^64 mod n) counts: the member
// is that word modulo n, from 0 on. Each is as likely as any other. If none of them counts, which
// takes a pool of many millions, the four words of SHA-256("pool" ‖ seed ‖ index ‖ round) follow in
// the same way, for round = 1, 2, ….
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "store/pool/seeded_words.h"
#include "thalia/store/pool.h"

namespace thalia {
namespace {

OpponentKind draw_kind(std::uint64_t word, const std::array<double, 3>& weights) {
  const double total = weights[0] + weights[1] + weights[2];
  const double x = static_cast<double>(word >> 11) * 0x1p-53 * total;
  std::size_t last = 0;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    sum += weights[i];
    last = i;
    if (sum > x) break;
  }
  return static_cast<OpponentKind>(last);
}

// nullopt if no word counts.
std::optional<std::uint64_t> draw_below(std::span<const std::uint64_t> words, std::uint64_t n) {
  const std::uint64_t left_over = (~std::uint64_t{0} % n + 1) % n;  // 2^64 mod n
  for (const std::uint64_t word : words)
    if (word <= ~std::uint64_t{0} - left_over) return word % n;
  return std::nullopt;
}

}  // namespace

PoolDraw draw_opponent(const PoolView& view, std::uint64_t seed, std::uint64_t index) {
  const PoolConfig& config = view.config;
  std::vector<const PoolMember*> members;
  for (const PoolMember& version : view.versions) members.push_back(&version);
  for (const PoolMember& anchor : view.anchors)
    if (std::ranges::find(config.anchors, anchor.name) != config.anchors.end())
      members.push_back(&anchor);
  const auto baseline = std::ranges::find(view.anchors, config.baseline, &PoolMember::name);
  const bool has_baseline = !config.baseline.empty() && baseline != view.anchors.end();
  const auto words = store::seeded_words("pool", {seed, index});
  const OpponentKind kind =
      draw_kind(words[0], {config.self_weight, members.empty() ? 0 : config.pool_weight,
                           has_baseline ? config.baseline_weight : 0});
  if (kind == OpponentKind::self) return {};
  if (kind == OpponentKind::baseline) return {.kind = kind, .member = *baseline};
  const std::uint64_t n = members.size();
  auto number = draw_below(std::span(words).subspan(1), n);
  for (std::uint64_t round = 1; !number; ++round)
    number = draw_below(store::seeded_words("pool", {seed, index, round}), n);
  return {.kind = kind, .member = *members[*number]};
}

}  // namespace thalia
