#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/damage.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/stream.h"

namespace thalia::test {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;  // that are asked for at once

class Walker {
 public:
  explicit Walker(bool streams) : streams_(streams) {}

  Walk walk(const std::filesystem::path& path, Verification verification, Access access) {
    const ReadOptions options{.input = {.access = access, .limits = tight_limits()},
                              .verification = verification,
                              .work = {.threads = 1}};
    attempt([&] {
      const Reader reader = Reader::open(path, options);
      walk_reader(reader);
    });
    return walk_;
  }

 private:
  template <typename Action>
  void attempt(Action action) {
    try {
      action();
    } catch (const UsageError&) {
      throw;
    } catch (const IoError&) {
      throw;
    } catch (const Error& error) {
      if (error.context().path.empty())
        throw std::logic_error(std::string("an error without the file's path: ") + error.what());
      walk_.met.push_back({error.code(), error.context().section, error.context().field});
      if (walk_.errors++ == 0) walk_.first_error = error.what();
      if (dynamic_cast<const UnsupportedError*>(&error) != nullptr) ++walk_.unsupported;
    }
  }

  void walk_reader(const Reader& reader) {
    attempt([&] { reader.metadata_json(); });
    attempt([&] { reader.logical_bytes(); });
    for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
      attempt([&] { walk_region(reader, reader.region(r)); });
    }
    attempt([&] { reader.find_region("no such region"); });
    std::uint32_t connections = 0;
    attempt([&] { connections = reader.connection_count(); });
    for (std::uint32_t i = 0; i < connections; ++i) {
      attempt([&] {
        const ConnectionView connection = reader.connection(i);
        walk_tensor(connection.weights);
        if (connection.delays) walk_tensor(*connection.delays);
      });
      attempt([&] { reader.find_connection("no such", "regions"); });
    }
    attempt([&] { reader.verify_all(); });
    if (streams_) attempt([&] { walk_stream(reader); });
  }

  // A stream gives what read() gives, or an error.
  void walk_stream(const Reader& reader) {
    StreamReader stream(reader, streamed_, {.work = {.threads = 1, .memory_bytes = 4 << 20}});
    for (const StreamedTensor& item : stream) {
      std::vector<std::byte> expected(item.tensor.logical_bytes());
      item.tensor.read(expected);
      if (!same_bytes(item.bytes, expected))
        throw std::logic_error("a stream gives other bytes than read()");
    }
  }

  void walk_region(const Reader& reader, const RegionView& region) {
    attempt([&] { reader.find_region(region.name()); });
    attempt([&] { region.n_neurons(); });
    attempt([&] { region.neuron_type(); });
    attempt([&] { region.config_json(); });
    attempt([&] { region.metadata_json(); });
    attempt([&] { region.homeostatic_updated(); });
    region.prefetch();
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      attempt([&] {
        const TensorView tensor = region.tensor(i);
        attempt([&] { region.find(tensor.name()); });
        walk_tensor(tensor);
      });
    }
  }

  void walk_tensor(const TensorView& tensor) {
    const std::uint64_t bytes = tensor.logical_bytes();
    if (bytes <= kMostBytes) {
      streamed_.push_back(tensor);
      std::vector<std::byte> out(bytes);
      attempt([&] { tensor.read(out); });
    }
    // Any encoding is tried: one that cannot be resolved is unsupported, and not a mistake of the
    // caller's.
    if (tensor.dense_bytes() <= kMostBytes) {
      std::vector<std::byte> out(tensor.dense_bytes());
      attempt([&] { tensor.read_dense(out); });
    }
    if (tensor.is_raw()) attempt([&] { touch(tensor.bytes()); });
    if (tensor.encoding() == Encoding::dense) {
      walk_dense(tensor);
    } else if (tensor.encoding() == Encoding::csr || tensor.encoding() == Encoding::coo) {
      walk_sparse(tensor);
    }
  }

  void walk_dense(const TensorView& tensor) {
    const Shape& shape = tensor.shape();
    if (tensor.is_raw() && shape.rank() > 0 && !dtype_is_packed(tensor.dtype()))
      attempt([&] { touch(tensor.rows(shape[0] / 2, shape[0])); });
    std::vector<SliceRange> middle;
    for (const std::uint64_t extent : shape.extents())
      middle.push_back({extent / 3, extent - extent / 3});
    const std::uint64_t bytes = tensor.slice_bytes(middle);
    if (bytes > kMostBytes) return;
    std::vector<std::byte> out(bytes);
    attempt([&] { tensor.read_slice(middle, out); });
  }

  void walk_sparse(const TensorView& tensor) {
    if (!tensor.is_raw()) return;
    attempt([&] {
      if (tensor.encoding() == Encoding::csr) {
        std::visit([&](auto arrays) { touch(arrays.values); }, tensor.csr());
      } else {
        std::visit([&](auto arrays) { touch(arrays.values); }, tensor.coo());
      }
    });
  }

  // Reads every byte, so that one outside the mapping is noticed.
  void touch(ByteSpan bytes) {
    for (const std::byte byte : bytes) sum_ = sum_ + std::to_integer<unsigned>(byte);
  }

  Walk walk_;
  const bool streams_;
  std::vector<TensorView> streamed_;
  volatile unsigned sum_ = 0;
};

}  // namespace

ReadLimits tight_limits() {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 24;
  return limits;
}

Walk walk_file(const std::filesystem::path& path, Verification verification, Access access,
               bool streams) {
  return Walker(streams).walk(path, verification, access);
}

}  // namespace thalia::test
