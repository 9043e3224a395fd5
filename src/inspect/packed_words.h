// Weights that a quantizer packed into integers: how many there are, as the tables tell it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "thalia/formats/any_tensor.h"

namespace thalia::inspect {

/// GPTQ and AWQ (qweight, qzeros, scales), bitsandbytes (weight beside absmax), compressed-tensors
/// (weight_packed), MXFP4 (_blocks beside _scales), NVFP4 (weight beside weight_scale). An integer
/// in such a tensor holds several weights, and the tensors beside it are no weights.
class PackedWords {
 public:
  struct Count {
    std::uint64_t parameters = 0;  ///< of all tensors
    std::uint64_t unknown = 0;     ///< packed tensors whose width no table tells: not counted
  };

  /// Keeps what tells later which tensors belong together.
  void add(const AnyTensor& tensor);
  Count count() const;

 private:
  struct Part {
    DType dtype{};
    std::uint64_t elements = 0;
    std::uint64_t columns = 0;  ///< the last extent; 0 of a scalar
    bool is_parameter = false;
  };
  const Part* find(std::string_view stem, std::string_view last) const;
  std::optional<std::uint64_t> packed(std::string_view stem, std::string_view last,
                                      const Part& part, bool& is_packed) const;
  bool is_companion(std::string_view stem, std::string_view last) const;

  std::unordered_map<std::string, Part> parts_;  ///< integers, and what stands beside them
  std::uint64_t others_ = 0;                     ///< parameters of all other tensors
};

}  // namespace thalia::inspect
