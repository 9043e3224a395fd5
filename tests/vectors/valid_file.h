// What the programs that write the published files have in common: a fixed identity, and elements
// that count up.
#pragma once

#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thalia/state/delta.h"
#include "thalia/writer.h"

namespace thalia::test {

using Bytes = std::vector<std::byte>;

// SHA-256 leaves need nothing but a standard library.
inline SaveOptions options() {
  SaveOptions out{.leaves = LeafAlgorithm::sha256,
                  .block_log2 = 12,
                  .timestamp = 1'767'225'600,
                  .output = {.durability = Durability::none},
                  .work = {.threads = 1}};
  out.file_uuid.emplace();
  out.file_uuid->fill(0x5A);
  return out;
}

// Elements that count up, legal in every type.
inline Bytes counting(DType dtype, const Shape& shape) {
  Bytes bytes(*shape.byte_length(dtype));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(dtype == DType::boolean || dtype_bits(dtype) < 8 ? i % 2
                                                                                       : i * 7 + 1);
  return bytes;
}

// Keeps what is given to the writer until it commits.
class File {
 public:
  explicit File(std::filesystem::path path, const SaveOptions& save = options())
      : writer_(path, save) {
    writer_.set_training_steps(1000);
  }
  Writer* operator->() { return &writer_; }
  void dense(RegionId region, TensorSpec spec) {
    const Bytes& bytes = kept_.emplace_back(counting(spec.dtype, spec.shape));
    writer_.add_tensor(region, std::move(spec), bytes);
  }
  void tensor(RegionId region, const TensorSpec& spec, const Tensor& tensor) {
    tensors_.push_back(tensor);
    writer_.add_tensor(region, TensorSpec::of(spec.name, tensor.layout(), spec.role),
                       tensors_.back().bytes());
  }
  void connect(const std::string& source, const std::string& target, bool delays) {
    const ConnectionId connection = writer_.add_connection(source, target);
    const Shape shape{2, 2};
    writer_.add_connection_weights(connection, {.dtype = DType::f16, .shape = shape},
                                   kept_.emplace_back(counting(DType::f16, shape)));
    if (!delays) return;
    writer_.add_connection_delays(connection, {.dtype = DType::u8, .shape = shape},
                                  kept_.emplace_back(counting(DType::u8, shape)));
  }
  void commit() { writer_.commit(); }

 private:
  Writer writer_;
  std::deque<Bytes> kept_;
  std::deque<Tensor> tensors_;
};

inline DeltaOptions delta_options() {
  // Vectors are edited byte by byte.
  DeltaOptions out{.save = {.leaves = LeafAlgorithm::sha256,
                            .compression = {.codec = Codec::zstd},
                            .timestamp = 1'767'225'600,
                            .work = {.threads = 1}}};
  out.save.file_uuid.emplace();
  out.pack = false;
  return out;
}

template <typename T>
Tensor bits(DType dtype, const Shape& shape, const std::vector<T>& elements) {
  return Tensor::copy_of(dtype, shape, std::as_bytes(std::span(elements)));
}

// Bytes that a content hash in pieces of another length, or of one piece, tells apart.
inline Tensor long_tensor(std::uint64_t bytes) {
  Tensor tensor = Tensor::zeros(DType::u8, {bytes});
  std::uint64_t i = 0;
  for (std::byte& byte : tensor.mutable_bytes()) {
    byte = static_cast<std::byte>(i * 7 + (i >> 8) * 3 + (i >> 16));
    ++i;
  }
  return tensor;
}

/// Files that hold what an implementer may get wrong.
void write_details(const std::filesystem::path& folder);
/// The same of deltas, and their bases.
void write_chains(const std::filesystem::path& folder);

}  // namespace thalia::test
