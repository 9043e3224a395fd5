// Memory is allocated and touched before the clock starts, except where a trainer would allocate
// while it loads: then page faults are part of the time, for peers as well.
#include "peer_state.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "floors.h"
#include "measure/samples.h"
#include "scratch.h"
#include "thalia/formats/safetensors.h"
#include "thalia/reader.h"
#include "thalia/stream.h"

namespace thalia::bench {
namespace {

void make_files_of(ByteSpan payload, DType dtype, std::uint64_t tensor_bytes,
                   const std::filesystem::path& safetensors, const std::filesystem::path& thalia) {
  if (!thalia.empty()) measure::save(thalia, payload, dtype, tensor_bytes);
  std::vector<NamedArray> tensors;
  for (std::uint64_t at = 0; at < payload.size(); at += tensor_bytes) {
    tensors.push_back({.name = measure::tensor_name(at / tensor_bytes),
                       .dtype = dtype,
                       .shape = {tensor_bytes * 8 / dtype_bits(dtype)},
                       .bytes = payload.subspan(at, tensor_bytes)});
  }
  save_safetensors(safetensors, std::move(tensors), std::nullopt, {.durability = Durability::none});
}

}  // namespace

void make_files(DType dtype, std::uint64_t count, std::uint64_t tensor_bytes,
                const std::filesystem::path& safetensors, const std::filesystem::path& thalia) {
  if (dtype == DType::f32) {
    const auto weights = measure::normal_f32(count * tensor_bytes);
    make_files_of(as_byte_span(weights), dtype, tensor_bytes, safetensors, thalia);
  } else {
    const auto weights = measure::normal_bf16(count * tensor_bytes);
    make_files_of(as_byte_span(weights), dtype, tensor_bytes, safetensors, thalia);
  }
}

PeerState::PeerState(const std::filesystem::path& safetensors) {
  const SafetensorsFile file = SafetensorsFile::open(safetensors);
  tensors_.reserve(file.tensors().size());
  for (const NamedArray& tensor : file.tensors()) {
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

TensorMemory TensorMemory::pages(std::size_t size) {
  constexpr std::size_t kHugePage = 2 << 20;
  TensorMemory memory(size, std::align_val_t{size < kHugePage ? 4096 : kHugePage});
  if (size >= kHugePage) ::madvise(memory.memory_.get(), size, MADV_HUGEPAGE);
  return memory;
}

double PeerLoader::load(const std::filesystem::path& path, Load how, Verification verification) {
  const bool in_place = how == Load::copy_in_place || how == Load::stream_in_place;
  const bool streams = how == Load::stream || how == Load::stream_in_place;
  std::vector<TensorMemory> fresh;
  if (in_place && target_.empty()) {
    const Reader reader = Reader::open(path, {.verification = Verification::off});
    const RegionView region = reader.region("model");
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      target_.push_back(TensorMemory::pages(region.tensor(i).logical_bytes()));
      // Writing to it once is what makes it memory that is used again.
      std::ranges::fill(target_.back().bytes(), std::byte{0});
    }
  }
  std::size_t next = 0;
  const auto memory_for = [&](const TensorView&, std::uint64_t bytes) -> MutableByteSpan {
    if (in_place) return target_[next++].bytes();
    fresh.push_back(TensorMemory::pages(bytes));
    return fresh.back().bytes();
  };

  std::vector<ByteSpan> loaded;
  const Stopwatch watch;
  const Reader reader = Reader::open(path, {.verification = verification});
  const RegionView region = reader.region("model");
  if (streams) {
    StreamReader stream(reader, {&region, 1}, {.destination = memory_for});
    while (const auto tensor = stream.next()) loaded.push_back(tensor->bytes);
  } else {
    for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
      const TensorView tensor = region.tensor(i);
      if (how == Load::views) {
        loaded.push_back(tensor.bytes());
      } else {
        const MutableByteSpan memory = memory_for(tensor, tensor.logical_bytes());
        tensor.read(memory);
        loaded.push_back(memory);
      }
    }
  }
  // Once all are there, as the peers do.
  for (const ByteSpan tensor : loaded) touch_pages(tensor);
  return watch.seconds();
}

}  // namespace thalia::bench
