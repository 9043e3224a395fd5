// Runs ours and the floor by turns and takes the ratio of each pair of neighbours, not of the
// averages: a machine that slows down for a while slows down both sides of a pair. paired.h says
// why.
#include "paired.h"

#include <sys/resource.h>
#include <sys/time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>

#include "base/stopwatch.h"
#include "json/writer.h"
#include "measure/spread.h"

namespace thalia::bench {
namespace {

using measure::Spread;
using measure::spread_of;

// A sample of less than 20 ms is repeated until it is as long, so that the clock and a single
// interrupt do not count, unless something has to be prepared between two runs.
constexpr double kShortestSample = 0.02;

struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;  ///< of this process, all threads
};

struct Pair {
  Sample ours, floor;
};

struct Outcome {
  std::string name, ours, floor;
  std::uint64_t bytes = 0;
  std::vector<Pair> pairs;
  std::string skipped;
};

double cpu_seconds() {
  rusage used;
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Sample sample_of(const Side& side, std::uint64_t runs) {
  const double cpu_start = cpu_seconds();
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < runs; ++i) side.run();
  const double taken = watch.seconds();
  const auto count = static_cast<double>(runs);
  return {taken / count, (cpu_seconds() - cpu_start) / count};
}

template <typename Of>
std::vector<double> each(const Outcome& outcome, Of of) {
  std::vector<double> values;
  for (const Pair& pair : outcome.pairs) values.push_back(of(pair));
  return values;
}

double ratio_of(const Pair& pair) {
  return pair.floor.seconds / pair.ours.seconds;
}

double cpu_ratio_of(const Pair& pair) {
  return pair.ours.cpu_seconds > 0 ? pair.floor.cpu_seconds / pair.ours.cpu_seconds : 0;
}

Outcome measure(const Settings& settings, std::string name, const Comparison& comparison) {
  Outcome outcome{.name = std::move(name),
                  .ours = comparison.ours.name,
                  .floor = comparison.floor.name,
                  .bytes = comparison.bytes};
  const auto sample = [&](const Side& side, std::uint64_t runs) {
    if (comparison.prepare) comparison.prepare();
    return sample_of(side, runs);
  };
  const auto runs_of = [&](const Side& side) -> std::uint64_t {
    const double once = sample(side, 1).seconds;  // warms up, too
    if (comparison.prepare || settings.smoke || once >= kShortestSample) return 1;
    // The first run was the slow one: it is the second that tells how many runs fill a sample.
    const double again = std::max(sample(side, 1).seconds, 1e-8);
    return static_cast<std::uint64_t>(std::ceil(kShortestSample / again));
  };
  const std::uint64_t ours_runs = runs_of(comparison.ours);
  const std::uint64_t floor_runs = runs_of(comparison.floor);
  for (unsigned i = 0; i < settings.pairs; ++i) {
    Pair pair{};
    // Each side goes first half of the time, as the second one finds other caches.
    if (i % 2 == 0) pair.ours = sample(comparison.ours, ours_runs);
    pair.floor = sample(comparison.floor, floor_runs);
    if (i % 2 == 1) pair.ours = sample(comparison.ours, ours_runs);
    outcome.pairs.push_back(pair);
  }
  return outcome;
}

std::string rate(double seconds, std::uint64_t bytes) {
  char text[32];
  if (bytes != 0) {
    std::snprintf(text, sizeof text, "%.2f GiB/s",
                  static_cast<double>(bytes) / seconds / (1 << 30));
  } else if (seconds >= 0.1) {
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  } else if (seconds >= 1e-4) {
    std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  } else if (seconds >= 1e-6) {
    std::snprintf(text, sizeof text, "%.2f us", seconds * 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.1f ns", seconds * 1e9);
  }
  return text;
}

void print(const Outcome& outcome) {
  std::printf("%s\n", outcome.name.c_str());
  if (!outcome.skipped.empty()) {
    std::printf("    SKIPPED: %s\n", outcome.skipped.c_str());
  } else {
    const Spread ratios = spread_of(each(outcome, ratio_of));
    const double ours =
        spread_of(each(outcome, [](const Pair& pair) { return pair.ours.seconds; })).median;
    const double floor =
        spread_of(each(outcome, [](const Pair& pair) { return pair.floor.seconds; })).median;
    std::printf("    %-38s %12s\n", outcome.ours.c_str(), rate(ours, outcome.bytes).c_str());
    std::printf("    %-38s %12s   ratio %.3g (%.3g to %.3g), of CPU time %.3g\n",
                outcome.floor.c_str(), rate(floor, outcome.bytes).c_str(), ratios.median,
                ratios.least, ratios.most, spread_of(each(outcome, cpu_ratio_of)).median);
  }
  std::fflush(stdout);
}

void write_json(const std::string& path, const Facts& facts, const std::vector<Outcome>& outcomes) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("environment").begin_object();
  for (const auto& [key, value] : facts) json.member(key, value);
  json.end_object().key("comparisons").begin_array();
  for (const Outcome& outcome : outcomes) {
    json.begin_object().member("name", outcome.name);
    if (!outcome.skipped.empty()) {
      json.member("skipped", outcome.skipped).end_object();
      continue;
    }
    const Spread ratios = spread_of(each(outcome, ratio_of));
    json.member("ours", outcome.ours)
        .member("floor", outcome.floor)
        .member("bytes", outcome.bytes)
        .member("median", ratios.median)
        .member("min", ratios.least)
        .member("max", ratios.most)
        .member("cpu_median", spread_of(each(outcome, cpu_ratio_of)).median)
        .key("pairs")
        .begin_array();
    for (const Pair& pair : outcome.pairs)
      json.begin_array().value(pair.ours.seconds).value(pair.floor.seconds).end_array();
    json.end_array().key("cpu_pairs").begin_array();
    for (const Pair& pair : outcome.pairs)
      json.begin_array().value(pair.ours.cpu_seconds).value(pair.floor.cpu_seconds).end_array();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  std::ofstream file(path);
  file << text << '\n';
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

void PairedSuite::run(const Settings& settings, const Facts& facts) {
  std::vector<Outcome> outcomes;
  std::printf("\nPaired comparisons, %u pairs each: medians, and the floor's time by ours\n",
              settings.pairs);
  for (const Entry& entry : entries_) {
    if (entry.name.find(settings.only) == std::string::npos) continue;
    Outcome outcome{.name = entry.name};
    try {
      outcome = measure(settings, entry.name, entry.make());
    } catch (const Skipped& skipped) {
      outcome.skipped = skipped.what();
    }
    print(outcome);
    outcomes.push_back(std::move(outcome));
  }
  if (!settings.json.empty()) write_json(settings.json, facts, outcomes);
}

}  // namespace thalia::bench
