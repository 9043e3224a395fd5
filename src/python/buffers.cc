#include "python/buffers.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "io/memory/allocation_limit.h"
#include "python/bindings.h"
#include "thalia/state/tensor_value.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// All of a large buffer is in huge pages, and not just what an allocator aligns by chance.
OwnedBytes memory(std::uint64_t size) {
  const auto tensor = std::make_shared<Tensor>(
      Tensor::filled({.dtype = DType::u8, .shape = {size}}, [](MutableByteSpan) {}));
  return {tensor->mutable_bytes(), tensor};
}

// For what Python allocates itself for what a file claims.
void check_allocation(std::uint64_t bytes, std::uint64_t stored_bytes) {
  io::MemoryBudget({}, stored_bytes).take("payload", bytes);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Payload& payload = *nb::inst_ptr<Payload>(self);
  return PyBuffer_FillInfo(view, self, const_cast<std::byte*>(payload.bytes().data()),
                           static_cast<Py_ssize_t>(payload.bytes().size()),
                           /*readonly=*/payload.writable() ? 0 : 1, flags);
}

int get_owned(PyObject* self, Py_buffer* view, int flags) {
  const MutableByteSpan bytes = nb::inst_ptr<OwnedBytes>(self)->bytes;
  return PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                           /*readonly=*/0, flags);
}

PyType_Slot owned_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_owned)}, {0, nullptr}};
PyType_Slot payload_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                               {0, nullptr}};

}  // namespace

HeldBuffer::HeldBuffer(nb::handle object, Use use) : view_(new Py_buffer) {
  const int flags = use == Use::write ? PyBUF_WRITABLE : PyBUF_SIMPLE;
  if (PyObject_GetBuffer(object.ptr(), view_, flags) == 0) return;
  delete view_;
  throw nb::python_error();
}

HeldBuffer::~HeldBuffer() {
  if (view_ == nullptr) return;
  PyBuffer_Release(view_);
  delete view_;
}

void bind_buffers(nb::module_& module) {
  nb::class_<Payload>(
      module, "Payload", nb::type_slots(payload_slots),
      "Bytes of a file, with the buffer protocol; read-only unless it was opened to be written to.")
      .def("__len__", [](const Payload& payload) { return payload.bytes().size(); });
  nb::class_<OwnedBytes>(module, "OwnedBytes", nb::type_slots(owned_slots),
                         "Bytes in memory of their own, with the buffer protocol.")
      .def("__len__", [](const OwnedBytes& owned) { return owned.bytes.size(); });
  module.def("memory", memory, "Bytes that hold anything until they are written to.");
  module.def("check_allocation", check_allocation,
             "Raises FormatError where a file may not make anybody allocate so many bytes.");
  module.def(
      "bytes_at",
      [](std::uintptr_t address, std::size_t size, nb::object owner) {
        return Payload({std::bit_cast<const std::byte*>(address), size}, std::move(owner));
      },
      "The bytes at an address, which the owner keeps there.");
}

}  // namespace thalia::python
