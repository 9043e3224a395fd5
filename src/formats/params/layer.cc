#include "formats/params/layer.h"

#include <charconv>
#include <system_error>

namespace thalia::formats::params {

std::optional<std::uint64_t> layer_of(std::string_view name) noexcept {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    const std::string_view part = name.substr(0, dot);
    name.remove_prefix(dot + 1);
    if (part.empty() || part.find_first_not_of("0123456789") != std::string_view::npos) continue;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace thalia::formats::params
