// The lock of what is made when it is first touched, also in forked children.
#include "thalia/detail/thread_lock.h"

#include <nanobind/nanobind.h>

#include "python/bindings.h"
#include "python/gil.h"

namespace thalia::python {

void bind_thread_lock(nanobind::module_& module) {
  using detail::ThreadLock;
  nanobind::class_<ThreadLock>(module, "ThreadLock")
      .def(nanobind::init<>())
      .def("__enter__",
           [](ThreadLock& self) {
             const Unlocked unlocked;
             self.lock();
           })
      .def("__exit__", [](ThreadLock& self, const nanobind::args&) { self.unlock(); });
}

}  // namespace thalia::python
