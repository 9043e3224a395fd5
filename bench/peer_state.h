// What peer_side saves and loads: a state in private memory, as a trainer has it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/types.h"
#include "thalia/writer.h"

namespace thalia::bench {

/// Memory whose pages are untouched.
class TensorMemory {
 public:
  /// Aligned to 64 bytes, as tensors of the usual frameworks are.
  explicit TensorMemory(std::size_t size) : TensorMemory(size, std::align_val_t{64}) {}
  /// On a page, as a server's pinned buffers are; in huge pages if there are any.
  static TensorMemory pages(std::size_t size);
  MutableByteSpan bytes() const { return {memory_.get(), size_}; }

 private:
  TensorMemory(std::size_t size, std::align_val_t alignment)
      : memory_(static_cast<std::byte*>(::operator new(size, alignment)), Free{alignment}),
        size_(size) {}
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
    std::align_val_t alignment;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

struct PeerTensor {
  std::string name;
  DType dtype;
  Shape shape;
  TensorMemory memory;
};

/// Writes `count` tensors of `tensor_bytes` of normal weights as safetensors and, unless that path
/// is empty, as .thalia. `dtype` is f32 or bf16.
void make_files(DType dtype, std::uint64_t count, std::uint64_t tensor_bytes,
                const std::filesystem::path& safetensors, const std::filesystem::path& thalia);

class PeerState {
 public:
  PeerState() = default;
  /// Copies of the tensors of a safetensors file.
  explicit PeerState(const std::filesystem::path& safetensors);

  const std::vector<PeerTensor>& tensors() const { return tensors_; }
  /// A writer that has the tensors declared in one region "model".
  Writer writer(const std::filesystem::path& path, const SaveOptions& options) const;

 private:
  std::vector<PeerTensor> tensors_;
};

enum class Load {
  views,          ///< a byte of each page of the views is read
  copy,           ///< TensorView::read() into memory allocated for it
  stream,         ///< StreamReader into memory allocated for it
  copy_in_place,  ///< the same two into memory that was written to before
  stream_in_place,
};

/// Loads .thalia files; memory that was written to before is kept from one to the next.
class PeerLoader {
 public:
  /// Seconds.
  double load(const std::filesystem::path& path, Load how, Verification verification);
  void forget() { target_.clear(); }

 private:
  std::vector<TensorMemory> target_;
};

}  // namespace thalia::bench
