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

/// Opens a delta by `open`. Where some of what it is based on is missing and options.as_stored is
/// set, it is opened as the safetensors model that its files are.
std::shared_ptr<const OpenedFile> open_or_as_stored(OpenFormat open, const io::InputFile& input,
                                                    const OpenOptions& options);

/// The same as an OpenFormat.
template <OpenFormat kOpen>
std::shared_ptr<const OpenedFile> or_as_stored(const io::InputFile& input,
                                               const OpenOptions& options) {
  return open_or_as_stored(kOpen, input, options);
}

}  // namespace thalia::formats
