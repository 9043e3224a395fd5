// Draws, computed here anew from SHA-256 as src/store/pool/draw.cc says, and how often each member
// comes.
#include <array>
#include <cmath>
#include <map>

#include "integrity/sha256.h"
#include "store/pool/runs.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_draw)

namespace {

PoolView view_of(unsigned versions, bool has_baseline = true) {
  PoolView view{.config = *hydra_config().pool};
  for (unsigned i = 1; i <= versions; ++i)
    view.versions.push_back({.version = i * 3, .name = "v" + std::to_string(i)});
  view.anchors.push_back({.name = "bc_best", .is_anchor = true});
  if (has_baseline) view.anchors.push_back({.name = "distill_best", .is_anchor = true});
  return view;
}

std::array<std::uint64_t, 4> words_of(std::uint64_t seed, std::uint64_t index) {
  std::string message = "pool";
  for (const std::uint64_t number : {seed, index})
    for (int i = 0; i < 8; ++i) message += static_cast<char>(number >> (8 * i));
  const Digest256 digest = integrity::sha256(bytes_of(message));
  std::array<std::uint64_t, 4> words{};
  for (int w = 0; w < 4; ++w)
    for (int i = 7; i >= 0; --i) words[w] = words[w] << 8 | digest.bytes[w * 8 + i];
  return words;
}

// "self", "baseline" or the version's name.
std::string name_of(const PoolDraw& draw) {
  if (draw.kind == OpponentKind::self) return "self";
  return draw.kind == OpponentKind::baseline ? "baseline" : draw.member->name;
}

std::map<std::string, double> shares(const PoolView& view, unsigned draws, std::uint64_t seed = 9) {
  std::map<std::string, double> found;
  for (unsigned i = 0; i < draws; ++i) found[name_of(draw_opponent(view, seed, i))] += 1.0 / draws;
  return found;
}

bool is_near(double value, double expected) {
  return std::abs(value - expected) < 0.01;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_draw_is_what_the_words_of_sha256_say) {
  const PoolView view = view_of(7);
  for (std::uint64_t index = 0; index < 2000; ++index) {
    const std::uint64_t seed = index * 0x9e3779b97f4a7c15;
    const auto words = words_of(seed, index);
    const double x = std::ldexp(static_cast<double>(words[0] >> 11), -53);
    const PoolDraw draw = draw_opponent(view, seed, index);
    if (x < 0.5) {
      BOOST_TEST((draw.kind == OpponentKind::self && !draw.member));
    } else if (x < 0.8) {
      // With nine members, hardly any word is refused.
      BOOST_TEST((draw.kind == OpponentKind::pool));
      const std::uint64_t member = words[1] % 9;
      BOOST_TEST((*draw.member == (member < 7 ? view.versions[member] : view.anchors[member - 7])));
    } else {
      BOOST_TEST((draw.kind == OpponentKind::baseline));
      BOOST_TEST(draw.member->name == "distill_best");
    }
  }
}

BOOST_AUTO_TEST_CASE(known_draws_are_the_same_on_every_machine) {
  // By python3: hashlib.sha256(b"pool" + struct.pack("<QQ", seed, index)).
  const PoolView view = view_of(5);
  const std::string expected[] = {"self",         "self", "baseline", "self", "self", "v3",
                                  "distill_best", "v5",   "self",     "self", "v2",   "self"};
  for (std::uint64_t index = 0; index < 12; ++index)
    BOOST_TEST(name_of(draw_opponent(view, 0xa1b2c3d4, index)) == expected[index]);
}

BOOST_AUTO_TEST_CASE(kinds_come_by_their_weights_and_members_alike) {
  auto found = shares(view_of(4), 40'000);
  BOOST_TEST(is_near(found["self"], 0.5));
  BOOST_TEST(is_near(found["baseline"], 0.2));
  for (const char* const member : {"v1", "v2", "v3", "v4", "bc_best", "distill_best"})
    BOOST_TEST(is_near(found[member], 0.05));
}

BOOST_AUTO_TEST_CASE(a_kind_without_members_gives_its_weight_to_the_others) {
  PoolView view = view_of(0);
  view.config.anchors.clear();  // the baseline is a gate all the same
  auto found = shares(view, 40'000);
  BOOST_TEST(found.size() == 2u);
  BOOST_TEST(is_near(found["self"], 5.0 / 7));
  found = shares(view_of(2, false), 40'000);
  BOOST_TEST(found.size() == 4u);
  BOOST_TEST(is_near(found["self"], 5.0 / 8));
  BOOST_TEST(is_near(found["v1"], 1.0 / 8));
  view = view_of(0, false);
  view.anchors.clear();
  BOOST_TEST(shares(view, 100)["self"] > 0.999);
}

BOOST_AUTO_TEST_CASE(kinds_of_weight_zero_do_not_come) {
  PoolView view = view_of(3);
  view.config.self_weight = 0;
  view.config.baseline_weight = 0;
  for (std::uint64_t i = 0; i < 1000; ++i)
    BOOST_TEST((draw_opponent(view, 1, i).kind == OpponentKind::pool));
  view.versions.clear();
  view.config.anchors.clear();
  // None is left that has a weight: the model plays itself.
  BOOST_TEST((draw_opponent(view, 1, 0).kind == OpponentKind::self));
  view.config.baseline_weight = 1e-300;
  for (std::uint64_t i = 0; i < 100; ++i)
    BOOST_TEST((draw_opponent(view, 1, i).kind == OpponentKind::baseline));
}

BOOST_AUTO_TEST_CASE(seed_and_index_both_matter) {
  const PoolView view = view_of(20);
  const auto sequence = [&](std::uint64_t seed) {
    std::string all;
    for (std::uint64_t i = 0; i < 50; ++i) all += name_of(draw_opponent(view, seed, i)) + " ";
    return all;
  };
  BOOST_TEST(sequence(1) == sequence(1));
  BOOST_TEST(sequence(1) != sequence(2));
}

BOOST_AUTO_TEST_CASE(ratings_do_not_change_what_is_drawn) {
  const PoolView view = view_of(20);
  PoolView rated = view;
  for (PoolMember& member : rated.versions) member.rating.mu += 5;
  for (std::uint64_t i = 0; i < 200; ++i)
    BOOST_TEST(name_of(draw_opponent(view, 3, i)) == name_of(draw_opponent(rated, 3, i)));
}

BOOST_AUTO_TEST_SUITE_END()
