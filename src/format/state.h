// Headers of a region's homeostatic and dynamic state. docs/format/format.md, "Homeostatic state"
// and "Dynamic state".
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

struct HomeostaticHeader {
  le32 n_neurons;
  le32 flags;
  le64 timestamp_updated;
};

THALIA_ON_DISK(HomeostaticHeader, 16);
THALIA_FIELD(HomeostaticHeader, n_neurons, 0x00, 4);
THALIA_FIELD(HomeostaticHeader, flags, 0x04, 4);
THALIA_FIELD(HomeostaticHeader, timestamp_updated, 0x08, 8);

/// The offsets of the oscillator and neuromodulator components are in the region extension.
struct DynamicStateHeader {
  le32 has_region_state;
  le32 has_learning_state;
  le32 has_oscillators;
  le32 has_neuromodulators;
  le64 region_state_offset;
  le64 learning_state_offset;
};

THALIA_ON_DISK(DynamicStateHeader, 32);
THALIA_FIELD(DynamicStateHeader, has_region_state, 0x00, 4);
THALIA_FIELD(DynamicStateHeader, has_learning_state, 0x04, 4);
THALIA_FIELD(DynamicStateHeader, has_oscillators, 0x08, 4);
THALIA_FIELD(DynamicStateHeader, has_neuromodulators, 0x0C, 4);
THALIA_FIELD(DynamicStateHeader, region_state_offset, 0x10, 8);
THALIA_FIELD(DynamicStateHeader, learning_state_offset, 0x18, 8);

}  // namespace thalia::format
