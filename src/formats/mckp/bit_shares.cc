// An MCKP tensor has one minimum and one scale, so what can differ is the width of a whole tensor.
// Every tensor's weighted error is measured for each width, and bits are spent where they take most
// error away: as in a quantized tensor of groups, only that each has 1 bit at least.
#include "formats/mckp/bit_shares.h"

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "formats/mckp/job.h"
#include "state/quantize/bit_allocation.h"
#include "state/quantize/importance.h"
#include "thalia/error.h"

namespace thalia::formats {

std::map<std::string, unsigned, std::less<>> bits_by_sensitivity(
    const Checkpoint& checkpoint, const MckpQuantizationOptions& options,
    const decltype(QuantizationConfig::sensitivity)& sensitivity, unsigned threads) {
  std::vector<const std::string*> names;
  std::vector<double> elements;
  std::vector<state::Distortions> errors;  // [i] of i + 1 bits
  double all = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!tensor.is_dense() || !mckp_quantizes(name, tensor, options)) continue;
    std::vector<double> importance;
    if (const auto given = sensitivity(name, tensor)) {
      try {
        importance = state::importance_from(*given, tensor.element_count());
      } catch (Error& error) {
        error.add_tensor(printable(name));
        throw;
      }
    }
    const auto found = state::uniform_errors(tensor.dtype(), tensor.bytes(), importance, threads);
    if (!found) continue;  // not finite: it is stored exactly
    state::Distortions shifted{};
    std::copy(found->begin() + 1, found->end(), shifted.begin());
    shifted.back() = *(shifted.end() - 2);  // 9 bits are no better than 8
    names.push_back(&name);
    elements.push_back(static_cast<double>(tensor.element_count()));
    errors.push_back(shifted);
    all += elements.back();
  }
  const auto cost = [&](std::uint64_t i, unsigned bits) { return elements[i] * bits; };
  const std::vector<std::uint8_t> more = state::spend_bits(errors, cost, (options.bits - 1) * all);
  std::map<std::string, unsigned, std::less<>> bits;
  for (std::size_t i = 0; i < names.size(); ++i) bits.emplace(*names[i], more[i] + 1u);
  return bits;
}

}  // namespace thalia::formats
