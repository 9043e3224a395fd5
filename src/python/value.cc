#include "python/value.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "io/memory/allocation_limit.h"
#include "python/bindings.h"
#include "python/casters.h"
#include "python/gil.h"
#include "python/objects.h"
#include "python/options.h"

#include <nanobind/stl/vector.h>

namespace thalia::python {
namespace {

namespace nb = nanobind;

Value number_of(nb::handle integer) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
  if (overflow == 0) return Value(small);
  return Value::number(nb::cast<std::string>(nb::str(integer)));
}

nb::object number_object(const std::string& text) {
  const bool is_integer = text.find_first_not_of("-0123456789") == std::string::npos;
  PyObject* const number = is_integer ? PyLong_FromString(text.c_str(), nullptr, 10)
                                      : PyFloat_FromString(nb::str(text.data(), text.size()).ptr());
  if (number == nullptr) throw nb::python_error();
  return nb::steal(number);
}

// Bytes in memory of their own: the tensor's, where nobody else has them.
OwnedBytes take_bytes(LoadedTensor& loaded) {
  const auto own = std::make_shared<Tensor>(std::move(loaded.tensor));
  loaded.tensor = {};
  const Unlocked unlocked;
  if (!own->is_dense()) {
    const std::uint64_t bits = dtype_bits(own->dtype());
    const std::uint64_t bytes =
        own->element_count() / 8 * bits + (own->element_count() % 8 * bits + 7) / 8;
    io::MemoryBudget({}, own->bytes().size()).take("payload", bytes);
    *own = own->to_dense();
  }
  return {own->mutable_bytes(), own};
}

}  // namespace

Value value_of(nb::handle object, std::vector<HeldBuffer>& held) {
  PyObject* const o = object.ptr();
  if (o == Py_None) return {};
  if (PyBool_Check(o)) return Value(o == Py_True);
  if (PyLong_Check(o)) return number_of(object);
  if (PyFloat_Check(o)) return Value(PyFloat_AsDouble(o));
  if (PyUnicode_Check(o)) return Value(nb::cast<std::string>(object));
  if (PyList_Check(o) || PyTuple_Check(o)) {
    Value array = Value::array();
    for (const nb::handle item : nb::borrow<nb::sequence>(object))
      array.push_back(value_of(item, held));
    return array;
  }
  if (PyDict_Check(o)) {
    Value members = Value::object();
    for (const auto& [key, item] : nb::borrow<nb::dict>(object))
      members.add(nb::cast<std::string>(key), value_of(item, held));
    return members;
  }
  auto& borrowed = nb::cast<BorrowedTensor&>(object);
  if (!borrowed.held) {
    throw UsageError(ErrorCode::wrong_state, {},
                     {.field = "tensor", .value = "one that a tree has", .bound = "another"});
  }
  held.push_back(*std::move(borrowed.held));
  borrowed.held.reset();
  return std::move(borrowed.tensor);
}

nb::object object_of(const Value& value, const std::function<nb::object(const Tensor&)>& object) {
  switch (value.kind()) {
    case Value::Kind::null:
      break;
    case Value::Kind::boolean:
      return nb::bool_(value.as_bool());
    case Value::Kind::number:
      return number_object(value.number_text());
    case Value::Kind::string:
      return text_object(value.as_string());
    case Value::Kind::array: {
      nb::list list;
      for (const Value& element : value.elements()) list.append(object_of(element, object));
      return list;
    }
    case Value::Kind::object: {
      nb::dict members;
      for (const auto& [name, member] : value.members())
        members[text_object(name)] = object_of(member, object);
      return members;
    }
    case Value::Kind::tensor:
      return object ? object(value.as_tensor()) : nb::cast(LoadedTensor{value.as_tensor()});
  }
  return nb::none();
}

void bind_value(nb::module_& module) {
  nb::class_<BorrowedTensor>(module, "BorrowedTensor")
      .def("__init__", [](BorrowedTensor* self, const std::string& dtype,
                          const std::vector<std::uint64_t>& shape, nb::handle data) {
        HeldBuffer held(data, HeldBuffer::Use::read);
        Tensor tensor = Tensor::borrow(dtype_of(dtype),
                                       Shape(std::span<const std::uint64_t>(shape)), held.bytes());
        new (self) BorrowedTensor{std::move(tensor), std::move(held)};
      });
  nb::class_<LoadedTensor>(module, "LoadedTensor")
      .def_prop_ro("dtype",
                   [](const LoadedTensor& loaded) { return dtype_name(loaded.tensor.dtype()); })
      .def_prop_ro("shape", [](const LoadedTensor& loaded) { return loaded.tensor.shape(); })
      .def("take", take_bytes,
           "The bytes of all elements, row-major, in memory of their own. Once: none are left "
           "then.");
}

}  // namespace thalia::python
