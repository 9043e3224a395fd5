// A number fits a type of n bits if it is one of n bits, with a sign or without: writers store
// the bits of a float16 as either, and both are the same bits.
#include "formats/onnx/elements.h"

#include <fmt/format.h>

#include <cstring>

#include "base/utf8.h"
#include "format/little_endian.h"
#include "formats/onnx/tensor_proto.h"
#include "formats/onnx/wire.h"
#include "state/tensor/counted_tensor.h"

namespace thalia::formats::onnx {
namespace {

// Puts one number after the other into the bytes of a tensor.
class ElementWriter {
 public:
  ElementWriter(const TensorProto& tensor, MutableByteSpan out)
      : tensor_(tensor),
        out_(out),
        entries_(typed_entries(*tensor.type, tensor.shape)),
        bits_(dtype_bits(tensor.type->dtype)) {
    // Elements of 6 bits come singly and are put together here; smaller ones are so in the file.
    if (bits_ == 6) std::memset(out.data(), 0, out.size());
    if (bits_ < 6) bits_ = 8;
    if (dtype_is_complex(tensor.type->dtype)) bits_ /= 2;
  }

  void put(const Message& message, std::uint64_t offset, std::uint64_t number) {
    need(message, offset, 1);
    if (!fits(number)) {
      message.fail(ErrorCode::bad_value, data_field_name(tensor_.field), offset,
                   std::to_string(static_cast<std::int64_t>(number)),
                   fmt::format("a number of type {}", tensor_.type->name));
    }
    store(number);
    ++done_;
  }

  // Numbers of fixed width are bytes already.
  void put_bytes(const Message& message, std::uint64_t offset, ByteSpan bytes) {
    const unsigned width = bits_ / 8;
    need(message, offset, bytes.size() / width);
    std::memcpy(out_.data() + done_ * width, bytes.data(), bytes.size() / width * width);
    done_ += bytes.size() / width;
  }

  void finish(const Message& message) const {
    if (done_ == entries_) return;
    refuse_count(message, tensor_.message.offset, done_);
  }

 private:
  bool fits(std::uint64_t number) const {
    if (tensor_.type->dtype == DType::boolean) return number <= 1;
    if (bits_ == 64 || number >> bits_ == 0) return true;
    if (bits_ == 6 || tensor_.field == DataField::uint64_data) return false;
    // int32_data: of a negative number all higher bits are set.
    return number >> (bits_ - 1) == ~std::uint64_t{0} >> (bits_ - 1);
  }

  void store(std::uint64_t number) {
    const format::le64 little(number);
    if (bits_ != 6) {
      std::memcpy(out_.data() + done_ * (bits_ / 8), &little, bits_ / 8);
      return;
    }
    const std::uint64_t bit = done_ * 6;
    const auto shifted = static_cast<unsigned>(number) << (bit % 8);
    out_[bit / 8] |= static_cast<std::byte>(shifted & 0xff);
    if (bit % 8 > 2) out_[bit / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
  }

  void need(const Message& message, std::uint64_t offset, std::uint64_t more) const {
    if (more <= entries_ - done_) return;
    refuse_count(message, offset, done_ + more);
  }
  [[noreturn]] void refuse_count(const Message& message, std::uint64_t offset,
                                 std::uint64_t count) const {
    message.fail(ErrorCode::inconsistent, data_field_name(tensor_.field), offset,
                 fmt::format("{} numbers{}", count, count > entries_ ? " or more" : ""),
                 std::to_string(entries_));
  }

  const TensorProto& tensor_;
  MutableByteSpan out_;
  std::uint64_t entries_;
  unsigned bits_;  // of a number
  std::uint64_t done_ = 0;
};

void put_field(const Message& message, const Field& field, DataField kind, ElementWriter& writer) {
  const unsigned width = fixed_width(kind);
  const char* const name = data_field_name(kind);
  if (field.wire == Wire::bytes && width != 0) {
    writer.put_bytes(message, field.offset, message.bytes(field, name));
  } else if (field.wire == Wire::bytes) {
    for_each_packed(message, field.extent, name,
                    [&](std::uint64_t number) { writer.put(message, field.offset, number); });
  } else if (width == 0) {
    writer.put(message, field.offset, message.varint(field, name));
  } else {
    if (field.wire != (width == 4 ? Wire::fixed32 : Wire::fixed64))
      message.fail(ErrorCode::bad_value, name, field.offset, "another kind of field",
                   fmt::format("{} bytes", width));
    writer.put(message, field.offset, field.value);
  }
}

}  // namespace

unsigned fixed_width(DataField field) noexcept {
  return field == DataField::float_data ? 4 : field == DataField::double_data ? 8 : 0;
}

std::uint64_t typed_entries(const DataType& type, const Shape& shape) noexcept {
  if (dtype_bits(type.dtype) < 6) return shape.byte_length(type.dtype).value_or(0);
  return shape.element_count().value_or(0) * (dtype_is_complex(type.dtype) ? 2 : 1);
}

Tensor read_typed(ByteSpan file, const TensorProto& tensor, io::MemoryBudget& budget) {
  const TensorLayout layout{.dtype = tensor.type->dtype, .shape = tensor.shape};
  return state::counted_tensor(budget, "TensorProto", layout, [&](MutableByteSpan out) {
    Message message = Message::again(file, tensor.message, "TensorProto");
    ElementWriter writer(tensor, out);
    Field field;
    while (message.next(field)) {
      if (field.number == static_cast<unsigned>(tensor.field))
        put_field(message, field, tensor.field, writer);
    }
    writer.finish(message);
  });
}

}  // namespace thalia::formats::onnx
