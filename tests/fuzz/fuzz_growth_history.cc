// Reads any bytes as metadata with a growth history. What is accepted survives being written and
// read again, and takes one more event.

#include <string>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/state/metadata.h"

using namespace thalia;

namespace {
namespace growth_history_target {

constexpr ReadLimits kLimits{.max_json_depth = 64};

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<GrowthEvent> events;
  try {
    events = parse_growth_history(text, kLimits);
  } catch (const FormatError&) {
    return;
  }
  const std::string history = growth_history_json(events);
  FUZZ_REQUIRE(parse_growth_history("{\"growth_history\":" + history + "}", kLimits) == events);

  const GrowthEvent more{.step = 7, .region = "r", .reason = "because", .neurons_added = 1};
  const std::string appended = append_growth_event(text, more, kLimits);
  events.push_back(more);
  FUZZ_REQUIRE(parse_growth_history(appended, kLimits) == events);
  for (const GrowthEvent& event : events) {
    is_pruning(event);
    neuron_change(event);
  }
}

}  // namespace growth_history_target
}  // namespace

FUZZ_TARGET(growth_history)
