#include "peer_state.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "floors.h"
#include "samples.h"
#include "scratch.h"
#include "thalia/reader.h"
#include "thalia/safetensors.h"

namespace thalia::bench {
namespace {

void make_files_of(ByteSpan payload, DType dtype, std::uint64_t tensor_bytes,
                   const std::filesystem::path& safetensors, const std::filesystem::path& thalia) {
  if (!thalia.empty()) bench::save(thalia, payload, dtype, tensor_bytes);
  std::vector<SafetensorsTensor> tensors;
  for (std::uint64_t at = 0; at < payload.size(); at += tensor_bytes) {
    tensors.push_back({.name = tensor_name(at / tensor_bytes),
                       .dtype = dtype,
                       .shape = {tensor_bytes * 8 / dtype_bits(dtype)},
                       .bytes = payload.subspan(at, tensor_bytes)});
  }
  save_safetensors(safetensors, std::move(tensors), std::nullopt, Durability::none);
}

}  // namespace

void make_files(DType dtype, std::uint64_t count, std::uint64_t tensor_bytes,
                const std::filesystem::path& safetensors, const std::filesystem::path& thalia) {
  if (dtype == DType::f32) {
    const auto weights = normal_f32(count * tensor_bytes);
    make_files_of(as_byte_span(weights), dtype, tensor_bytes, safetensors, thalia);
  } else {
    const auto weights = normal_bf16(count * tensor_bytes);
    make_files_of(as_byte_span(weights), dtype, tensor_bytes, safetensors, thalia);
  }
}

PeerState::PeerState(const std::filesystem::path& safetensors) {
  const SafetensorsFile file = SafetensorsFile::open(safetensors);
  tensors_.reserve(file.tensors().size());
  for (const SafetensorsTensor& tensor : file.tensors()) {
    tensors_.push_back(
        {tensor.name, tensor.dtype, tensor.shape, TensorMemory(tensor.bytes.size())});
    copy(tensor.bytes, tensors_.back().memory.bytes());
  }
}

Writer PeerState::writer(const std::filesystem::path& path, const SaveOptions& options) const {
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "model"});
  for (const PeerTensor& tensor : tensors_) {
    writer.add_tensor(region, {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape},
                      tensor.memory.bytes());
  }
  return writer;
}

double PeerLoader::load(const std::filesystem::path& path, LoadInto into,
                        Verification verification) {
  std::vector<TensorMemory> fresh;
  std::vector<TensorMemory>& memory = into == LoadInto::target ? target_ : fresh;
  if (into == LoadInto::target && target_.empty()) {
    const Reader reader = Reader::open(path, {.verification = Verification::off});
    const RegionView region = reader.region("model");
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const MutableByteSpan bytes = target_.emplace_back(region.tensor(i).logical_bytes()).bytes();
      std::memset(bytes.data(), 0, bytes.size());
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const Reader reader = Reader::open(path, {.verification = verification});
  const RegionView region = reader.region("model");
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
    const TensorView tensor = region.tensor(i);
    if (into == LoadInto::views) {
      touch_pages(tensor.bytes());
      continue;
    }
    if (into == LoadInto::fresh) fresh.emplace_back(tensor.logical_bytes());
    tensor.read(memory[i].bytes());
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace thalia::bench
