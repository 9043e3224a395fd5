// A picture as the file that its name's ending asks for.
#pragma once

#include <functional>
#include <string>

#include "cli/terminal/session.h"

namespace thalia::cli {

/// Writes what draw() returns, an SVG document, to a name that ends in .svg or .png; whole or not
/// at all. A name that is taken is refused before anything is drawn. PNG is what rsvg-convert makes
/// of it, two pixels a unit.
/// @throws UsageError (bad_argument) for another ending; as print_into(); what draw() throws;
/// UnsupportedError if rsvg-convert is not there; Error with what it says if it fails.
void write_picture(const std::string& path, const Session& session,
                   const std::function<std::string()>& draw);

}  // namespace thalia::cli
