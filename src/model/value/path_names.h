// What the names in a tensor's path say: "learning_state.stp.u_values".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thalia::model {

/// The name after the last dot.
std::string_view leaf_of(std::string_view path) noexcept;
/// Runs of letters and digits, in lower case: "w_rec[2]" has w, rec, 2.
std::vector<std::string> words_of(std::string_view name);

}  // namespace thalia::model
