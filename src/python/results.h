// Results of the library as classes of Python. A field is spelled once, with what it means; from
// that an object has its attribute, its text, its equality and its hash, and can be pickled. Nobody
// in Python can change one, so that tuples of it look at the result's own elements.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <nanobind/nanobind.h>

#include "python/casters.h"

namespace thalia::python {

/// As Python sees a member: what is in a vector is in a tuple.
struct AsItIs {
  template <typename T>
  const T& operator()(const T& member) const {
    return member;
  }
  template <typename T>
  TupleOf<T> operator()(const std::vector<T>& member) const {
    return {member};
  }
};

/// A member: access(result) refers to it, view(member) is what Python sees.
template <typename Access, typename View>
struct ResultField {
  const char* name;
  const char* meaning;
  Access access;
  View view;

  void define(auto& type) const {
    type.def_prop_ro(
        name,
        [access = access,
         view = view](const typename std::remove_reference_t<decltype(type)>::Type& result)
            -> decltype(auto) { return view(access(result)); },
        meaning);
  }
  void keep(const auto& result, nanobind::list& state) const { state.append(access(result)); }
  void restore(auto& result, const nanobind::tuple& state, std::size_t& place) const {
    auto& member = access(result);
    member = nanobind::cast<std::remove_reference_t<decltype(member)>>(state[place++]);
  }
};

/// What follows from other members.
template <typename Getter>
struct Computed {
  const char* name;
  const char* meaning;
  Getter getter;

  void define(auto& type) const { type.def_prop_ro(name, getter, meaning); }
  void keep(const auto&, nanobind::list&) const {}
  void restore(auto&, const nanobind::tuple&, std::size_t&) const {}
};

/// A member that Python does not see, and something computed needs.
template <typename Access>
struct Hidden {
  Access access;

  void define(auto&) const {}
  void keep(const auto& result, nanobind::list& state) const { state.append(access(result)); }
  void restore(auto& result, const nanobind::tuple& state, std::size_t& place) const {
    auto& member = access(result);
    member = nanobind::cast<std::remove_reference_t<decltype(member)>>(state[place++]);
  }
};

/// `member`: a pointer to it, or a function that refers to it in a result. `meaning`: its
/// docstring; stays, as the name.
template <typename Member, typename View = AsItIs>
auto field(const char* name, Member member, const char* meaning = "", View view = {}) {
  if constexpr (std::is_member_object_pointer_v<Member>) {
    const auto access = [member](auto& result) -> auto& {
      return result.*member;
    };
    return ResultField<decltype(access), View>{name, meaning, access, view};
  } else {
    return ResultField<Member, View>{name, meaning, member, view};
  }
}

/// `getter`: a method, or a function of a result.
template <typename Getter>
auto computed(const char* name, Getter getter, const char* meaning = "") {
  return Computed<Getter>{name, meaning, getter};
}

template <typename Access>
auto hidden(Access access) {
  return Hidden<Access>{access};
}

/// The text, the table for notebooks, the equality and the hash of objects with these attributes.
void complete_result(nanobind::handle type, const nanobind::list& names);

/// Binds a result, by its fields in the order in which its text shows them.
template <typename T, typename... Fields>
nanobind::class_<T> bind_result(nanobind::module_& module, const char* name, const char* meaning,
                                Fields... fields) {
  namespace nb = nanobind;
  nb::class_<T> type(module, name, meaning);
  nb::list names;
  const auto define = [&](const auto& one) {
    one.define(type);
    if constexpr (requires { one.name; }) names.append(one.name);
  };
  (define(fields), ...);
  complete_result(type, names);
  type.def("__getstate__", [fields...](const T& result) {
    nb::list state;
    (fields.keep(result, state), ...);
    return nb::typed<nb::tuple, nb::any, nb::ellipsis>(nb::tuple(state));
  });
  type.def("__setstate__",
           [fields...](T& result, const nb::typed<nb::tuple, nb::any, nb::ellipsis>& state) {
             new (&result) T{};
             std::size_t place = 0;
             (fields.restore(result, state, place), ...);
           });
  return type;
}

}  // namespace thalia::python
