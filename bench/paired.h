// Paired comparisons: ours and a floor run by turns in one process, so that whatever else the
// machine does falls on both; what counts is the median of the ratios of neighbours.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "environment.h"
#include "settings.h"

namespace thalia::bench {

struct Side {
  std::string name;
  std::function<void()> run;
};

struct Comparison {
  Side ours;
  Side floor;               ///< what the machine can do, or another way to do the same
  std::uint64_t bytes = 0;  ///< that each side handles in a run; 0 where only time counts
  std::function<void()> prepare =
      nullptr;  ///< before each run, not timed; nullptr: runs may be repeated
};

/// Thrown where the machine cannot run a comparison; what() says why.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The comparisons of one program. They are made when their turn comes, and their data go with
/// them.
class PairedSuite {
 public:
  void add(std::string name, std::function<Comparison()> make) {
    entries_.push_back({std::move(name), std::move(make)});
  }

  /// Runs what settings.only selects, prints a line each, and writes settings.json. A ratio is the
  /// floor's time by ours: above 1, we are faster. The ratio of CPU time is shown too, because
  /// it holds even where others use the machine.
  void run(const Settings& settings, const Facts& facts);

 private:
  struct Entry {
    std::string name;
    std::function<Comparison()> make;
  };
  std::vector<Entry> entries_;
};

}  // namespace thalia::bench
