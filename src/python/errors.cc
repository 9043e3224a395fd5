// Facts are handed over as they are; thalia_checkpoint.errors picks the class and words nothing.
#include "python/errors.h"

#include <string>
#include <string_view>
#include <typeinfo>

#include "python/objects.h"
#include "thalia/error.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

nb::object text_or_none(const std::string& text) {
  return text.empty() ? nb::none() : text_object(text);
}

nb::object made(std::string_view kind, const Error& error, int errno_value = 0) {
  const ErrorContext& context = error.context();
  nb::dict facts;
  facts["code"] = error_code_name(error.code()).data();
  facts["path"] = text_or_none(context.path);
  facts["section"] = text_or_none(context.section);
  facts["field"] = text_or_none(context.field);
  facts["region"] = text_or_none(context.region);
  facts["tensor"] = text_or_none(context.tensor);
  facts["value"] = text_or_none(context.value);
  facts["expected"] = text_or_none(context.bound);
  facts["offset"] = context.offset ? nb::object(nb::int_(*context.offset)) : nb::none();
  return nb::module_::import_("thalia_checkpoint.errors")
      .attr("_from_core")(std::string(kind), text_or_none(error.what()), facts, errno_value);
}

nb::object made(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const IoError& e) {
    return made("io", e, e.errno_value());
  } catch (const FormatError& e) {
    return made("format", e);
  } catch (const IntegrityError& e) {
    return made("integrity", e);
  } catch (const UnsupportedError& e) {
    return made("unsupported", e);
  } catch (const UsageError& e) {
    return made("usage", e);
  } catch (const CancelledError& e) {
    return made("cancelled", e);
  } catch (const Error& e) {
    return made("", e);
  }
}

}  // namespace

nb::object exception_of(const std::exception_ptr& error) {
  try {
    return made(error);
  } catch (nb::python_error& e) {
    return nb::borrow(e.value());
  } catch (const std::bad_alloc&) {
    return nb::borrow(PyExc_MemoryError)();
  } catch (const std::exception& e) {
    return nb::borrow(PyExc_RuntimeError)(e.what());
  }
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    nb::object exception;
    try {
      exception = made(error);
    } catch (nb::python_error& e) {
      // Thrown as it is by a callback, or the exception's class could not be had.
      return e.restore();
    } catch (const std::bad_cast&) {
      // Nanobind itself reports a wrong argument; this is a wrong member of one.
      return PyErr_SetString(PyExc_TypeError, "a member of a list or tuple is of another type");
    }
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  });
}

}  // namespace thalia::python
