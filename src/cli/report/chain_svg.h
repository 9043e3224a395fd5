// The files of a chain: how large each is, over training steps.
#pragma once

#include <span>
#include <string>

#include "cli/report/svg.h"
#include "thalia/formats/file_facts.h"

namespace thalia::cli {

/// `links` as AnyFile::links() has them, the newest first; drawn from the oldest on. They are at
/// their steps if these are known and rise, else side by side.
std::string chain_svg(std::span<const LinkFacts> links, const std::string& heading,
                      SvgPlace place = SvgPlace::document);

}  // namespace thalia::cli
