// Categories of tensors for precision policies: docs/format/states.md, "Precision". By path is what
// the original program did, kept with its accidents (a bias below `weights` is a weight) for those
// who ask for them: they go by the names of regions too. By role is what one would expect.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include "thalia/state/precision.h"

namespace thalia {
namespace {

using Category = PrecisionCategory;

char lowered(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), lowered);
  return lower;
}

// The original program's texts. The first in this order that occurs in the path decides.
constexpr std::array<std::pair<std::string_view, Category>, 14> kParts{{
    {"weight", Category::weights},
    {"w_", Category::weights},
    {"bias", Category::biases},
    {"b_", Category::biases},
    {"membrane", Category::membrane},
    {"v_mem", Category::membrane},
    {"trace", Category::traces},
    {"eligibility", Category::traces},
    {"stdp", Category::traces},
    {"threshold", Category::thresholds},
    {"v_thresh", Category::thresholds},
    {"theta", Category::thresholds},
    {"conductance", Category::conductances},
    {"g_", Category::conductances},
}};

// The last name of a path, parted by dots and slashes, in lower case. Its words are runs of letters
// and digits.
class LastName {
 public:
  explicit LastName(std::string_view path)
      : name_(lower_case(path.substr(path.find_last_of("./") + 1))) {}

  bool has_word(std::initializer_list<std::string_view> words) const {
    for (std::size_t begin = 0; begin < name_.size();) {
      std::size_t end = begin;
      while (end < name_.size() && is_letter(name_[end])) ++end;
      const std::string_view word = std::string_view(name_).substr(begin, end - begin);
      if (std::find(words.begin(), words.end(), word) != words.end()) return true;
      begin = end + 1;
    }
    return false;
  }

  bool starts_with(std::string_view prefix) const { return name_.starts_with(prefix); }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

  std::string name_;
};

}  // namespace

PrecisionCategory category_of_path(std::string_view path) {
  const std::string lower = lower_case(path);
  // Anywhere in the path, the region's name included, as the original program does it.
  for (const auto& [part, category] : kParts) {
    if (lower.find(part) != std::string::npos) return category;
  }
  return Category::other;
}

PrecisionCategory category_of_role(Role role, std::string_view path) {
  const LastName name(path);
  switch (role) {
    case Role::weights:
    case Role::embedding:
      return name.has_word({"bias", "biases"}) ? Category::biases : Category::weights;
    case Role::bias:
      return Category::biases;
    case Role::homeostatic:
      return Category::thresholds;
    case Role::region_state:
      if (name.has_word({"membrane"}) || name.starts_with("v_mem")) return Category::membrane;
      if (name.has_word({"conductance", "conductances"}) || name.starts_with("g_"))
        return Category::conductances;
      if (name.has_word({"threshold", "thresholds"}) || name.starts_with("v_thresh"))
        return Category::thresholds;
      return Category::other;
    case Role::learning_state:
      return name.has_word({"threshold", "thresholds", "theta", "thetas"}) ? Category::thresholds
                                                                           : Category::traces;
    case Role::oscillator:
    case Role::neuromodulator:
    case Role::normalization:
    case Role::optimizer:
    case Role::buffer:
    case Role::other:
      return Category::other;
  }
  return Category::other;
}

}  // namespace thalia
