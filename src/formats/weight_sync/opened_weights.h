// What trainers publish to servers, read through the interface of all formats: the state of a
// version, with all that it is based on. docs/format/slime.md, docs/format/trl.md, "Reading".
#pragma once

#include "formats/source/opened_file.h"

namespace thalia::formats {

/// An OpenFormat of the index of a delta of slime's. Facts and metadata are those of the full model
/// that the chain begins with. Deltas are opened and held against it; they are applied to a
/// tensor when it is read. @throws also IoError (ENOENT) where a version that is needed is missing.
std::shared_ptr<const OpenedFile> open_slime_delta(const io::InputFile& input,
                                                   const OpenOptions& options);

/// An OpenFormat of a delta of TRL's, or of the folder that has anchors and deltas. The same.
std::shared_ptr<const OpenedFile> open_trl_delta(const io::InputFile& input,
                                                 const OpenOptions& options);

}  // namespace thalia::formats
