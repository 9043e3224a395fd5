#include "inspect/file_facts.h"

#include "thalia/error.h"
#include "thalia/text.h"

namespace thalia::inspect {

std::string uuid_text(const Uuid& uuid) {
  std::string text = hex(uuid);
  for (const std::size_t position : {20, 16, 12, 8}) text.insert(position, 1, '-');
  return text;
}

std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata) {
  if (metadata.empty()) return std::vector<GrowthEvent>();
  try {
    return parse_growth_history(metadata);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace thalia::inspect
