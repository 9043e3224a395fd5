// The arrays of a sparse tensor as Python objects.
#pragma once

#include <variant>
#include <vector>

#include "python/buffers.h"
#include "thalia/tensor.h"

namespace thalia::python {

// What the arrays of a sparse tensor lie in stays as long as one of them is looked at.
template <typename Owner>
std::vector<Payload> payloads(const Owner& owner, const CsrView& csr) {
  return std::visit(
      [&](const auto& arrays) -> std::vector<Payload> {
        return {{as_byte_span(arrays.row_pointers), owner},
                {as_byte_span(arrays.column_indices), owner},
                {arrays.values, owner}};
      },
      csr);
}

template <typename Owner>
std::vector<Payload> payloads(const Owner& owner, const CooView& coo) {
  return std::visit(
      [&](const auto& arrays) -> std::vector<Payload> {
        return {{as_byte_span(arrays.indices), owner}, {arrays.values, owner}};
      },
      coo);
}

/// `storage`: where `from` puts them, if it has to.
template <typename Owner, typename... Storage>
std::vector<Payload> arrays_of(Encoding encoding, const Owner& owner, const auto& from,
                               Storage... storage) {
  return encoding == Encoding::csr ? payloads(owner, from.csr(storage...))
                                   : payloads(owner, from.coo(storage...));
}

}  // namespace thalia::python
