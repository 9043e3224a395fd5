// Several checkpoints in one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "thalia/convert.h"

namespace thalia {

/// Whose content is taken where several inputs have a region, a connection or a member of the
/// metadata of one name, and not the same one.
struct MergePreference {
  enum class Kind {
    none,   ///< such a conflict is an error
    first,  ///< of the inputs that have it
    last,
    input,  ///< that of `number`; if it has none, and others differ, that is an error
  };
  Kind kind = Kind::none;
  std::size_t number = 0;  ///< among the inputs
};

/// Copies the regions and connections of several .thalia files into a new one, in the order of the
/// inputs; of a delta, and of a model in several files, its state, as a ResolvedFile. What two
/// inputs have alike (by facts, texts and content hashes, as diff() tells) is taken once. Metadata:
/// the first's, with the members that only others have, and no conflict in version, thalia_version
/// and created, which say something of one file; growth histories one after the other in the order
/// of their steps, an event without a step after the one before it, and an event that several
/// files have once. Training steps are the greatest. Precision and formats of the options are not
/// used.
/// @return as convert(); losses tell what gave way to what was preferred.
/// @throws UsageError (duplicate) naming what is in conflict, and the files; (bad_argument) without
/// an input. FormatError, IntegrityError, IoError; UnsupportedError as extract(). On an error
/// nothing is left at `output`.
ConvertResult merge(const std::vector<std::filesystem::path>& inputs,
                    const std::filesystem::path& output, const MergePreference& preference = {},
                    const ConvertOptions& options = {});

}  // namespace thalia
