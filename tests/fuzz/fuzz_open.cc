// Opens any bytes as a .thalia file, walks all that a reader gives, and verifies them; then once
// more with the checksums of header and directory made to fit, which lets changes through to the
// code behind them.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/extent.h"
#include "fuzz/fuzz_target.h"
#include "integrity/crc32.h"
#include "thalia/error.h"
#include "thalia/format/directory.h"
#include "thalia/format/header.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;

namespace {

constexpr std::uint32_t kWalked = 64;  // regions, and tensors of each
constexpr std::uint64_t kLargest = 1 << 20;

constexpr ReadLimits kLimits{.max_regions = 1 << 12,
                             .max_tensors = 1 << 14,
                             .max_json_bytes = 1 << 20,
                             .max_json_depth = 32,
                             .max_allocation_bytes = 1 << 24};

// One file in memory, mapped by its name in /proc as any other.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("no memfd");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string hold(const std::vector<std::uint8_t>& bytes) {
    const auto size = static_cast<off_t>(bytes.size());
    if (::ftruncate(fd_, 0) != 0 || ::ftruncate(fd_, size) != 0 ||
        ::pwrite(fd_, bytes.data(), bytes.size(), 0) != size) {
      throw std::runtime_error("cannot fill a memfd");
    }
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

// What may be said of a damaged file. Anything else that is thrown ends the process.
template <typename Work>
bool tolerate(const Work& work) {
  try {
    work();
    return true;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

void walk_slice(const TensorView& tensor) {
  std::vector<SliceRange> ranges;
  for (const std::uint64_t extent : tensor.shape().extents()) {
    ranges.push_back({extent / 2, std::min<std::uint64_t>(extent, extent / 2 + 2)});
  }
  std::vector<std::byte> out(tensor.slice_bytes(ranges));
  tensor.read_slice(ranges, out);
}

void walk_tensor(const TensorView& tensor) {
  (void)tensor.content_hash();
  if (tensor.is_raw()) {
    tolerate([&] { FUZZ_REQUIRE(tensor.bytes().size() == tensor.logical_bytes()); });
    if (tensor.encoding() == Encoding::csr) tolerate([&] { tensor.csr(); });
    if (tensor.encoding() == Encoding::coo) tolerate([&] { tensor.coo(); });
  }
  if (tensor.encoding() == Encoding::dense) tolerate([&] { walk_slice(tensor); });
  if (tensor.logical_bytes() <= kLargest) {
    std::vector<std::byte> out(tensor.logical_bytes());
    const bool read = tolerate([&] { tensor.read(out); });
    if (read && tensor.is_raw()) FUZZ_REQUIRE(std::ranges::equal(out, tensor.bytes()));
  }
  tolerate([&] {
    if (tensor.dense_bytes() > kLargest) return;
    std::vector<std::byte> out(tensor.dense_bytes());
    tensor.read_dense(out);
  });
}

void walk_region(const RegionView& region) {
  tolerate([&] { region.config_json(); });
  tolerate([&] { region.metadata_json(); });
  tolerate([&] { region.homeostatic_updated(); });
  tolerate([&] { region.neuron_type(); });
  for (std::uint32_t i = 0; i < std::min(region.tensor_count(), kWalked); ++i) {
    tolerate([&] {
      const TensorView tensor = region.tensor(i);
      walk_tensor(tensor);
      region.find(tensor.name());
    });
  }
  tolerate([&] { region.find("no such name"); });
}

void walk(const std::string& path, Verification verification) {
  tolerate([&] {
    const Reader reader =
        Reader::open(path, {.verification = verification, .limits = kLimits, .threads = 1});
    tolerate([&] { reader.metadata_json(); });
    tolerate([&] { reader.logical_bytes(); });
    tolerate([&] { reader.verify_all(); });
    for (std::uint32_t i = 0; i < std::min(reader.region_count(), kWalked); ++i) {
      tolerate([&] {
        const RegionView region = reader.region(i);
        walk_region(region);
        reader.find_region(region.name());
      });
    }
    std::uint32_t connections = 0;
    tolerate([&] { connections = std::min(reader.connection_count(), kWalked); });
    for (std::uint32_t i = 0; i < connections; ++i) {
      tolerate([&] {
        const ConnectionView connection = reader.connection(i);
        walk_tensor(connection.weights);
        if (connection.delays) walk_tensor(*connection.delays);
      });
    }
  });
}

// The CRC-32 of a struct with its own field of it zero.
template <typename T>
void seal(T& structure, format::le32& field) {
  field = 0;
  field = integrity::crc32(as_byte_span(std::span<const T, 1>(&structure, 1)));
}

template <typename T>
T* overlay(std::vector<std::uint8_t>& bytes, std::uint64_t offset) {
  const bool fits = format::lies_within({offset, sizeof(T)}, 0, bytes.size());
  return fits ? reinterpret_cast<T*>(bytes.data() + offset) : nullptr;
}

void seal_file(std::vector<std::uint8_t>& bytes) {
  auto* header = overlay<format::Header>(bytes, 0);
  if (header == nullptr) return;
  header->file_length = bytes.size();
  if (auto* directory = overlay<format::DirectoryHeader>(bytes, header->directory_offset)) {
    seal(*directory, directory->directory_crc32);
  }
  seal(*header, header->header_crc32);
  auto* record = overlay<format::Header>(bytes, header->integrity_offset - sizeof(format::Header));
  if (record != nullptr && record != header) std::memmove(record, header, sizeof *record);
}

void run(const std::string& path) {
  for (const Verification verification :
       {Verification::off, Verification::on_first_touch, Verification::at_open}) {
    walk(path, verification);
  }
  tolerate([&] { verify(path, {.limits = kLimits, .threads = 1}); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemoryFile file;
  std::vector<std::uint8_t> bytes(data, data + size);
  run(file.hold(bytes));
  seal_file(bytes);
  run(file.hold(bytes));
  return 0;
}
