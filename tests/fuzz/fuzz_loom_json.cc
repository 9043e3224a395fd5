// Reads any text as a JSON checkpoint of loom and as an architecture, and saves the network again
// in both kinds of files: what was saved a few times is read back to the same.

#include <string_view>

#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/formats/loom.h"

using namespace thalia;

namespace {
namespace loom_json_target {

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const LoomNetwork network = parse_loom_json(text, limits);
    // Cells that were not in the text get a seq_length when they are; f32 weights of a layer that
    // counts none become none, and then are no longer said to be native.
    std::string saved = loom_json(network);
    for (int i = 0; i < 3; ++i) saved = loom_json(parse_loom_json(saved));
    FUZZ_REQUIRE(loom_json(parse_loom_json(saved)) == saved);
    static_cast<void>(entity_bytes(network));
  } catch (const FormatError&) {
  } catch (const UsageError& error) {
    FUZZ_REQUIRE(error.code() == ErrorCode::bad_argument);
  }
  try {
    const LoomNetwork built = build_loom_network(text, limits);
    for (const LoomLayer& layer : built.layers) static_cast<void>(loom_weight_count(layer));
  } catch (const FormatError&) {
  }
}

}  // namespace loom_json_target
}  // namespace

FUZZ_TARGET(loom_json)
