#include "formats/source/list_names.h"

#include <fmt/format.h>

#include "thalia/text.h"

namespace thalia::formats {

std::string list_names(const std::vector<std::string>& names) {
  // Enough to recognise which tensors are meant; a checkpoint may have thousands.
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", printable(names[i], 60));
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace thalia::formats
