// Reads any bytes as a .npy file, and writes its header again.

#include <span>
#include <string>

#include "formats/npz/opened.h"
#include "formats/source/npy_header.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"

using namespace thalia;

namespace {
namespace npy_target {

void run(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  OpenOptions options;
  options.chain.read.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const auto file =
        formats::open_npy_bytes({.bytes = bytes, .owner = nullptr}, "fuzz.npy", options);
    const std::uint64_t offset = file->facts().tensors[0].offset.value();
    const std::uint64_t stored_bytes = file->facts().tensors[0].stored_bytes.value();
    FUZZ_REQUIRE(offset <= size && stored_bytes == size - offset);
    FUZZ_REQUIRE(file->read(0).bytes().size() == stored_bytes);
    const formats::NpyHeader header = formats::parse_npy_header(bytes, size);
    const std::string made = formats::make_npy_header(
        header.descr, header.fortran_order, header.shape, header.header_bytes, header.version);
    const std::string whole = made + std::string(stored_bytes, '\0');
    const formats::NpyHeader again =
        formats::parse_npy_header(std::as_bytes(std::span(whole)), whole.size());
    FUZZ_REQUIRE(again.shape == header.shape && again.descr == header.descr &&
                 again.fortran_order == header.fortran_order && again.version == header.version);
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace npy_target
}  // namespace

FUZZ_TARGET(npy)
