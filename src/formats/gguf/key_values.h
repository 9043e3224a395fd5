// Key/values as they are in a file: read, and written.
#pragma once

#include <cstdint>
#include <string>

#include "formats/gguf/cursor.h"
#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {

/// @throws FormatError, UnsupportedError (an array of arrays), without the path.
GgufKeyValues read_key_values(Cursor& cursor, std::uint64_t count);

/// The alignment that the key/values ask for: kDefaultAlignment if they do not. @throws
/// FormatError, UnsupportedError.
std::uint32_t read_alignment(const GgufKeyValues& key_values);

void append_number(std::string& out, std::uint32_t number);
void append_number(std::string& out, std::uint64_t number);
/// A length and the bytes.
void append_text(std::string& out, std::string_view text);
void append_key_value(std::string& out, const GgufKeyValue& key_value);

}  // namespace thalia::formats::gguf
