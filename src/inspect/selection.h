// Which tensors of a file somebody asks for, in the same words for every command.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "state/precision/glob.h"
#include "thalia/formats/any_file.h"

namespace thalia::inspect {

/// Patterns fit names, region-qualified names and paths, typed as they are or as they are shown;
/// one that is exactly a region's name takes that region and nothing else. Without patterns
/// everything is taken. Of one file.
class Selection {
 public:
  /// `option` is what the user calls the patterns.
  Selection(const char* option, std::vector<std::string> patterns);

  /// To be called before takes().
  void know_regions(const AnyFile& file);
  /// Whether the tensor is asked for.
  bool takes(const state::TensorNames& tensor);
  /// To be called after the last tensor. @throws UsageError (not_found) naming a pattern that fits
  /// nothing, with the name that it may have been meant to be.
  void check() const { use_.check(some_regions_); }

  /// True where it is one whole region, so that names of tensors tell them apart.
  bool is_one_region() const noexcept { return globs_.empty() && regions_.size() == 1; }

 private:
  struct Glob {
    std::string typed;
    std::string unescaped;  ///< empty where it is the same
  };

  bool everything_;
  std::vector<Glob> globs_;
  std::vector<std::string> regions_;       ///< that are asked for whole
  std::vector<std::string> some_regions_;  ///< of the file, for suggestions
  state::PatternUse use_;
};

}  // namespace thalia::inspect
