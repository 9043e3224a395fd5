// What leads from one version to another (thalia/formats/convert.h). Any minor version of a known
// major one is read; only the two versions below are written. Nothing is opened here, so this
// answers for versions as such and not for what one file holds.
#include <fmt/format.h>

#include "format/constants.h"
#include "thalia/formats/convert.h"

namespace thalia {
namespace {

constexpr std::uint16_t kOriginalMajor = 0;

bool is_written(const FormatVersion& version) {
  return version == FormatVersion{0, 1, 0} || version == FormatVersion{1, 0, 0};
}

bool is_read(const FormatVersion& version) {
  return version.major == kOriginalMajor || version.major == format::kMajorVersion;
}

}  // namespace

Migration can_migrate(const FormatVersion& from, const FormatVersion& to) {
  if (!is_read(from)) {
    return {.reason = fmt::format("major version {} is not known", from.major)};
  }
  if (!is_written(to)) {
    return {.reason = fmt::format("{} is no version to write: 0.1 and 1.0 are", to.to_string())};
  }
  if (from.major == to.major) {
    return {.possible = true, .automatic = true, .reason = "nothing is lost: the format stays"};
  }
  if (from.major < to.major) {
    return {.possible = true,
            .automatic = true,
            .reason = "nothing is lost: 1.0 has a place for all that 0.1 files hold"};
  }
  return {.possible = true,
          .lossy = true,
          .reason =
              "down across a major version: 0.1 has no place for n_inputs, neuron types and "
              "metadata of regions, and for element types but six"};
}

}  // namespace thalia
