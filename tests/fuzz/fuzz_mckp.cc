// Reads any bytes as an MCKP file, all tensors of it. What is accepted survives being written and
// read again.

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/little_endian.h"
#include "formats/mckp/format.h"
#include "fuzz/fuzz_target.h"
#include "integrity/xxh64.h"
#include "thalia/error.h"
#include "thalia/formats/mckp.h"

using namespace thalia;

namespace {
namespace mckp_target {

MckpReadOptions tight() {
  MckpReadOptions options{.chain = {.read = {.work = {.threads = 1}}}};
  options.chain.read.input.limits.max_allocation_bytes = 1 << 20;
  options.chain.read.input.limits.max_json_bytes = 1 << 20;
  return options;
}

// With the right checksum in the footer: what comes after it has to withstand anything.
std::vector<std::byte> sealed(ByteSpan bytes) {
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  if (file.size() < sizeof(formats::MckpFooter)) return file;
  const std::size_t end = file.size() - sizeof(formats::MckpFooter);
  const format::le64 sum(integrity::xxh64(ByteSpan(file).first(end)));
  std::ranges::copy(std::as_bytes(std::span(&sum, 1)),
                    file.begin() + static_cast<std::ptrdiff_t>(end));
  return file;
}

Tensor restored(const MckpFile& file, const MckpTensor& tensor) {
  if (!tensor.method.delta) return file.read(tensor.name);
  return file.read(tensor.name, Tensor::filled(tensor.layout(), [](MutableByteSpan bytes) {
                     std::ranges::fill(bytes, std::byte{0});
                   }));
}

void check_round_trip(const MckpFile& file) {
  std::string bytes;
  MckpWriter writer(
      [&](ByteSpan piece) {
        bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      },
      {.header = {.metadata = file.header().metadata}, .work = {.threads = 1}});
  for (const MckpTensor& tensor : file.tensors()) writer.add(tensor.name, restored(file, tensor));
  writer.commit();
  // White space and escapes may make the header longer than the one that was read.
  MckpReadOptions options{.verify = true, .chain = {.read = {.work = {.threads = 1}}}};
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  const MckpFile again =
      MckpFile::from_bytes({.bytes = as_byte_span(*owner), .owner = owner}, "again", options);
  FUZZ_REQUIRE(again.tensors().size() == file.tensors().size());
  for (const MckpTensor& tensor : file.tensors())
    FUZZ_REQUIRE(again.read(tensor.name) == restored(file, tensor));
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::byte> bytes = sealed(std::as_bytes(std::span(data, size)));
  try {
    const MckpFile file = MckpFile::from_bytes({.bytes = bytes, .owner = nullptr}, "fuzz", tight());
    bool whole = true;
    for (const MckpTensor& tensor : file.tensors()) {
      FUZZ_REQUIRE(tensor.offset <= size && tensor.compressed_size <= size - tensor.offset);
      try {
        FUZZ_REQUIRE(restored(file, tensor).bytes().size() == tensor.original_size);
      } catch (const FormatError&) {
        whole = false;
      } catch (const IntegrityError&) {
        whole = false;
      }
    }
    if (whole) check_round_trip(file);
    file.verify();
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace mckp_target
}  // namespace

FUZZ_TARGET(mckp)
