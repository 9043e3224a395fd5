// Any text as the metadata of an ensemble. A brain that comes out of it is the same one after it
// went into another ensemble, and came out of that.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "state/brain/axes.h"
#include "state/brain/ensemble.h"
#include "state/value/value_json.h"
#include "thalia/error.h"
#include "thalia/state/metadata.h"

using namespace thalia;

namespace {
namespace ensemble_target {

using state::EnsembleBrain;

// nullopt where the prefix makes names of its events which the format leaves.
std::optional<EnsembleBrain> in_and_out(const EnsembleBrain& brain) {
  try {
    state::EnsembleMetadata metadata(Value::object());
    metadata.add(brain);
    return state::brain_in_ensemble(metadata.take(), brain.prefix);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  const ReadLimits limits{.max_json_bytes = 1 << 20};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Value metadata = state::parse_json_object(text, limits);
    state::rename_sources(metadata, [](const std::string& name) { return "p" + name; });
    for (const std::string& prefix : ensemble_prefixes(metadata)) {
      const auto once = in_and_out(state::brain_in_ensemble(metadata, prefix));
      if (!once) continue;
      const auto twice = in_and_out(*once);
      FUZZ_REQUIRE(twice && twice->metadata == once->metadata);
      FUZZ_REQUIRE(twice->training_steps == once->training_steps);
    }
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace ensemble_target
}  // namespace

FUZZ_TARGET(ensemble)
