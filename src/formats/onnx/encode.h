// Fields in protobuf's wire format, put one after the other in a string.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace thalia::formats::onnx {

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  Encoder& varint(unsigned field, std::uint64_t number) {
    put((field << 3) | 0);
    return put(number);
  }
  Encoder& text(unsigned field, std::string_view text) {
    head(field, text.size());
    out_ += text;
    return *this;
  }
  /// What comes before `length` bytes that somebody else puts there.
  Encoder& head(unsigned field, std::uint64_t length) {
    put((field << 3) | 2);
    return put(length);
  }
  /// Nothing where the text is empty.
  Encoder& text_if_any(unsigned field, std::string_view value) {
    return value.empty() ? *this : text(field, value);
  }

  /// Bytes of a field's head.
  static std::uint64_t head_bytes(unsigned field, std::uint64_t length) {
    using google::protobuf::io::CodedOutputStream;
    return CodedOutputStream::VarintSize32(field << 3) + CodedOutputStream::VarintSize64(length);
  }

 private:
  Encoder& put(std::uint64_t number) {
    std::uint8_t bytes[10];
    const std::uint8_t* const end =
        google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(number, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
    return *this;
  }

  std::string& out_;
};

}  // namespace thalia::formats::onnx
