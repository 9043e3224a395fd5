// How far each tensor moved, as bars in the order of the file.
#pragma once

#include <span>
#include <string>

#include "cli/tensor/tensor_changes.h"

namespace thalia::cli {

/// A document. `note` stands below; empty: none.
std::string changes_svg(std::span<const TensorChange> changes, const std::string& heading,
                        const std::string& note);

/// "1.2 %", "from zero", "added", "shape 2x2 before, 4x2 now": what there is to say of a change.
std::string change_text(const TensorChange& change);

/// The share of the greatest finite change, for a bar; 0 where there is none, 1 of an infinite one.
class ChangeScale {
 public:
  explicit ChangeScale(std::span<const TensorChange> changes);
  double share(const TensorChange& change) const;
  double greatest() const noexcept { return greatest_; }

 private:
  double greatest_ = 0;
};

}  // namespace thalia::cli
