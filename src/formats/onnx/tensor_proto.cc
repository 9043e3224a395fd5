// A field that occurs twice would count as whichever a reader likes best, so it is refused, but for
// the repeated ones. Elements in typed fields are only counted as far as their bytes allow; each is
// checked when it is read.
#include "formats/onnx/tensor_proto.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/onnx/elements.h"
#include "thalia/error.h"

namespace thalia::formats::onnx {
namespace {

enum TensorField : unsigned {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kName = 8,
  kDocString = 12,
  kExternalData = 13,
  kDataLocation = 14,
  kMetadataProps = 16,
};

// What is known of the elements before they are read.
struct DataSeen {
  DataField field = DataField::none;
  std::uint64_t field_offset = 0;
  std::uint64_t pieces = 0;   // runs of packed elements, or raw_data
  std::uint64_t singles = 0;  // elements that are not packed
  std::uint64_t bytes = 0;    // in the pieces
  format::Extent piece{};
};

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_data_field(unsigned number) {
  return (number >= 4 && number <= 7) || (number >= 9 && number <= 11);
}

void see_data(const Message& message, const Field& field, DataSeen& seen) {
  const auto data_field = static_cast<DataField>(field.number);
  // An empty one counts for nothing: some writers leave it behind.
  if (field.wire == Wire::bytes && field.extent.length == 0 && data_field != DataField::string_data)
    return;
  if (seen.field != DataField::none && seen.field != data_field) {
    message.fail(ErrorCode::inconsistent, data_field_name(data_field), field.offset,
                 data_field_name(data_field), fmt::format("{} alone", data_field_name(seen.field)),
                 "elements in more than one field");
  }
  if (data_field == DataField::raw_data && seen.pieces > 0)
    message.fail(ErrorCode::inconsistent, "raw_data", field.offset, "", "", "the field repeats");
  if (data_field == DataField::raw_data) static_cast<void>(message.bytes(field, "raw_data"));
  if (seen.field == DataField::none) seen.field_offset = field.offset;
  seen.field = data_field;
  if (field.wire == Wire::bytes) {
    ++seen.pieces;
    seen.bytes += field.extent.length;
    seen.piece = field.extent;
  } else {
    ++seen.singles;
  }
}

void see_external(const Message& message, const Field& field, ExternalData& external) {
  Message entry = message.inner(field, "external_data");
  std::string_view key, value;
  std::uint64_t offset = field.offset;
  Field inner;
  while (entry.next(inner)) {
    if (inner.number == 1) key = entry.text(inner, "key");
    if (inner.number == 2) {
      value = entry.text(inner, "value");
      offset = inner.offset;
    }
  }
  const auto number = [&]() -> std::uint64_t {
    const auto parsed = parse_decimal(value);
    if (!parsed) {
      entry.fail(ErrorCode::bad_value, key, offset, printable(value), "a whole number below 2^64");
    }
    return *parsed;
  };
  if (key == "location") {
    external.location = value;
  } else if (key == "offset") {
    external.offset = number();
  } else if (key == "length") {
    external.length = number();
  } else if (key == "checksum") {
    external.checksum = value;
  }
}

// What the file has of elements against what type and shape ask for.
void check_data(const Message& message, const DataSeen& seen, TensorProto& tensor) {
  const auto refuse = [&](std::string value, std::string bound) {
    message.fail(ErrorCode::inconsistent, data_field_name(seen.field), seen.field_offset,
                 std::move(value), std::move(bound));
  };
  tensor.field = seen.field;
  if (tensor.external) {
    if (seen.field != DataField::none)
      refuse(data_field_name(seen.field), "no data beside external data");
    if (tensor.external->location.empty())
      message.fail(ErrorCode::bad_value, "external_data", message.extent().offset, "no location",
                   "a location");
    if (tensor.external->length.value_or(tensor.bytes) != tensor.bytes) {
      message.fail(ErrorCode::inconsistent, "length", message.extent().offset,
                   std::to_string(*tensor.external->length), std::to_string(tensor.bytes));
    }
    return;
  }
  if (seen.field == DataField::none) {
    if (tensor.bytes != 0) refuse("none", fmt::format("{} bytes of elements", tensor.bytes));
    return;
  }
  if (seen.field == DataField::raw_data) {
    if (seen.bytes != tensor.bytes)
      refuse(fmt::format("{} bytes", seen.bytes), std::to_string(tensor.bytes));
    tensor.raw = seen.piece;
    return;
  }
  if (seen.field != tensor.type->field)
    refuse(data_field_name(seen.field),
           fmt::format("{} or raw_data of {}", data_field_name(tensor.type->field),
                       tensor.type->name));
  const unsigned width = fixed_width(seen.field);
  const std::uint64_t entries = typed_entries(*tensor.type, tensor.shape);
  if (width != 0 ? seen.bytes % width != 0 || seen.singles + seen.bytes / width != entries
                 : seen.singles + seen.bytes < entries) {
    refuse(fmt::format("{} bytes and {} single numbers", seen.bytes, seen.singles),
           fmt::format("{} numbers", entries));
  }
  if (width != 0 && seen.pieces == 1 && seen.singles == 0) tensor.raw = seen.piece;
}

const DataType& known_type(std::uint64_t code, std::string_view name) {
  const DataType* const type = find_data_type(code);
  if (type != nullptr) return *type;
  const std::string text = code == kStringType ? "STRING" : std::to_string(code);
  throw UnsupportedDtypeError(
      text, code == kStringType ? "strings are no elements" : "unknown element type",
      {.section = "TensorProto",
       .field = "data_type",
       .tensor = printable(name),
       .value = text,
       .bound = "1 to 28, but for 8"});
}

}  // namespace

void Dims::add(const Message& message, const Field& field) {
  if (field.wire == Wire::bytes) {
    for_each_packed(message, field.extent, "dims",
                    [&](std::uint64_t extent) { add_one(message, field.offset, extent); });
  } else {
    add_one(message, field.offset, message.varint(field, "dims"));
  }
}

void Dims::add_one(const Message& message, std::uint64_t offset, std::uint64_t extent) {
  if (static_cast<std::int64_t>(extent) < 0) {
    message.fail(ErrorCode::bad_value, "dims", offset,
                 std::to_string(static_cast<std::int64_t>(extent)), "0 or more");
  }
  if (rank_ == Shape::kMaxRank) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "too many dimensions",
                           {.section = "TensorProto",
                            .field = "dims",
                            .offset = offset,
                            .bound = std::to_string(Shape::kMaxRank)});
  }
  extents_[rank_++] = extent;
}

