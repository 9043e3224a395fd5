// The files of a chain: how large each is, over training steps.
#pragma once

#include <span>
#include <string>

#include "cli/draw/svg.h"
#include "cli/tensor/chain_links.h"

namespace thalia::cli {

/// `links` as chain_links() has them, the newest first; drawn from the oldest on. They stand at
/// their steps where these are known and rise, else side by side.
std::string chain_svg(std::span<const ChainLink> links, const std::string& heading,
                      SvgPlace place = SvgPlace::document);

}  // namespace thalia::cli
