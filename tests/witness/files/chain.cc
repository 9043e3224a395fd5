// Two chains of deltas of one course of states, raw and compressed, and beside them the tensors of
// each state.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "parts.h"
#include "state/delta/sample.h"
#include "state/tensor/conversion.h"
#include "thalia/state/delta.h"

namespace witness::chain {

using namespace thalia;
using namespace thalia::test;

namespace {

namespace fs = std::filesystem;

constexpr int kLinks = 4;

// A tensor after some steps: two elements of five have moved, most of them by little.
Tensor stepped(const Tensor& base, int link) {
  Tensor out = base.owned();
  const MutableByteSpan bytes = out.mutable_bytes();
  const std::size_t width = dtype_bits(out.dtype()) / 8;
  std::mt19937_64 random(static_cast<std::uint64_t>(link));
  for (int step = 0; step < link; ++step) {
    for (std::size_t i = 0; i < bytes.size(); i += width) {
      const std::uint64_t chance = random();
      if (chance % 5 > 1) continue;
      std::uint16_t bits = 0;
      std::memcpy(&bits, bytes.data() + i, width);
      const auto distance =
          static_cast<std::uint16_t>(1 + (chance >> 8 & ((1u << (chance >> 4 & 7)) - 1)));
      bits = static_cast<std::uint16_t>((chance & 0x8000) != 0 ? bits + distance : bits - distance);
      std::memcpy(bytes.data() + i, &bits, width);
    }
  }
  return out;
}

SampleState state(int link) {
  std::mt19937_64 random(3);
  SampleState out{.regions = {{"a", {}}, {"b", {}}},
                  .steps = static_cast<std::uint64_t>(100 + link)};
  Tensor few = random_tensor(DType::f32, {300, 500}, random);
  for (std::size_t i = 0; i < static_cast<std::size_t>(link) * 5; ++i)
    few.mutable_as<float>()[i * 7001] = 1.5f;
  Tensor moved = normal_tensor({40, 50}, random);
  for (float& value : moved.mutable_as<float>()) value *= 1 + 1e-4f * static_cast<float>(link);
  const auto extent = static_cast<std::uint64_t>(link);
  Tensor grown = Tensor::zeros(DType::f64, {10 + extent, 7, 20 - extent});
  for (std::uint64_t i = 0; i < grown.shape()[0]; ++i) {
    for (std::uint64_t j = 0; j < 7; ++j) {
      for (std::uint64_t k = 0; k < grown.shape()[2]; ++k) {
        grown.mutable_as<double>()[(i * 7 + j) * grown.shape()[2] + k] =
            static_cast<double>(i * 1000 + j * 100 + k);
      }
    }
  }
  Tensor sparse = Tensor::zeros(DType::f32, {30, 30});
  for (std::size_t i = 0; i < 200; ++i)
    sparse.mutable_as<float>()[i * 4] =
        static_cast<float>(i) * (1 + 1e-5f * static_cast<float>(link));
  // As a precision policy that changes along a chain leaves it.
  constexpr DType kChanging[] = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::f16};
  Tensor rates = Tensor::zeros(DType::f32, {60, 10 + extent});
  for (std::size_t i = 0; i < rates.element_count(); ++i)
    rates.mutable_as<float>()[i] = i % 50 == 7   ? std::numeric_limits<float>::quiet_NaN()
                                   : i % 50 == 8 ? -1e38f
                                                 : std::sin(static_cast<float>(i)) * 1e-6f;
  auto& a = out.regions["a"];
  a["rates"] = {thalia::state::convert_tensor(rates, kChanging[link], 1)};
  a["same"] = {random_tensor(DType::bf16, {99}, random)};
  a["few"] = {few};
  a["moved"] = {moved};
  a["grown"] = {grown};
  a["csr"] = {sparse.to_csr()};
  a["spikes"] = {random_tensor(DType::binary, {77}, random), Role::region_state};
  // One type of each kind, with NaNs and negative zeros, and steps of every size.
  for (const auto& [name, dtype] :
       {std::pair("bf16", DType::bf16), std::pair("f16", DType::f16),
        std::pair("f8", DType::f8_e4m3), std::pair("f8 fnuz", DType::f8_e5m2fnuz),
        std::pair("f8 e8m0", DType::f8_e8m0), std::pair("i8", DType::i8),
        std::pair("u16", DType::u16)})
    a[name] = {stepped(random_tensor(dtype, {90, 100}, random), link)};
  if (link == 2) a["only here"] = {random_tensor(DType::u8, {30}, random), Role::other};
  if (link >= 3)
    out.regions["c"]["counts"] = {random_tensor(DType::u32, {30}, random), Role::other};
  out.connections[{"a", "b"}] = moved;
  if (link >= 1) out.connections[{"b", "a"}] = Tensor::zeros(DType::f16, {3, 3});
  return out;
}

void write(const fs::path& path, ByteSpan bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write_expected(const fs::path& folder, const SampleState& state) {
  fs::create_directory(folder);
  for (const auto& [region, tensors] : state.regions) {
    for (const auto& [name, sample] : tensors)
      write(folder / (region + "+" + name), sample.tensor.bytes());
  }
  for (const auto& [pair, tensor] : state.connections)
    write(folder / (pair.first + ">" + pair.second + "+weights"), tensor.bytes());
}

void write_chain(const fs::path& folder, const std::string& name, Codec codec, bool pack = false) {
  const auto path = [&](int link) {
    return folder / (name + "-" + std::to_string(link) + ".thalia");
  };
  const SaveOptions options{.leaves = LeafAlgorithm::sha256,  // which need no package
                            .compression = {.codec = codec, .chunk_bytes = 4096},
                            .timestamp = 1};
  save_full(state(0), path(0), options);
  for (int link = 1; link <= kLinks; ++link)
    save_delta(state(link), path(link - 1), path(link), {.save = options, .pack = pack});
}

}  // namespace

void run(const std::filesystem::path& folder) {
  write_chain(folder, "raw", Codec::none);
  write_chain(folder, "zstd", Codec::zstd);
  write_chain(folder, "packed", Codec::zstd, true);
  for (int link = 0; link <= kLinks; ++link)
    write_expected(folder / (std::to_string(link) + ".expected"), state(link));
}

}  // namespace witness::chain
