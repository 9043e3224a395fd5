#include "thalia/version.h"

#include "version_config.h"

namespace thalia {

std::string_view library_version() noexcept {
  return THALIA_VERSION;
}

}  // namespace thalia
