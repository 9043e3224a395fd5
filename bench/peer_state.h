// What peer_side saves and loads: a state in private memory, as a trainer has it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/shape.h"
#include "thalia/writer.h"

namespace thalia::bench {

/// Memory as tensors of the usual frameworks have it: aligned to 64 bytes, its pages untouched.
class TensorMemory {
 public:
  explicit TensorMemory(std::size_t size)
      : memory_(static_cast<std::byte*>(::operator new(size, kAlignment))), size_(size) {}
  MutableByteSpan bytes() const { return {memory_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
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

enum class LoadInto {
  views,   ///< nowhere: a byte of each page of the views is read
  fresh,   ///< memory allocated for it
  target,  ///< memory that was written to before
};

/// Loads .thalia files; the target's memory is kept from one to the next.
class PeerLoader {
 public:
  double load(const std::filesystem::path& path, LoadInto into, Verification verification);
  void forget() { target_.clear(); }

 private:
  std::vector<TensorMemory> target_;
};

}  // namespace thalia::bench
