// Reads any bytes as a .npy file, and writes its header again.

#include <span>
#include <string>

#include "fuzz/fuzz_target.h"
#include "interop/shared/npy_header.h"
#include "thalia/error.h"
#include "thalia/formats/npz.h"

using namespace thalia;

namespace {
namespace npy_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  ReadOptions options;
  options.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const NpyFile file = NpyFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", options);
    const NpyArray& array = file.array();
    FUZZ_REQUIRE(array.offset <= size && array.stored_bytes == size - array.offset);
    FUZZ_REQUIRE(file.read().bytes().size() == array.stored_bytes);
    const interop::NpyHeader header = interop::parse_npy_header(bytes, size);
    const std::string made = interop::make_npy_header(
        header.descr, header.fortran_order, header.shape, header.header_bytes, header.version);
    const std::string whole = made + std::string(array.stored_bytes, '\0');
    const interop::NpyHeader again =
        interop::parse_npy_header(std::as_bytes(std::span(whole)), whole.size());
    FUZZ_REQUIRE(again.shape == header.shape && again.descr == header.descr &&
                 again.fortran_order == header.fortran_order && again.version == header.version);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace npy_target
}  // namespace

FUZZ_TARGET(npy)
