// The names of persistent enumerators, as docs/format/format.md, JSON and the command line spell
// them.
#include <array>

#include "format/little_endian.h"
#include "thalia/region.h"
#include "thalia/tensor.h"

namespace thalia {
namespace {

constexpr std::array<std::string_view, kRoleCount> kRoles{
    "weights",   "homeostatic", "region_state", "learning_state", "oscillator",    "neuromodulator",
    "optimizer", "buffer",      "other",        "bias",           "normalization", "embedding"};
constexpr std::array<std::string_view, kEncodingCount> kEncodings{
    "dense",          "csr",       "coo", "quantized", "same_as_base", "xor_base", "sparse_delta",
    "low_rank_delta", "step_delta"};
constexpr std::array<std::string_view, kCodecCount> kCodecs{"none", "zstd", "lz4", "plane_entropy",
                                                            "packed_exponents"};
constexpr std::array<std::string_view, 3> kNeuronTypes{"lif", "conductance_lif", "none"};

// Also of codes that do not exist: messages are written about those.
template <std::size_t Count>
std::string_view name_at(const std::array<std::string_view, Count>& names, std::size_t code) {
  return code < Count ? names[code] : "unknown";
}

}  // namespace

std::string_view role_name(Role role) noexcept {
  return name_at(kRoles, format::code_of(role));
}

std::optional<Role> role_from_name(std::string_view name) noexcept {
  for (std::uint8_t code = 0; code < kRoleCount; ++code) {
    if (kRoles[code] == name) return static_cast<Role>(code);
  }
  return std::nullopt;
}

std::string_view encoding_name(Encoding encoding) noexcept {
  return name_at(kEncodings, format::code_of(encoding));
}

std::string_view codec_name(Codec codec) noexcept {
  return name_at(kCodecs, format::code_of(codec));
}

std::string_view neuron_type_name(NeuronType type) noexcept {
  return name_at(kNeuronTypes, static_cast<std::uint32_t>(type));
}

}  // namespace thalia
