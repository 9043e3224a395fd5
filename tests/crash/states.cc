#include "crash/states.h"

#include <algorithm>
#include <random>
#include <vector>

namespace thalia::crash {
namespace {

// If there are many pages: the first, the last, and some between.
constexpr std::size_t kEdgePages = 8;
// Random states that are all known in a row: there are hardly any others.
constexpr std::size_t kKnownInARow = 400;

std::vector<std::size_t> chosen_pages(std::size_t count) {
  std::vector<std::size_t> pages;
  for (std::size_t i = 0; i < count; ++i)
    if (i < kEdgePages || i + kEdgePages >= count || i % 7 == 0) pages.push_back(i);
  return pages;
}

// Calls take(choice) for what is worth trying at a moment.
class Systematic {
 public:
  Systematic(const Moment& moment, const std::function<void(const Choice&)>& take)
      : moment_(moment), take_(take) {}

  void run() {
    for (const std::vector<bool>& names : name_sets()) {
      for (const bool kept : {true, false}) {
        Choice choice = kept ? moment_.everything() : moment_.nothing();
        choice.names = names;
        take_(choice);
        if (moment_.mode() != Mode::ordered && !moment_.grown().empty()) with_fills(choice);
      }
    }
    const std::vector<bool> all(moment_.names(), true);
    const std::vector<bool> none(moment_.names(), false);
    pages_alone(all);
    if (moment_.names() > 0) pages_alone(none);
  }

 private:
  std::vector<std::vector<bool>> name_sets() const {
    const std::size_t count = moment_.names();
    std::vector<std::vector<bool>> sets;
    const bool journal = moment_.mode() == Mode::ordered || moment_.mode() == Mode::writeback;
    for (std::size_t first = 0; first <= count; ++first) {
      if (!journal && first != 0 && first != count) continue;
      sets.emplace_back(count, false);
      std::fill_n(sets.back().begin(), first, true);
    }
    if (journal) return sets;
    for (std::size_t alone = 0; alone < count; ++alone) {
      sets.emplace_back(count, false)[alone] = true;
      sets.emplace_back(count, true)[alone] = false;
    }
    return sets;
  }

  // Files as long as they were to be, with whatever was there.
  void with_fills(Choice choice) {
    choice.sizes = moment_.everything().sizes;
    for (const Fill fill : {Fill::zeros, Fill::noise, Fill::stale}) {
      choice.fill = fill;
      take_(choice);
    }
  }

  void pages_alone(const std::vector<bool>& names) {
    const Choice everything = moment_.everything();
    for (const std::size_t page : chosen_pages(moment_.pages().size())) {
      for (const bool kept : {true, false}) {
        Choice choice = kept ? moment_.nothing() : everything;
        choice.names = names;
        choice.sizes = everything.sizes;
        const auto writes = static_cast<std::uint16_t>(moment_.pages()[page].writes.size());
        for (std::uint16_t has = 0; has <= writes; ++has) {
          if (has == (kept ? 0 : writes)) continue;  // as all the others
          choice.sectors[page].fill(has);
          take_(choice);
        }
        tear(choice, page, writes);
      }
    }
  }

  void tear(Choice choice, std::size_t page, std::uint16_t writes) {
    auto& sectors = choice.sectors[page];
    for (const std::size_t cut : {std::size_t{1}, kSectors / 2, kSectors - 1}) {
      for (const bool at_end : {false, true}) {
        for (std::size_t i = 0; i < kSectors; ++i)
          sectors[i] = (i < cut) != at_end ? writes : static_cast<std::uint16_t>(writes - 1);
        take_(choice);
      }
    }
    if (moment_.mode() != Mode::torn) return;
    sectors.fill(writes);
    const bool is_first = moment_.pages()[page].number == 0;
    for (std::size_t bytes = 16; bytes < kSector; bytes += is_first ? 16 : 144)
      for (const bool at_end : {false, true}) {
        // A header is at the beginning of its sector.
        choice.tear = {page, is_first ? 0 : (bytes / 16) % kSectors, bytes, at_end};
        take_(choice);
      }
  }

  const Moment& moment_;
  const std::function<void(const Choice&)>& take_;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}

  std::size_t below(std::size_t bound) { return generator_() % bound; }

  Choice choice(const Moment& moment) {
    Choice choice = moment.everything();
    loss_ = below(9) + 1;
    if (moment.mode() == Mode::ordered || moment.mode() == Mode::writeback) {
      const std::size_t first = below(moment.names() + 1);
      for (std::size_t i = 0; i < moment.names(); ++i) choice.names[i] = i < first;
    } else {
      for (std::size_t i = 0; i < moment.names(); ++i) choice.names[i] = !is_lost();
    }
    const bool by_sector = below(3) == 0;
    for (auto& sectors : choice.sectors) {
      const std::size_t writes = sectors[0];
      std::uint16_t has = kept_of(writes);
      for (std::uint16_t& sector : sectors) sector = has = by_sector ? kept_of(writes) : has;
    }
    for (std::uint16_t& size : choice.sizes) size = kept_of(size);
    choice.fill = static_cast<Fill>(below(3));
    if (moment.mode() == Mode::torn && !choice.sectors.empty() && below(2) == 0)
      choice.tear = {below(choice.sectors.size()), below(kSectors), below(kSector), below(2) == 0};
    return choice;
  }

 private:
  bool is_lost() { return below(10) < loss_; }
  std::uint16_t kept_of(std::size_t writes) {
    if (!is_lost()) return static_cast<std::uint16_t>(writes);
    return static_cast<std::uint16_t>(below(writes + 1));
  }

  std::mt19937_64 generator_;
  std::size_t loss_ = 5;  ///< of ten
};

}  // namespace

std::size_t visit_states(const CallLog& log, Mode mode, std::size_t wanted, std::uint64_t seed,
                         const Visit& visit) {
  const Disk disk(log, mode);
  const auto systematic =
      [&](const std::function<void(const Moment&, const Choice&, std::size_t)>& take) {
        for (std::size_t place = 0; place < disk.places(); ++place) {
          const Moment moment = disk.at(place);
          Systematic(moment, [&](const Choice& choice) { take(moment, choice, place); }).run();
        }
      };
  // They get two thirds of what is wanted; if there are more of them, evenly spread ones do.
  std::size_t all = 0;
  systematic([&](const Moment&, const Choice&, std::size_t) { ++all; });
  const std::size_t share = std::max<std::size_t>(1, wanted * 2 / 3);
  Random random(seed);
  std::size_t found = 0;
  systematic([&](const Moment& moment, const Choice& choice, std::size_t place) {
    if (all > share && random.below(all) >= share) return;
    found += visit(moment.state(choice), place) ? 1 : 0;
  });
  for (std::size_t known = 0; found < wanted && known < kKnownInARow; ++known) {
    const std::size_t place = random.below(disk.places());
    const Moment moment = disk.at(place);
    if (!visit(moment.state(random.choice(moment)), place)) continue;
    ++found;
    known = 0;
  }
  return found;
}

}  // namespace thalia::crash
