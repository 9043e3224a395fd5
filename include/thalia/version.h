// Version of the library. The format has versions of its own (thalia/format_version.h).
#pragma once

#include <string_view>

namespace thalia {

/// "MAJOR.MINOR.PATCH" of the library in use. Static storage.
std::string_view library_version() noexcept;

}  // namespace thalia
