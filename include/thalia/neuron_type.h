// What kind of neurons a region has. docs/format/format.md, "Region".
#pragma once

#include <cstdint>

namespace thalia {

/// Persistent: values are part of the format. `none` marks a region that is no spiking population
/// (a layer of a converted model).
enum class NeuronType : std::uint32_t { lif = 0, conductance_lif = 1, none = 2 };

}  // namespace thalia
