// The payload header is made anew from the entry, by the code that writes it, and compared field by
// field: writer and verifier cannot have different ideas of it, and the finding names the field.
#include "container/verify/payload_header.h"

#include <bit>

#include "base/fail.h"
#include "container/plan/directory_builder.h"
#include "container/plan/file_plan.h"
#include "container/verify/region_facts.h"
#include "format/payload.h"
#include "format/tensor.h"

namespace thalia::container {
namespace {

// Field and offset of a struct's member, for messages.
#define AT(Type, field) #field, offsetof(format::Type, field)

format::TensorHeader header_of(const format::TensorEntry& entry) {
  TensorPlan tensor;
  tensor.spec = TensorSpec::of({}, format::layout_of(entry));
  tensor.digest.crc32 = entry.crc32;
  return payload_header(tensor);
}

void compare(const Place& place, const format::CsrHeader& found,
             const format::CsrHeader& expected) {
  place.equal(AT(CsrHeader, dtype), format::code_of(found.dtype), format::code_of(expected.dtype));
  place.zero(AT(CsrHeader, reserved), found.reserved);
  place.equal(AT(CsrHeader, n_rows), found.n_rows, expected.n_rows);
  place.equal(AT(CsrHeader, n_cols), found.n_cols, expected.n_cols);
  place.equal(AT(CsrHeader, nnz), found.nnz, expected.nnz);
  place.equal(AT(CsrHeader, checksum), found.checksum, expected.checksum);
}

void compare(const Place& place, const format::TensorHeader& found,
             const format::TensorHeader& expected) {
  place.equal(AT(TensorHeader, dtype), format::code_of(found.dtype),
              format::code_of(expected.dtype));
  place.equal(AT(TensorHeader, ndim), found.ndim, expected.ndim);
  place.equal(AT(TensorHeader, reserved), found.reserved, expected.reserved);
  for (unsigned d = 0; d < 3; ++d)
    place.equal("shape", offsetof(format::TensorHeader, shape) + 8 * d, found.shape[d],
                expected.shape[d]);
  place.equal(AT(TensorHeader, checksum), found.checksum, expected.checksum);
}

#undef AT

}  // namespace

void verify_payload_header(const detail::OpenFile& file, const format::TensorEntry& entry,
                           std::uint64_t offset) {
  const auto& found = file.structure<format::TensorHeader>(offset, "payload");
  const format::TensorHeader expected = header_of(entry);
  const Place place("payload", offset);
  // Both forms have 32 bytes, with the CRC at the same place.
  if (entry.encoding == Encoding::csr) {
    compare(place, std::bit_cast<format::CsrHeader>(found),
            std::bit_cast<format::CsrHeader>(expected));
  } else {
    compare(place, found, expected);
  }
}

}  // namespace thalia::container
