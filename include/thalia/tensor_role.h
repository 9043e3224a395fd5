// What a tensor is for, by its name alone: for files that do not say. docs/format/states.md, "Roles
// of names".
//
//   thalia::role_of_name("model.layers.0.input_layernorm.weight", 1);  // normalization
#pragma once

#include <string_view>

#include "thalia/tensor_layout.h"

namespace thalia {

/// The role of a tensor of this name and rank, as PyTorch, JAX and their optimizers name them;
/// weights where the name tells nothing else. Dots and slashes part the name.
Role role_of_name(std::string_view name, unsigned rank);

/// The role; or, of role weights, what the name tells: programs that know no roles write weights.
/// Whatever rounds tensors without naming them uses this.
Role likely_role(Role role, std::string_view name, unsigned rank);

/// True of weights and embeddings: matrices that are learned, and may be rounded where a command
/// asks for it. Biases and normalizations are too small to be worth it and cost more when they are.
constexpr bool is_weights(Role role) noexcept {
  return role == Role::weights || role == Role::embedding;
}

}  // namespace thalia
