#include "cli/print/growth_text.h"

#include "cli/print/print.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

// Events shown; the last ones, as those matter for what the network is now.
constexpr std::size_t kShown = 20;

void add_change(std::string& text, char sign, std::uint64_t number, std::string_view singular,
                std::string_view plural) {
  if (!text.empty()) text += ", ";
  text += sign + counted(number, singular, plural);
}

}  // namespace

std::string growth_change(const GrowthEvent& event) {
  std::string text;
  const auto add = [&](std::int64_t number, std::string_view singular, std::string_view plural) {
    // In unsigned numbers, so that the least of int64 has a magnitude as well.
    const auto magnitude = static_cast<std::uint64_t>(number);
    add_change(text, number < 0 ? '-' : '+', number < 0 ? ~magnitude + 1 : magnitude, singular,
               plural);
  };
  if (event.neurons_added || event.neurons_removed || (event.old_size && event.new_size))
    add(neuron_change(event), "neuron", "neurons");
  if (event.synapses_added) add(*event.synapses_added, "synapse", "synapses");
  if (event.synapses_pruned) add_change(text, '-', *event.synapses_pruned, "synapse", "synapses");
  return text.empty() ? escape(event.type) : text;
}

std::string growth_time(const GrowthEvent& event) {
  if (event.step) return grouped(*event.step);
  return event.timestamp.empty() ? "-" : escape(event.timestamp);
}

void print_growth_table(Output& out, std::span<const GrowthEvent> events, std::string_view margin) {
  Table table({{"step", Table::Align::right}, {"region"}, {"change"}, {"reason"}});
  const std::size_t left_out = events.size() > kShown ? events.size() - kShown : 0;
  for (const GrowthEvent& event : events.subspan(left_out)) {
    if (event.not_an_object_json.empty()) {
      table.add_row(
          {growth_time(event), escape(event.region), growth_change(event), escape(event.reason)});
    } else {
      table.add_row({"-", "", escape(event.not_an_object_json), ""});
    }
  }
  if (left_out > 0)
    out.print("{}{} left out here\n", margin, counted(left_out, "earlier event", "earlier events"));
  table.print(out, margin);
}

}  // namespace thalia::cli
