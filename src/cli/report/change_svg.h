// How far each tensor moved, as bars in the order of the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/report/svg.h"
#include "cli/tensor/tensor_changes.h"

namespace thalia::cli {

/// Those `most` that changed most, in the order given; one that is no number before all others.
std::vector<TensorChange> most_changed(std::vector<TensorChange> changes, std::size_t most);

/// `note` is written below; empty: none.
std::string changes_svg(std::span<const TensorChange> changes, const std::string& heading,
                        const std::string& note, SvgPlace place = SvgPlace::document);

/// "1.2 %", "from zero", "added", "shape 2x2 before, 4x2 now": what there is to say of a change.
std::string change_text(const TensorChange& change);

}  // namespace thalia::cli
