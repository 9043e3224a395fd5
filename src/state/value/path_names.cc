#include "state/value/path_names.h"

#include <fmt/format.h>

namespace thalia::state {

std::string path_in_region(std::string_view region, std::string_view component,
                           std::string_view name) {
  return fmt::format("regions.{}.{}.{}", region, component, name);
}

std::string path_in_connection(std::string_view source, std::string_view target,
                               std::string_view matrix) {
  return fmt::format("connections.{}->{}.{}", source, target, matrix);
}

std::string_view leaf_of(std::string_view path) noexcept {
  return path.substr(path.rfind('.') + 1);
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool is_inside = false;
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_part = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_part && !is_inside) words.emplace_back();
    if (is_part) words.back() += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    is_inside = is_part;
  }
  return words;
}

}  // namespace thalia::state
