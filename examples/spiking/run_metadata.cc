#include "spiking/run_metadata.h"

#include <charconv>
#include <stdexcept>

namespace spiking {
namespace {

std::uint64_t number_after(std::string_view json, const std::string& key) {
  const std::string quoted = "\"" + key + "\":";
  const std::size_t at = json.find(quoted);
  if (at != std::string_view::npos) {
    const char* begin = json.data() + at + quoted.size();
    std::uint64_t value = 0;
    if (std::from_chars(begin, json.data() + json.size(), value).ec == std::errc()) return value;
  }
  throw std::runtime_error("metadata: no number \"" + key +
                           "\"; this file was not saved by the demo");
}

}  // namespace

std::string to_json(const RunMetadata& metadata) {
  return R"({"description":"spiking network of thalia-demo","generator":"philox4x32-10","seed":)" +
         std::to_string(metadata.seed) + R"(,"step":)" + std::to_string(metadata.step) +
         R"(,"neurons":)" + std::to_string(metadata.neurons) + R"(,"synapses":)" +
         std::to_string(metadata.synapses) + "}";
}

RunMetadata run_metadata_from_json(std::string_view json) {
  return {number_after(json, "neurons"), number_after(json, "synapses"), number_after(json, "seed"),
          number_after(json, "step")};
}

}  // namespace spiking
