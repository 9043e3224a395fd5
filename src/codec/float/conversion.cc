// Picks the kernel for a pair of types and sets the floating point unit up for it. Every pair is
// rounded once: eight have a kernel of their own. The other four, from f16 or bf16 to each other or
// to f64, go through f32, which holds each of their numbers exactly.
#include "codec/float/conversion.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fail.h"
#include "codec/cpu/processor.h"
#include "codec/float/environment.h"

namespace thalia::codec {
namespace {

using Convert = FloatKernels::Convert;

// nullptr if there is no kernel for the pair. The types are convertible and differ.
Convert find_kernel(const FloatKernels& kernels, DType from, DType to) {
  if (from == DType::f32) {
    return to == DType::f16    ? kernels.f32_to_f16
           : to == DType::bf16 ? kernels.f32_to_bf16
                               : kernels.f32_to_f64;
  }
  if (from == DType::f64) {
    return to == DType::f16    ? kernels.f64_to_f16
           : to == DType::bf16 ? kernels.f64_to_bf16
                               : kernels.f64_to_f32;
  }
  if (to != DType::f32) return nullptr;
  return from == DType::f16 ? kernels.f16_to_f32 : kernels.bf16_to_f32;
}

// From f16 or bf16: the first step is exact, so only the second one rounds. A block of f32 stays in
// the first cache between the two.
void convert_through_f32(const FloatKernels& kernels, DType from, DType to, ByteSpan in,
                         std::byte* out, std::size_t count) {
  constexpr std::size_t kBlock = 1024;
  std::array<std::byte, kBlock * sizeof(float)> block;
  const Convert first = find_kernel(kernels, from, DType::f32);
  const Convert second = find_kernel(kernels, DType::f32, to);
  const std::size_t from_bytes = dtype_bits(from) / 8, to_bytes = dtype_bits(to) / 8;
  for (std::size_t i = 0; i < count; i += kBlock) {
    const std::size_t n = std::min(kBlock, count - i);
    first(in.data() + i * from_bytes, block.data(), n);
    second(block.data(), out + i * to_bytes, n);
  }
}

void check_convertible(std::string_view field, DType dtype) {
  if (is_convertible(dtype)) return;
  fail_argument(ErrorCode::dtype_mismatch, field, std::string(dtype_name(dtype)),
                "f32, f64, f16, bf16");
}

}  // namespace

#ifdef __x86_64__
bool has_instruction_set(InstructionSet set) noexcept {
  if (set == InstructionSet::portable) return true;
  const Processor& here = processor();
  if (!here.f16c) return false;
  return set == InstructionSet::f16c || here.avx512f;
}

const FloatKernels& float_kernels(InstructionSet set) noexcept {
  return set == InstructionSet::avx512 ? kAvx512Kernels
         : set == InstructionSet::f16c ? kF16cKernels
                                       : kPortableKernels;
}
#else
bool has_instruction_set(InstructionSet set) noexcept {
  return set == InstructionSet::portable;
}

const FloatKernels& float_kernels(InstructionSet) noexcept {
  return kPortableKernels;
}
#endif

InstructionSet fastest_instruction_set() noexcept {
  static const InstructionSet fastest_here = [] {
    InstructionSet fastest = InstructionSet::portable;
    for (const InstructionSet set : kInstructionSets)
      if (has_instruction_set(set)) fastest = set;
    return fastest;
  }();
  return fastest_here;
}

bool is_convertible(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

std::size_t checked_count(DType from, DType to, std::size_t in_bytes, std::size_t out_bytes) {
  check_convertible("from", from);
  check_convertible("to", to);
  const std::size_t from_bytes = dtype_bits(from) / 8, to_bytes = dtype_bits(to) / 8;
  const std::size_t count = in_bytes / from_bytes;
  if (in_bytes % from_bytes != 0) {
    fail_argument(ErrorCode::size_mismatch, "in", fmt::format("{} bytes", in_bytes),
                  fmt::format("whole elements of {} bytes", from_bytes));
  }
  if (out_bytes % to_bytes != 0 || out_bytes / to_bytes != count) {
    fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", out_bytes),
                  fmt::format("{} elements of {} bytes", count, to_bytes));
  }
  return count;
}

void convert_elements(DType from, DType to, ByteSpan in, MutableByteSpan out, InstructionSet set) {
  const std::size_t count = checked_count(from, to, in.size(), out.size());
  if (count == 0) return;
  if (from == to) {
    std::memcpy(out.data(), in.data(), in.size());
    return;
  }
  const StandardEnvironment environment;
  const FloatKernels& kernels = float_kernels(set);
  if (const Convert convert = find_kernel(kernels, from, to)) {
    convert(in.data(), out.data(), count);
  } else {
    convert_through_f32(kernels, from, to, in, out.data(), count);
  }
}

}  // namespace thalia::codec
