// Every length is compared with what is left of the message around it before it is used. A message
// is a stream of its own, so that no limit of an outer one has to be put back.
#include "formats/onnx/wire.h"

#include <google/protobuf/wire_format_lite.h>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::formats::onnx {
namespace {

using google::protobuf::internal::WireFormatLite;

const char* wire_name(Wire wire) {
  switch (wire) {
    case Wire::varint:
      return "a varint";
    case Wire::fixed64:
      return "8 bytes";
    case Wire::bytes:
      return "a length and bytes";
    case Wire::fixed32:
      return "4 bytes";
  }
  return "another kind of field";
}

}  // namespace

Message::Message(ByteSpan file, const format::Extent& extent, const char* name, unsigned depth)
    : file_(file),
      extent_(extent),
      name_(name),
      depth_(depth),
      stream_(reinterpret_cast<const std::uint8_t*>(file.data() + extent.offset),
              static_cast<int>(extent.length)) {}

Message Message::whole(ByteSpan file, const char* name) {
  if (file.size() > kMostMessageBytes) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "the model is longer than a message of protobuf can be: such models "
                           "have their weights in other files",
                           {.section = name,
                            .value = fmt::format("{} bytes", file.size()),
                            .bound = fmt::format("up to {}", kMostMessageBytes)});
  }
  return Message(file, {0, file.size()}, name, 1);
}

Message Message::inner(const Field& field, const char* name) const {
  expect(field, Wire::bytes, name);
  if (depth_ == kDeepest) {
    fail(ErrorCode::limit_exceeded, name, field.offset, "a deeper one",
         fmt::format("{} messages in each other", kDeepest));
  }
  return Message(file_, field.extent, name, depth_ + 1);
}

Message Message::again(ByteSpan file, const format::Extent& extent, const char* name) {
  return Message(file, extent, name, 1);
}

std::uint64_t Message::position() const {
  return extent_.offset + static_cast<unsigned>(stream_.CurrentPosition());
}

bool Message::next(Field& field) {
  for (;;) {
    field.offset = position();
    const std::uint64_t end = extent_.offset + extent_.length;
    if (field.offset == end) return false;
    const std::uint32_t tag = stream_.ReadTag();
    field.number = static_cast<unsigned>(WireFormatLite::GetTagFieldNumber(tag));
    const auto cut_off = [&](std::string value) {
      fail(ErrorCode::truncated, fmt::format("field {}", field.number), field.offset,
           std::move(value), fmt::format("{} bytes to the end of the message", end - field.offset));
    };
    if (field.number == 0)
      fail(ErrorCode::bad_value, "tag", field.offset, std::to_string(tag), "a tag of protobuf");
    std::uint32_t small = 0;
    int length = 0;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        field.wire = Wire::varint;
        if (!stream_.ReadVarint64(&field.value)) cut_off("a number that does not end");
        return true;
      case WireFormatLite::WIRETYPE_FIXED64:
        field.wire = Wire::fixed64;
        if (!stream_.ReadLittleEndian64(&field.value)) cut_off("8 bytes");
        return true;
      case WireFormatLite::WIRETYPE_FIXED32:
        field.wire = Wire::fixed32;
        if (!stream_.ReadLittleEndian32(&small)) cut_off("4 bytes");
        field.value = small;
        return true;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        field.wire = Wire::bytes;
        if (!stream_.ReadVarintSizeAsInt(&length)) cut_off("a length that no message has");
        const std::uint64_t begin = position();
        const auto bytes = static_cast<std::uint64_t>(length);
        if (bytes > end - begin) cut_off(fmt::format("{} bytes", bytes));
        field.extent = {begin, bytes};
        stream_.Skip(length);
        return true;
      }
      case WireFormatLite::WIRETYPE_START_GROUP:
        // Bounded in its depth by protobuf.
        if (!WireFormatLite::SkipField(&stream_, tag)) cut_off("a group that does not end");
        break;
      case WireFormatLite::WIRETYPE_END_GROUP:
      default:
        fail(ErrorCode::bad_value, "tag", field.offset, std::to_string(tag), "a tag of protobuf");
    }
  }
}

ByteSpan Message::bytes(const Field& field, const char* name) const {
  expect(field, Wire::bytes, name);
  return file_.subspan(field.extent.offset, field.extent.length);
}

std::string_view Message::text(const Field& field, const char* name) const {
  const ByteSpan raw = bytes(field, name);
  const std::string_view text(reinterpret_cast<const char*>(raw.data()), raw.size());
  if (!is_valid_utf8(text))
    fail(ErrorCode::bad_value, name, field.offset, printable(text), "UTF-8");
  return text;
}

std::uint64_t Message::varint(const Field& field, const char* name) const {
  expect(field, Wire::varint, name);
  return field.value;
}

void Message::expect(const Field& field, Wire wire, const char* name) const {
  if (field.wire != wire)
    fail(ErrorCode::bad_value, name, field.offset, wire_name(field.wire), wire_name(wire));
}

void Message::fail(ErrorCode code, std::string_view field, std::uint64_t offset, std::string value,
                   std::string bound, std::string message) const {
  fail_field(code, name_, field, offset, std::move(value), std::move(bound), std::move(message));
}

}  // namespace thalia::formats::onnx
