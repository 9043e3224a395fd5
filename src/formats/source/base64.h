// Base64 as RFC 4648, section 4, and Go's encoding/base64 have it: the standard alphabet, padded.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/types.h"

namespace thalia::formats {

/// Bytes that come in pieces; the characters are those of the whole.
class Base64Encoder {
 public:
  void put(ByteSpan piece, std::string& out);
  void finish(std::string& out);

 private:
  std::array<std::byte, 3> held_{};
  std::size_t count_ = 0;
};

std::string to_base64(ByteSpan bytes);

/// Line ends count for nothing; padding has to be there. The offset of the first character that is
/// wrong goes to `wrong`, and the result is empty then.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text, std::size_t& wrong);

}  // namespace thalia::formats
