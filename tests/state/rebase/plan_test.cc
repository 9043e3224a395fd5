// Plans of a rebase, carried out on identities alone: at no moment does a file lack its base.
#include "state/rebase/plan.h"

#include <random>

#include "boost_test.h"

using namespace thalia::state;

BOOST_AUTO_TEST_SUITE(rebase_plan)

namespace {

using Base = std::optional<std::size_t>;

// Files that know their base and which writing of it they were taken against.
class Files {
 public:
  explicit Files(const std::vector<Base>& bases) : bases_(bases), writings_(bases.size()) {
    against_.resize(bases.size());
  }

  bool can_restore(std::size_t file) const {
    for (std::size_t links = 0; bases_[file]; ++links) {
      if (links == bases_.size() || against_[file] != writings_[*bases_[file]]) return false;
      file = *bases_[file];
    }
    return true;
  }

  bool are_whole() const {
    for (std::size_t i = 0; i < bases_.size(); ++i)
      if (!can_restore(i)) return false;
    return true;
  }

  void write(const RebaseStep& step) {
    bases_[step.file] = step.base;
    ++writings_[step.file];
    if (step.base) against_[step.file] = writings_[*step.base];
  }

  unsigned depth(std::size_t file) const { return bases_[file] ? depth(*bases_[file]) + 1 : 0; }
  const Base& base(std::size_t file) const { return bases_[file]; }

 private:
  std::vector<Base> bases_;
  std::vector<unsigned> writings_, against_;
};

std::vector<RebaseStep> steps_of(const std::vector<Base>& bases,
                                 const std::vector<std::size_t>& order, unsigned depth = 64) {
  return plan_rebase(bases, order, depth);
}

void check_plan(const std::vector<Base>& bases, const std::vector<std::size_t>& order,
                unsigned max_depth) {
  Files files(bases);
  const Files before = files;
  std::vector<unsigned> written(bases.size());
  for (const RebaseStep& step : steps_of(bases, order, max_depth)) {
    files.write(step);
    ++written[step.file];
    BOOST_TEST_REQUIRE(files.are_whole());
  }
  std::vector<bool> is_ordered(bases.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    is_ordered[order[i]] = true;
    const bool starts = i == 0 || files.depth(order[i - 1]) == max_depth;
    BOOST_TEST((files.base(order[i]) == (starts ? std::nullopt : Base(order[i - 1]))));
  }
  for (std::size_t i = 0; i < bases.size(); ++i) {
    if (written[i] != 0) {
      BOOST_TEST(files.depth(i) <= max_depth);
    } else {
      BOOST_TEST(files.depth(i) == before.depth(i));
    }
    if (!is_ordered[i] && files.base(i)) BOOST_TEST((files.base(i) == bases[i]));
  }
  // What is as it should be is left alone.
  std::vector<Base> after;
  for (std::size_t i = 0; i < bases.size(); ++i) after.push_back(files.base(i));
  BOOST_TEST(steps_of(after, order, max_depth).empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_chain_is_written_once_from_its_top) {
  const std::vector<RebaseStep> expected{{3, {}}, {2, 3}, {1, 2}, {0, 1}};
  BOOST_TEST((steps_of({{}, 0, 1, 2}, {3, 2, 1, 0}) == expected));
}

BOOST_AUTO_TEST_CASE(a_full_file_is_left_alone) {
  BOOST_TEST(steps_of({{}}, {0}).empty());
  BOOST_TEST(steps_of({{}, 0}, {0, 1}).empty());
}

// 0 <- 1 <- 2, and 3 is another delta of 1.
BOOST_AUTO_TEST_CASE(a_branch_moves_away_and_comes_back) {
  const std::vector<RebaseStep> expected{{2, {}}, {3, 2}, {1, 2}, {3, 1}, {0, 1}};
  BOOST_TEST((steps_of({{}, 0, 1, 1}, {2, 1, 0}) == expected));
}

BOOST_AUTO_TEST_CASE(what_is_based_on_the_top_moves_onto_its_base) {
  const std::vector<RebaseStep> expected{{2, 0}, {1, {}}, {2, 1}, {0, 1}};
  BOOST_TEST((steps_of({{}, 0, 1}, {1, 0}) == expected));
}

BOOST_AUTO_TEST_CASE(a_chain_that_would_be_too_deep_begins_anew) {
  const std::vector<RebaseStep> expected{{3, {}}, {2, 3}, {1, {}}, {0, 1}};
  BOOST_TEST((steps_of({{}, 0, 1, 2}, {3, 2, 1, 0}, 1) == expected));
}

BOOST_AUTO_TEST_CASE(what_becomes_a_base_unwritten_is_known) {
  BOOST_TEST(first_bases(steps_of({{}, 0, 1, 2}, {3, 2, 1, 0})).empty());
  BOOST_TEST((first_bases(steps_of({{}, {}, 1}, {0, 2, 1})) == std::vector<std::size_t>{0}));
}

BOOST_AUTO_TEST_CASE(at_no_moment_does_a_file_lack_its_base) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t count = 1 + random() % 12;
    std::vector<Base> bases(count);
    for (std::size_t i = 1; i < count; ++i)
      if (random() % 5 != 0) bases[i] = random() % 2 == 0 ? i - 1 : random() % i;
    // Where a number lies says nothing of the bases.
    std::vector<std::size_t> names(count);
    for (std::size_t i = 0; i < count; ++i) names[i] = i;
    std::ranges::shuffle(names, random);
    std::vector<Base> named(count);
    for (std::size_t i = 0; i < count; ++i)
      if (bases[i]) named[names[i]] = names[*bases[i]];
    std::vector<std::size_t> order;
    for (std::size_t i = count; i-- > 0;)
      if (random() % 3 != 0) order.push_back(names[i]);
    if (round % 4 == 0) std::ranges::shuffle(order, random);
    check_plan(named, order, round % 2 == 0 ? 64 : 1 + random() % 4);
  }
}

BOOST_AUTO_TEST_SUITE_END()
