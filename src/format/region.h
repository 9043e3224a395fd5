// The region index entry and the headers inside a region. docs/format/format.md, "Region index" and
// "Region".
#pragma once

#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::format {

/// One entry a region, in the order of the regions in the file.
struct RegionIndexEntry {
  std::uint8_t region_name[32];
  le64 data_offset;
  le64 data_length;
};

THALIA_ON_DISK(RegionIndexEntry, 48);
THALIA_FIELD(RegionIndexEntry, region_name, 0x00, 32);
THALIA_FIELD(RegionIndexEntry, data_offset, 0x20, 8);
THALIA_FIELD(RegionIndexEntry, data_length, 0x28, 8);

/// First bytes of a region. Offsets count from the region's first byte; an absent section is offset
/// 0, length 0.
struct RegionHeader {
  le32 n_neurons;
  le32 n_inputs;
  LittleEndian<NeuronType> neuron_type;
  le32 encoding_type;
  le64 config_offset;
  le64 config_length;
  le64 weights_offset;
  le64 weights_length;
  le64 homeostatic_offset;
  le64 homeostatic_length;
};

THALIA_ON_DISK(RegionHeader, 64);
THALIA_FIELD(RegionHeader, n_neurons, 0x00, 4);
THALIA_FIELD(RegionHeader, n_inputs, 0x04, 4);
THALIA_FIELD(RegionHeader, neuron_type, 0x08, 4);
THALIA_FIELD(RegionHeader, encoding_type, 0x0C, 4);
THALIA_FIELD(RegionHeader, config_offset, 0x10, 8);
THALIA_FIELD(RegionHeader, config_length, 0x18, 8);
THALIA_FIELD(RegionHeader, weights_offset, 0x20, 8);
THALIA_FIELD(RegionHeader, weights_length, 0x28, 8);
THALIA_FIELD(RegionHeader, homeostatic_offset, 0x30, 8);
THALIA_FIELD(RegionHeader, homeostatic_length, 0x38, 8);

/// Directly after the region header: what the source's 64 bytes have no room for.
struct RegionExtension {
  le32 extension_length;
  le32 zero_04;
  le64 dynamic_state_offset;
  le64 dynamic_state_length;
  le64 oscillator_offset;
  le64 neuromodulator_offset;
  le64 region_metadata_offset;
  le64 region_metadata_length;
  le64 other_offset;
  le64 other_length;
  std::uint8_t zero_48[56];
};

inline constexpr std::uint32_t kRegionExtensionLength = 128;

/// A part of a region that holds tensors, in the order that they have in the file.
enum class RegionPiece { weights, homeostatic, dynamic_state, other };

/// The piece in which the tensors of a role lie.
constexpr RegionPiece piece_of(Role role) noexcept {
  switch (role) {
    case Role::weights:
    case Role::bias:
    case Role::normalization:
    case Role::embedding:
      return RegionPiece::weights;
    case Role::homeostatic:
      return RegionPiece::homeostatic;
    case Role::region_state:
    case Role::learning_state:
    case Role::oscillator:
    case Role::neuromodulator:
      return RegionPiece::dynamic_state;
    case Role::optimizer:
    case Role::buffer:
    case Role::other:
      break;
  }
  return RegionPiece::other;
}

THALIA_ON_DISK(RegionExtension, 128);
THALIA_FIELD(RegionExtension, extension_length, 0x00, 4);
THALIA_FIELD(RegionExtension, zero_04, 0x04, 4);
THALIA_FIELD(RegionExtension, dynamic_state_offset, 0x08, 8);
THALIA_FIELD(RegionExtension, dynamic_state_length, 0x10, 8);
THALIA_FIELD(RegionExtension, oscillator_offset, 0x18, 8);
THALIA_FIELD(RegionExtension, neuromodulator_offset, 0x20, 8);
THALIA_FIELD(RegionExtension, region_metadata_offset, 0x28, 8);
THALIA_FIELD(RegionExtension, region_metadata_length, 0x30, 8);
THALIA_FIELD(RegionExtension, other_offset, 0x38, 8);
THALIA_FIELD(RegionExtension, other_length, 0x40, 8);
THALIA_FIELD(RegionExtension, zero_48, 0x48, 56);

}  // namespace thalia::format
