// Values of the library as Python objects.
#pragma once

#include <cstdint>
#include <string>

#include <nanobind/nanobind.h>

#include "python/text.h"
#include "thalia/types.h"

namespace thalia::python {

// Types as the stub of the module spells them. Arguments are checked for their outer type alone.

/// dict[str, Any]
using Members = nanobind::typed<nanobind::dict, nanobind::str, nanobind::any>;
template <typename T>
using ListOf = nanobind::typed<nanobind::list, T>;
template <typename... T>
using TupleWith = nanobind::typed<nanobind::tuple, T...>;
using ShapeTuple = TupleWith<std::uint64_t, nanobind::ellipsis>;

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

inline ShapeTuple shape_tuple(const Shape& shape) {
  nanobind::list extents;
  for (const std::uint64_t extent : shape.extents()) extents.append(extent);
  return nanobind::tuple(extents);
}

/// What a call that wrote a file anew tells, whichever it is.
inline nanobind::dict rewritten_dict(const auto& result) {
  nanobind::dict out;
  out["input_bytes"] = result.input_bytes;
  out["output_bytes"] = result.output_bytes;
  out["regions"] = result.regions;
  out["tensors"] = result.tensors;
  out["seconds"] = result.seconds;
  return out;
}

}  // namespace thalia::python
