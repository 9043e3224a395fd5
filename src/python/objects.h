// Values of the library as Python objects, and what the stub of the module calls objects. Texts
// take the place of nanobind/stl/string.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace thalia::python {

/// Names of files are bytes, and values may quote damaged ones: what is not UTF-8 becomes \xNN.
inline nanobind::object text_object(std::string_view text) {
  return nanobind::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace thalia::python

namespace nanobind::detail {

/// A text of Python may have surrogates, which UTF-8 has not. They are passed on as they are: the
/// library refuses them with an error that names the argument, or finds nothing of such a name.
template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, std::uint32_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    PyObject* bytes = PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogatepass");
    char* begin = nullptr;
    Py_ssize_t size = 0;
    if (bytes == nullptr || PyBytes_AsStringAndSize(bytes, &begin, &size) != 0) {
      PyErr_Clear();
      Py_XDECREF(bytes);
      return false;
    }
    value.assign(begin, static_cast<std::size_t>(size));
    Py_DECREF(bytes);
    return true;
  }

  static handle from_cpp(const std::string& text, rv_policy /*policy*/,
                         cleanup_list* /*cleanup*/) noexcept {
    return thalia::python::text_object(text).release();
  }
};

/// Out only: an argument is a std::string.
template <>
struct type_caster<std::string_view> {
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name = const_name("str");

  static handle from_cpp(std::string_view text, rv_policy /*policy*/,
                         cleanup_list* /*cleanup*/) noexcept {
    return thalia::python::text_object(text).release();
  }
};

}  // namespace nanobind::detail

namespace thalia::python {

// Types as the stub of the module spells them. Arguments are checked for their outer type alone.

/// dict[str, Any]
using Members = nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>;
template <typename T>
using ListOf = nanobind::typed<nanobind::list, T>;
template <typename... T>
using TupleWith = nanobind::typed<nanobind::tuple, T...>;

/// An object of Python that the stub calls T.
template <typename T>
using ObjectLike = nanobind::typed<nanobind::object, T>;

class MaybeError : public nanobind::object {
 public:
  // NOLINTNEXTLINE(readability-identifier-naming): nanobind's name
  static constexpr auto Name = nanobind::detail::const_name("BaseException | None");
};

inline ListOf<std::string> text_list(const auto& texts) {
  nanobind::list list;
  for (const auto& text : texts) list.append(text_object(text));
  return list;
}

}  // namespace thalia::python
