// numpy arrays and scalars in a pickle: their bytes are in it.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/utf8.h"
#include "formats/pickle/builder.h"

namespace thalia::formats::pt {
namespace {

struct NumpyType {
  std::string_view name;
  DType dtype;
};
constexpr std::array kNumpyTypes{
    NumpyType{"b1", DType::boolean}, NumpyType{"i1", DType::i8},   NumpyType{"i2", DType::i16},
    NumpyType{"i4", DType::i32},     NumpyType{"i8", DType::i64},  NumpyType{"u1", DType::u8},
    NumpyType{"u2", DType::u16},     NumpyType{"u4", DType::u32},  NumpyType{"u8", DType::u64},
    NumpyType{"f2", DType::f16},     NumpyType{"f4", DType::f32},  NumpyType{"f8", DType::f64},
    NumpyType{"c8", DType::c64},     NumpyType{"c16", DType::c128}};

// What states of arrays say: 1 of an array, 3 or 4 of a type.
constexpr std::int64_t kArrayState = 1;

}  // namespace

void Builder::set_element_type(ArrayRecord& array, NodeId dtype) const {
  need(dtype, NodeKind::numpy_dtype, "dtype");
  const Node& type = at(dtype);
  for (const NumpyType& known : kNumpyTypes) {
    if (type.text != known.name) continue;
    array.dtype = known.dtype;
    array.big_endian = type.flag;
    return;
  }
  unsupported(fmt::format("a numpy array of the type '{}'", printable(type.text)));
}

void Builder::check_array(const ArrayRecord& array) const {
  const auto bytes = array.shape.byte_length(array.dtype);
  if (bytes == array.bytes.size()) return;
  refuse(ErrorCode::inconsistent, "ndarray", fmt::format("{} bytes", array.bytes.size()),
         bytes ? std::to_string(*bytes) : "a shape of less than 2^64 bytes");
}

NodeId Builder::add_array(const ArrayRecord& array, bool scalar) {
  charge(sizeof array);
  graph_.arrays.push_back(array);
  return add({.kind = NodeKind::array,
              .flag = scalar,
              .index = static_cast<std::uint32_t>(graph_.arrays.size() - 1)});
}

NodeId Builder::numpy_call(const Symbol& symbol, const std::vector<NodeId>& arguments) {
  const auto need_arguments = [&](std::size_t count) {
    if (arguments.size() == count) return;
    refuse(ErrorCode::bad_value, symbol.name, fmt::format("{} arguments", arguments.size()),
           std::to_string(count));
  };
  ArrayRecord array;
  if (symbol.meaning == Meaning::numpy_dtype) {
    need_arguments(3);
    return add({.kind = NodeKind::numpy_dtype, .text = need_text(arguments[0], "dtype")});
  }
  if (symbol.meaning == Meaning::numpy_scalar) {
    need_arguments(2);
    set_element_type(array, arguments[0]);
    need(arguments[1], NodeKind::bytes, "scalar");
    array.bytes = at(arguments[1]).text;
    check_array(array);
    return add_array(array, true);
  }
  if (symbol.meaning == Meaning::numpy_from_buffer) {
    need_arguments(4);
    need(arguments[0], NodeKind::bytes, "_frombuffer");
    array.bytes = at(arguments[0]).text;
    set_element_type(array, arguments[1]);
    array.shape = need_shape(arguments[2]);
    const std::string_view order = need_text(arguments[3], "order");
    if (order != "C" && order != "F")
      refuse(ErrorCode::bad_value, "order", printable(order), "C or F");
    array.by_columns = order == "F";
    check_array(array);
    return add_array(array, false);
  }
  // _reconstruct: an empty array, whose state follows.
  need_arguments(3);
  if (need_symbol(arguments[0], "_reconstruct").meaning != Meaning::numpy_array)
    unsupported("a subclass of numpy's arrays");
  array.dtype = DType::u8;
  array.shape = Shape({0});
  return add_array(array, false);
}

void Builder::numpy_state(NodeId object, NodeId state) {
  const Arguments parts = need_items(state, "state", 5, 9);
  need(parts[0], NodeKind::integer, "state");
  if (at(object).kind == NodeKind::numpy_dtype) {
    // Version, byte order, then what structures, strings and dates have.
    const std::string_view order = need_text(parts[1], "byteorder");
    for (std::size_t i = 2; i < 5; ++i)
      if (at(parts[i]).kind != NodeKind::none) unsupported("a numpy array of structures");
    if (order != "<" && order != ">" && order != "|" && order != "=")
      refuse(ErrorCode::bad_value, "byteorder", printable(order), "<, > or |");
    graph_.nodes[object].flag = order == ">";
    return;
  }
  if (parts.size() != 5 || at(parts[0]).integer != kArrayState)
    unsupported("a numpy array of another version");
  ArrayRecord array;
  array.shape = need_shape(parts[1]);
  set_element_type(array, parts[2]);
  array.by_columns = need_flag(parts[3], "is_fortran");
  if (at(parts[4]).kind == NodeKind::list) unsupported("a numpy array of objects");
  need(parts[4], NodeKind::bytes, "ndarray");
  array.bytes = at(parts[4]).text;
  check_array(array);
  graph_.arrays[at(object).index] = array;
}

}  // namespace thalia::formats::pt
