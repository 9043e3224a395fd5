// Files of other programs that people take for checkpoints of this one.
#pragma once

#include <cstddef>
#include <string_view>

#include "thalia/types.h"

namespace thalia::format {

/// Bytes of a file's start that foreign_file() looks at.
inline constexpr std::size_t kForeignStart = 512;

/// What is said of a file without a byte, of whatever format it should be.
inline constexpr const char* kEmptyFile =
    "the file is empty, as a copy or download that failed leaves it";

/// What a file that begins like this is, and what to do with it: "a gzip file, unpack it with
/// gunzip first". Empty if that is not known. Static storage.
std::string_view foreign_file(ByteSpan start) noexcept;

/// ONNX has no magic. As a protocol buffer it begins with the version of its language, and then has
/// the name of its maker, the graph itself or the operators that it uses.
bool begins_as_onnx(ByteSpan start) noexcept;

/// Nor has safetensors: it begins with the length of a JSON text, and with that.
bool begins_as_safetensors(ByteSpan start) noexcept;

/// Nothing but letters, digits, signs and white space of ASCII, and not empty.
bool is_plain_text(ByteSpan start) noexcept;

}  // namespace thalia::format