namespace {

TensorProto parse_fields(Message& message, std::string_view& name) {
  TensorProto tensor{.message = message.extent()};
  Dims dims;
  DataSeen seen;
  std::optional<std::uint64_t> code, location;
  bool named = false, segmented = false;
  ExternalData external;
  Field field;
  const auto once = [&](bool seen_before, const char* what) {
    if (seen_before)
      message.fail(ErrorCode::inconsistent, what, field.offset, "", "", "the field repeats");
  };
  while (message.next(field)) {
    if (is_data_field(field.number)) {
      see_data(message, field, seen);
      continue;
    }
    switch (field.number) {
      case kDims:
        dims.add(message, field);
        break;
      case kDataType:
        once(code.has_value(), "data_type");
        code = message.varint(field, "data_type");
        break;
      case kSegment:
        segmented = true;
        break;
      case kName:
        once(named, "name");
        named = true;
        name = message.text(field, "name");
        break;
      case kExternalData:
        see_external(message, field, external);
        break;
      case kDataLocation:
        once(location.has_value(), "data_location");
        location = message.varint(field, "data_location");
        break;
      case kDocString:
      case kMetadataProps:
        tensor.annotated = tensor.annotated || field.extent.length > 0;
        break;
      default:
        break;
    }
  }
  tensor.name = name;
  if (!code)
    message.fail(ErrorCode::bad_value, "data_type", tensor.message.offset, "none", "a type");
  tensor.type = &known_type(*code, name);
  tensor.shape = dims.shape();
  if (segmented) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "a tensor in segments",
                           {.section = "TensorProto", .field = "segment"});
  }
  const auto bytes = tensor.shape.byte_length(tensor.type->dtype);
  if (!bytes) {
    message.fail(ErrorCode::out_of_bounds, "dims", tensor.message.offset, tensor.shape.to_string(),
                 "less than 2^64 bytes");
  }
  tensor.bytes = *bytes;
  if (location.value_or(0) > 1) {
    message.fail(ErrorCode::bad_value, "data_location", tensor.message.offset,
                 std::to_string(*location), "0 or 1");
  }
  if (location == 1) tensor.external = std::make_unique<const ExternalData>(std::move(external));
  check_data(message, seen, tensor);
  return tensor;
}

}  // namespace

TensorProto parse_tensor_proto(Message&& message) {
  std::string_view name;
  try {
    return parse_fields(message, name);
  } catch (Error& error) {
    error.add_tensor(printable(name));
    throw;
  }
}

}  // namespace thalia::formats::onnx
