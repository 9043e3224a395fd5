// What the names in a tensor's path say: "learning_state.stp.u_values".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thalia::state {

// How policies and patterns spell a tensor of a file: docs/format/states.md, "Precision".
std::string path_in_region(std::string_view region, std::string_view component,
                           std::string_view name);
/// `matrix` is weights or delays.
std::string path_in_connection(std::string_view source, std::string_view target,
                               std::string_view matrix);

/// The name after the last dot.
std::string_view leaf_of(std::string_view path) noexcept;
/// Runs of letters and digits, in lower case: "w_rec[2]" has w, rec, 2.
std::vector<std::string> words_of(std::string_view name);

}  // namespace thalia::state
