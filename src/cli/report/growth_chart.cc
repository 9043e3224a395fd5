// A history tells changes, not sizes. Where the region still exists, its curve is reckoned back
// from what it has now; else it begins with what its first event says. A curve never goes below
// zero, whatever a history claims, since metadata are written by anybody.
#include "cli/report/growth_chart.h"

#include <algorithm>
#include <map>
#include <optional>

namespace thalia::cli {
namespace {

// Eight colours, each as a full and as a dashed line.
constexpr std::size_t kMostSeries = 16;

struct Region {
  std::string name;
  std::vector<GrowthPoint> events;  // with the change in place of the neurons
  std::optional<double> now;
};

// Regions in the order in which they first appear.
class Regions {
 public:
  Region& operator[](const std::string& name) {
    const auto [place, is_new] = places_.emplace(name, regions_.size());
    if (is_new) regions_.push_back({.name = name});
    return regions_[place->second];
  }
  const std::vector<Region>& all() const { return regions_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<Region> regions_;
};

double neurons_before(const Region& region) {
  double changes = 0;
  for (const GrowthPoint& event : region.events) changes += event.neurons;
  if (region.now) return std::max(0.0, *region.now - changes);
  const auto& first = region.events.front().event->old_size;
  return first ? static_cast<double>(*first) : std::max(0.0, -changes);
}

GrowthSeries series_of(const Region& region, double last_x) {
  GrowthSeries series{.region = region.name, .points = {}};
  double neurons = neurons_before(region);
  series.points.push_back({0, neurons, nullptr, false});
  for (GrowthPoint point : region.events) {
    neurons = std::max(0.0, neurons + point.neurons);
    point.neurons = neurons;
    series.points.push_back(point);
  }
  series.points.push_back({last_x, region.now.value_or(neurons), nullptr, false});
  return series;
}

double greatest(const GrowthSeries& series) {
  double most = 0;
  for (const GrowthPoint& point : series.points) most = std::max(most, point.neurons);
  return most;
}

// Keeps the kMostSeries regions that were the largest, in the order they had. If several are as
// large as the last one kept, the first are taken.
void leave_out_small(GrowthChart& chart) {
  if (chart.series.size() <= kMostSeries) return;
  std::vector<double> sizes;
  for (const GrowthSeries& series : chart.series) sizes.push_back(greatest(series));
  std::nth_element(sizes.begin(), sizes.begin() + (kMostSeries - 1), sizes.end(), std::greater<>());
  const double least = sizes[kMostSeries - 1];
  std::size_t above = 0;
  for (const GrowthSeries& series : chart.series) above += greatest(series) > least;
  std::size_t equal = kMostSeries - above;
  const std::size_t before = chart.series.size();
  std::erase_if(chart.series, [&](const GrowthSeries& series) {
    const double size = greatest(series);
    if (size == least && equal > 0) {
      --equal;
      return false;
    }
    return size <= least;
  });
  chart.left_out = before - chart.series.size();
}

}  // namespace

GrowthChart growth_chart(std::span<const GrowthEvent> events, std::span<const RegionSize> regions,
                         std::uint64_t training_steps) {
  GrowthChart chart;
  chart.by_step =
      std::any_of(events.begin(), events.end(), [](const GrowthEvent& e) { return e.step; });
  Regions found;
  double x = 0;
  for (const GrowthEvent& event : events) {
    if (!event.not_an_object_json.empty()) continue;
    if (!chart.by_step) {
      x += 1;
    } else if (event.step) {
      x = static_cast<double>(*event.step);
    }
    chart.last_x = std::max(chart.last_x, x);
    found[event.region].events.push_back(
        {x, static_cast<double>(neuron_change(event)), &event, is_pruning(event)});
  }
  for (const RegionSize& region : regions) {
    const auto neurons = static_cast<double>(region.neurons);
    if (region.neurons > 0) found[region.name].now = neurons;
  }
  chart.last_x = chart.by_step ? std::max(chart.last_x, static_cast<double>(training_steps))
                               : chart.last_x + 1;
  for (const Region& region : found.all()) {
    Region sorted = region;
    std::stable_sort(sorted.events.begin(), sorted.events.end(),
                     [](const GrowthPoint& a, const GrowthPoint& b) { return a.x < b.x; });
    chart.series.push_back(series_of(sorted, chart.last_x));
  }
  leave_out_small(chart);
  return chart;
}

}  // namespace thalia::cli
