// One message of protobuf's wire format, a field at a time, where it lies: nothing is copied, and
// what is not asked for is passed over by its length. The bytes are read by protobuf itself.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "format/extent.h"
#include "thalia/error.h"
#include "thalia/types.h"

namespace thalia::formats::onnx {

/// Messages inside of messages, as protobuf's own parsers allow them.
inline constexpr unsigned kDeepest = 100;
/// Bytes of a message that protobuf reads or writes.
inline constexpr std::uint64_t kMostMessageBytes = 0x7ffffffe;

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  unsigned number = 0;
  Wire wire = Wire::varint;
  std::uint64_t value = 0;   ///< of varint, fixed64 and fixed32
  format::Extent extent{};   ///< of bytes, counted from the start of the file
  std::uint64_t offset = 0;  ///< of the field's tag in the file
};

/// A walk over the fields of a message, in the order of the file. Groups, which ONNX has none of,
/// are passed over.
class Message {
 public:
  /// The whole file. @throws UnsupportedError if it is longer than a message can be.
  static Message whole(ByteSpan file, const char* name);
  /// What lies in a field of this message. @throws FormatError: (limit_exceeded) if it is nested
  /// too deep, (bad_value) where the field holds no bytes.
  Message inner(const Field& field, const char* name) const;
  /// The message of this extent, which was walked before.
  static Message again(ByteSpan file, const format::Extent& extent, const char* name);
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// False at the end. @throws FormatError (truncated, bad_value).
  bool next(Field& field);

  // What a field holds. @throws FormatError (bad_value) if it is of another kind.
  ByteSpan bytes(const Field& field, const char* name) const;
  std::string_view text(const Field& field, const char* name) const;  ///< checked to be UTF-8
  std::uint64_t varint(const Field& field, const char* name) const;

  ByteSpan file() const noexcept { return file_; }
  const format::Extent& extent() const noexcept { return extent_; }
  /// A FormatError about a field of this message.
  [[noreturn]] void fail(ErrorCode code, std::string_view field, std::uint64_t offset,
                         std::string value, std::string bound, std::string message = {}) const;

 private:
  Message(ByteSpan file, const format::Extent& extent, const char* name, unsigned depth);
  std::uint64_t position() const;
  void expect(const Field& field, Wire wire, const char* name) const;

  ByteSpan file_;
  format::Extent extent_;
  const char* name_;
  unsigned depth_;
  google::protobuf::io::CodedInputStream stream_;
};

/// Calls `take(value)` with each number of a packed field of varints. @throws FormatError if one
/// is cut off; what `take` throws.
template <typename Take>
void for_each_packed(const Message& message, const format::Extent& extent, const char* field,
                     const Take& take) {
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const std::uint8_t*>(message.file().data() + extent.offset),
      static_cast<int>(extent.length));
  const int end = static_cast<int>(extent.length);
  std::uint64_t value = 0;
  while (stream.CurrentPosition() < end) {
    const int at = stream.CurrentPosition();
    if (!stream.ReadVarint64(&value)) {
      message.fail(ErrorCode::bad_value, field, extent.offset + static_cast<unsigned>(at),
                   "a number that does not end", "a varint");
    }
    take(value);
  }
}

}  // namespace thalia::formats::onnx
