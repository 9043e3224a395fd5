// How the page of a report looks, and the little that it does.
#pragma once

#include <string>

namespace thalia::cli {

/// For light and dark, wide and narrow, screen and paper.
std::string page_style();

/// Tables with the class "sortable" are sorted by the column whose heading is pressed. Without it
/// the page lacks nothing else.
std::string page_script();

}  // namespace thalia::cli
