#include "python/results.h"

#include <string>

#include "python/objects.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

constexpr const char* kNames = "__match_args__";

nb::tuple values_of(nb::handle result) {
  nb::list values;
  for (const nb::handle name : result.type().attr(kNames)) values.append(result.attr(name));
  return nb::tuple(values);
}

nb::str repr_of(nb::handle result) {
  nb::list parts;
  for (const nb::handle name : result.type().attr(kNames))
    parts.append(nb::str("{}={!r}").format(name, result.attr(name)));
  return nb::str("{}({})").format(result.type().attr("__qualname__"),
                                  nb::str(", ").attr("join")(parts));
}

// What a notebook shows.
nb::object html_of(nb::handle result) {
  return nb::module_::import_("thalia_checkpoint._html").attr("of_result")(result);
}

nb::object are_equal(nb::handle result, nb::handle other) {
  if (!result.type().is(other.type())) return nb::borrow(Py_NotImplemented);
  return nb::bool_(values_of(result).equal(values_of(other)));
}

}  // namespace

void complete_result(nb::handle type, const nb::list& names) {
  type.attr(kNames) = nb::tuple(names);
  // An operator is not defined for what it cannot take, such as None.
  const auto define = [&](const char* name, const auto& method, const char* signature) {
    nb::cpp_function_def(method, nb::scope(type), nb::name(name), nb::is_method(),
                         nb::is_operator(), nb::sig(signature));
  };
  define("__repr__", repr_of, "def __repr__(self) -> str");
  define("__eq__", are_equal, "def __eq__(self, other: object, /) -> bool");
  define(
      "__hash__", [](nb::handle result) { return nb::hash(values_of(result)); },
      "def __hash__(self) -> int");
  define("_repr_html_", html_of, "def _repr_html_(self) -> str");
}

}  // namespace thalia::python
