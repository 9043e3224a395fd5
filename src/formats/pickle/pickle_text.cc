// The bytes have to be those of Python's pickler: each value takes the opcode that Python takes for
// it, and what Python remembers is remembered in the same order, since places in the memo are
// numbers in the file.
#include "formats/pickle/pickle_text.h"

#include <bit>
#include <vector>

#include "format/little_endian.h"
#include "thalia/error.h"

namespace thalia::formats::pt {
namespace {

constexpr std::size_t kLongestLong = 255;

// Little-endian bytes of two's complement, as few as there can be.
std::string long_bytes(std::string_view decimal) {
  const bool negative = decimal.starts_with('-');
  std::vector<std::uint32_t> words;  // least significant first
  for (const char digit : decimal.substr(negative ? 1 : 0)) {
    std::uint64_t carry = static_cast<std::uint64_t>(digit - '0');
    for (std::uint32_t& word : words) {
      carry += std::uint64_t{word} * 10;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words.push_back(static_cast<std::uint32_t>(carry));
  }
  std::string bytes;
  for (const std::uint32_t word : words)
    for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(word >> (8 * i)));
  bytes.push_back('\0');
  if (negative) {
    bool carry = true;
    for (char& byte : bytes) {
      byte = static_cast<char>(~byte + (carry ? 1 : 0));
      carry = carry && byte == 0;
    }
  }
  // The sign stays in the last byte's highest bit.
  const char filler = negative ? '\xff' : '\0';
  while (bytes.size() > 1 && bytes.back() == filler &&
         ((bytes[bytes.size() - 2] ^ filler) & 0x80) == 0)
    bytes.pop_back();
  return bytes;
}

}  // namespace

std::uint32_t PickleText::memoize() {
  const std::uint32_t place = memo_++;
  if (place < 256) {
    put('q');
    put(static_cast<char>(place));
  } else {
    put('r');
    put_number(format::le32(place));
  }
  return place;
}

void PickleText::get(std::uint32_t place) {
  if (place < 256) {
    put('h');
    put(static_cast<char>(place));
  } else {
    put('j');
    put_number(format::le32(place));
  }
}

void PickleText::memo_text(Texts& memo, std::string_view content) {
  if (const auto found = memo.find(std::string(content)); found != memo.end())
    return get(found->second);
  if (content.size() > UINT32_MAX) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "a text of more than 4 GiB",
                           {.section = "data.pkl"});
  }
  put('X');
  put_number(format::le32(static_cast<std::uint32_t>(content.size())));
  out_ += content;
  memo.emplace(content, memoize());
}

void PickleText::global(const std::string& name) {
  if (const auto found = globals_.find(name); found != globals_.end()) return get(found->second);
  put('c');
  for (const char letter : name) put(letter == ' ' ? '\n' : letter);
  put('\n');
  globals_.emplace(name, memoize());
}

void PickleText::integer(std::int64_t number) {
  if (number >= 0 && number < 256) {
    put('K');
    put(static_cast<char>(number));
  } else if (number >= 0 && number < 65536) {
    put('M');
    put_number(format::le16(static_cast<std::uint16_t>(number)));
  } else if (number >= INT32_MIN && number <= INT32_MAX) {
    put('J');
    put_number(format::le32(static_cast<std::uint32_t>(number)));
  } else {
    long_integer(std::to_string(number));
  }
}

void PickleText::long_integer(std::string_view decimal) {
  const std::string number = long_bytes(decimal);
  if (number.size() > kLongestLong) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        "an integer of more than 2,039 bits, which torch.load does not read with weights_only",
        {.section = "data.pkl"});
  }
  put('\x8a');
  put(static_cast<char>(number.size()));
  out_ += number;
}

void PickleText::real(double number) {
  put('G');
  const auto bits = std::bit_cast<std::uint64_t>(number);
  for (unsigned i = 8; i-- > 0;) put(static_cast<char>(bits >> (8 * i)));
}

void PickleText::close_tuple(std::size_t count) {
  if (count == 0) return put(')');
  put(count == 1 ? '\x85' : count == 2 ? '\x86' : count == 3 ? '\x87' : 't');
  memoize();
}

void PickleText::bytes(std::string_view content) {
  // As text of latin1; torch.load takes no other bytes with weights_only, not even none.
  std::string encoded;
  for (const char byte : content) {
    const auto code = static_cast<unsigned char>(byte);
    if (code >= 0x80) encoded += static_cast<char>(0xc0 | (code >> 6));
    encoded += static_cast<char>(code < 0x80 ? code : 0x80 | (code & 0x3f));
  }
  global("_codecs encode");
  text(encoded);
  text("latin1");
  close_tuple(2);
  call();
}

void PickleText::device(std::string_view content) {
  global("torch device");
  const std::size_t colon = content.find(':');
  text(content.substr(0, colon));
  if (colon != std::string_view::npos) integer(std::stoi(std::string(content.substr(colon + 1))));
  close_tuple(colon == std::string_view::npos ? 1 : 2);
  call();
}

}  // namespace thalia::formats::pt
