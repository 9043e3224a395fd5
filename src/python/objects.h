// Values of the library as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "python/text.h"
#include "thalia/types.h"

namespace thalia::python {

inline nanobind::list text_list(const auto& texts) {
  nanobind::list list;
  for (const auto& text : texts) list.append(text_object(text));
  return list;
}

inline nanobind::tuple shape_tuple(const Shape& shape) {
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
