// A quantizer gives a layer several tensors with one stem: "h.0.mlp.qweight", "h.0.mlp.scales". All
// tensors have to be known before it is known what one of them is, so those that may be parts are
// kept. Others are counted at once: a file may have a million tensors.
#include "inspect/file_facts.h"

#include <algorithm>
#include <array>
#include <functional>

#include "thalia/error.h"
#include "thalia/text.h"
#include "thalia/types.h"

namespace thalia::inspect {

namespace {

constexpr unsigned kWordBits = 32;

// What lies beside packed weights, and is not one of them.
constexpr std::array<std::string_view, 15> kCompanions{
    "scales",           "qzeros",       "g_idx",
    "absmax",           "quant_map",    "nested_absmax",
    "nested_quant_map", "weight_scale", "weight_scale_2",
    "input_scale",      "weight_shape", "SCB",
    "biases",           "scale",        "zero"};

struct Names {
  std::string_view stem;
  std::string_view last;
};

// "h.0.weight.absmax": the stem is "h.0.weight".
Names split(std::string_view name) {
  const std::size_t end = name.rfind('.');
  if (end == std::string_view::npos) return {{}, name};
  return {name.substr(0, end), name.substr(end + 1)};
}

bool is_integer(DType dtype) {
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::u16 ||
         dtype == DType::i32 || dtype == DType::u32 || dtype == DType::i64 || dtype == DType::u64;
}

// Whether it is learned: by its role, or by its name where that tells more.
bool is_learned(const AnyTensor& tensor) {
  const unsigned rank = tensor.layout.shape.rank();
  const Role known =
      tensor.role ? likely_role(*tensor.role, tensor.name, rank) : role_of_name(tensor.name, rank);
  return is_weights(known) || known == Role::bias || known == Role::normalization;
}

bool may_be_companion(std::string_view last) {
  return std::ranges::find(kCompanions, last) != kCompanions.end() || last.ends_with("_scales") ||
         last.starts_with("bitsandbytes__");
}

}  // namespace

void PackedWords::add(const AnyTensor& tensor) {
  const std::uint64_t elements = tensor.elements();
  const bool is_parameter = is_learned(tensor);
  const std::string_view last =
      std::string_view(tensor.name).substr(tensor.name.find_last_of("./") + 1);
  // Codes that a file tells the width of are no words.
  const bool may_be_packed = is_integer(tensor.layout.dtype) && !tensor.bits && tensor.type.empty();
  if (!may_be_packed && !may_be_companion(last)) {
    if (is_parameter) others_ += elements;
    return;
  }
  const Shape& shape = tensor.layout.shape;
  std::string name = tensor.region.empty() ? tensor.name : tensor.region + "." + tensor.name;
  std::ranges::replace(name, '/', '.');
  parts_.insert_or_assign(std::move(name),
                          Part{.dtype = tensor.layout.dtype,
                               .elements = elements,
                               .columns = shape.rank() == 0 ? 0 : shape[shape.rank() - 1],
                               .is_parameter = is_parameter});
}

const PackedWords::Part* PackedWords::find(std::string_view stem, std::string_view last) const {
  std::string name(stem);
  if (!name.empty()) name += '.';
  const auto found = parts_.find(name.append(last));
  return found == parts_.end() ? nullptr : &found->second;
}

// The weights in a tensor of words; nullopt of one whose width is not known, if `is_packed`.
std::optional<std::uint64_t> PackedWords::packed(std::string_view stem, std::string_view last,
                                                 const Part& part, bool& is_packed) const {
  is_packed = true;
  const bool is_word = part.dtype == DType::i32 || part.dtype == DType::u32;
  if (last == "qweight" && is_word) {
    // Zero points are packed as weights are, one for each column of the scales.
    const Part* const zeros = find(stem, "qzeros");
    const Part* const scales = find(stem, "scales");
    if (zeros == nullptr || scales == nullptr || zeros->columns == 0) return std::nullopt;
    const std::uint64_t in_word = scales->columns / zeros->columns;
    if (in_word == 0 || in_word > kWordBits) return std::nullopt;
    // 3 bits, of which a word has not a whole number: 32 of them lie in three words.
    if (scales->columns % zeros->columns != 0) return part.elements / 3 * kWordBits;
    return part.elements * in_word;
  }
  // MLX and HQQ have codes of 2 to 8 bits, whose width follows from nothing in the file.
  if (last == "W_q" || (last == "weight" && is_word && find(stem, "scales") != nullptr))
    return std::nullopt;
  if (last == "weight_packed") {
    if (part.dtype == DType::u8) return 2 * part.elements;
    return std::nullopt;
  }
  if (part.dtype == DType::u8) {
    std::string weight(stem);
    if (!weight.empty()) weight += '.';
    weight.append(last);
    if (find(weight, "absmax") != nullptr || find(weight, "quant_map") != nullptr)
      return 2 * part.elements;
    if (last.ends_with("_blocks")) {
      const std::string scales = std::string(last.substr(0, last.size() - 7)) + "_scales";
      if (find(stem, scales) != nullptr) return 2 * part.elements;
    }
    if (last == "weight" && find(stem, "weight_scale") != nullptr &&
        find(stem, "weight_scale_2") != nullptr)
      return 2 * part.elements;
  }
  is_packed = false;
  return part.is_parameter ? part.elements : 0;
}

bool PackedWords::is_companion(std::string_view stem, std::string_view last) const {
  if (!may_be_companion(last)) return false;
  const auto has = [&](std::string_view name) { return find(stem, name) != nullptr; };
  if (last.ends_with("_scales"))
    return has(std::string(last.substr(0, last.size() - 7)) + "_blocks");
  // For bitsandbytes the stem is the weight itself: "q.weight.quant_state.bitsandbytes__nf4".
  if (last.starts_with("bitsandbytes__")) return find({}, split(stem).stem) != nullptr;
  // The words themselves may be in another file of the model.
  if (last == "qzeros" || last == "g_idx" || (last == "scales" && has("qzeros"))) return true;
  return has("qweight") || has("W_q") || has("weight_packed") || has("weight") ||
         find({}, stem) != nullptr;
}

PackedWords::Count PackedWords::count() const {
  Count count{.parameters = others_};
  for (const auto& [name, part] : parts_) {
    const auto [stem, last] = split(name);
    if (is_companion(stem, last)) continue;
    bool is_packed = false;
    if (const auto weights = packed(stem, last, part, is_packed)) {
      count.parameters += *weights;
    } else {
      ++count.unknown;
    }
  }
  return count;
}

namespace {

// A sum with something unknown is unknown.
void add_to(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& bytes) {
  if (sum && bytes) {
    *sum += *bytes;
  } else {
    sum.reset();
  }
}

}  // namespace

std::optional<std::uint64_t> value_bytes_of(const AnyTensor& tensor) noexcept {
  switch (tensor.layout.encoding) {
    case Encoding::dense:
    case Encoding::csr:
    case Encoding::coo:
    case Encoding::xor_base:
      return tensor.logical_bytes;
    case Encoding::quantized:
      return tensor.layout.shape.byte_length(tensor.layout.dtype);
    case Encoding::same_as_base:
    case Encoding::sparse_delta:
    case Encoding::low_rank_delta:
    case Encoding::step_delta:
      break;
  }
  return std::nullopt;
}

void TensorTotals::add(const AnyTensor& tensor) {
  DTypeTotal& of_dtype = dtypes_[static_cast<std::uint8_t>(tensor.layout.dtype)];
  of_dtype.dtype = tensor.layout.dtype;
  ++of_dtype.tensors;
  of_dtype.elements += tensor.elements();
  of_dtype.logical_bytes += tensor.logical_bytes;
  ++tensors_;
  elements_ += tensor.elements();
  parameters_.add(tensor);
  logical_bytes_ += tensor.logical_bytes;
  add_to(stored_bytes_, tensor.stored_bytes);
  add_to(value_bytes_, value_bytes_of(tensor));
  if (tensor.is_compressed()) ++compressed_;
  if (tensor.bits) ++quantized_;
  if (tensor.quantization) {
    const TensorQuantization& known = *tensor.quantization;
    lossy_generation_ = std::max(lossy_generation_.value_or(0), known.lossy_generation);
    max_lossy_generations_ =
        std::max(max_lossy_generations_.value_or(0), known.max_lossy_generations);
  }
  codecs_.insert(tensor.codecs.begin(), tensor.codecs.end());
}

std::vector<DTypeTotal> TensorTotals::dtypes() const {
  std::vector<DTypeTotal> there;
  for (const DTypeTotal& total : dtypes_)
    if (total.tensors > 0) there.push_back(total);
  // Stable, so that dtypes of as many elements keep the order of their codes.
  std::ranges::stable_sort(there, std::ranges::greater(), &DTypeTotal::elements);
  return there;
}

std::vector<std::string_view> TensorTotals::codec_names() const {
  std::vector<std::string_view> names;
  for (const Codec codec : codecs_) names.push_back(codec_name(codec));
  return names;
}

std::string uuid_text(const Uuid& uuid) {
  std::string text = hex(uuid);
  for (const std::size_t position : {20, 16, 12, 8}) text.insert(position, 1, '-');
  return text;
}

std::optional<std::vector<GrowthEvent>> growth_events(std::string_view metadata) {
  if (metadata.empty()) return std::vector<GrowthEvent>();
  try {
    return parse_growth_history(metadata);
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

}  // namespace thalia::inspect
