// What is around the body of a 0.1 file: the checksum, and perhaps one frame.
// docs/format/v01.md, "Wrappers and checksum of version 0.1".
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "io/file/input_file.h"
#include "thalia/formats/v01.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats {

/// The contents of a file with its frame taken off, if it has one, and no checksum verified yet.
struct V01Contents {
  ByteSpan bytes;  ///< what is in the frame, or the whole file
  std::shared_ptr<const void> owner;
  std::optional<Codec> wrapper{};
  ByteSpan frame;     ///< in the file; empty without wrapper
  ByteSpan trailing;  ///< after the frame
  std::shared_ptr<const void> file_owner;
};

/// @throws FormatError, as unwrap_front_frame().
V01Contents open_v01_wrapper(ByteSpan file, std::shared_ptr<const void> owner,
                             const ReadLimits& limits);

struct V01Body {
  ByteSpan bytes;  ///< without the checksum
  bool checksum_inside = false;
  ByteSpan covered;   ///< by the checksum
  ByteSpan checksum;  ///< the 32 bytes themselves
};

/// Finds the checksum. @throws FormatError.
V01Body v01_body(const V01Contents& contents);
/// And verifies it. @throws IntegrityError; FormatError.
V01Body verified_v01_body(const V01Contents& contents);

/// True where the contents begin with either magic of a delta.
bool begins_as_v01_delta(ByteSpan contents) noexcept;
/// read_v01() and read_v01_delta_info() of a file that others look at too.
V01File read_v01(const io::InputFile& input, const ReadOptions& options);
V01DeltaInfo v01_delta_info(const io::InputFile& input, const ReadOptions& options);
/// @throws UnsupportedError that says how to come by a file that can be read.
[[noreturn]] void refuse_v01_delta(std::string path = {});

/// The frame that is asked for. Its level is never 0.
struct V01Frame {
  Codec codec;
  int level;
};
/// nullopt: none. @throws UsageError (bad_argument) for a codec that has no frames, or a level that
/// it does not have.
std::optional<V01Frame> wanted_v01_frame(const V01WriteOptions& options);

/// `body` with its checksum, in the frame if there is one.
std::vector<std::byte> wrap_v01_body(std::vector<std::byte> body,
                                     const std::optional<V01Frame>& frame, bool checksum_inside);

}  // namespace thalia::formats
