#include "state/growth/record.h"

#include <string>

#include "base/fail.h"

namespace thalia::state {

void append_event(Value& metadata, const GrowthEvent& event) {
  Value& history = metadata["growth_history"];
  if (history.is_null()) history = Value::array();
  if (!history.is_array()) {
    fail_argument(ErrorCode::wrong_state, "metadata.growth_history",
                  std::string(kind_name(history.kind())), "an array");
  }
  history.push_back(thalia::parse_json(growth_event_json(event)));
}

GrowthEvent growth_event(std::uint64_t step, std::string_view region, std::string_view source,
                         const GrowthResult& result, std::string_view reason) {
  GrowthEvent event;
  event.step = step;
  event.region = region;
  event.reason = reason;
  event.neurons_added = result.neurons_added;
  event.synapses_added = result.synapses_added;
  if (source.empty()) {
    event.old_size = result.n_neurons - result.neurons_added;
    event.new_size = result.n_neurons;
  } else {
    event.other.emplace_back("source", to_json(Value(source)));
    event.other.emplace_back("inputs_added", std::to_string(result.inputs_added));
  }
  return event;
}

}  // namespace thalia::state
