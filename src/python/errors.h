// The library's errors as the exceptions of thalia_checkpoint.errors.
#pragma once

#include <exception>

#include <nanobind/nanobind.h>

namespace thalia::python {

/// From now on every thalia::Error that leaves a binding becomes the exception of its kind.
void translate_errors();

/// The same as an object, for errors that are stored and not thrown. The GIL is held.
nanobind::object exception_of(const std::exception_ptr& error);

}  // namespace thalia::python
