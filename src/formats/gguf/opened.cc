// The tensors of an open GGUF file for conversions. Elements of blocks are restored a piece at a
// time where a conversion takes them, straight from the mapping.
#include "formats/gguf/opened.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "formats/gguf/source_metadata.h"
#include "formats/gguf/stored_tensor.h"
#include "thalia/formats/gguf.h"

namespace thalia::formats::gguf {
namespace {

// Elements that are restored before they are handed on, for each thread.
constexpr std::size_t kVisitElements = 1u << 18;

GgufFile open_file(const io::InputFile& input, const ReadOptions& read) {
  const auto& file = input.whole(read.input.access, read.work.cancel);
  return GgufFile::from_bytes({.bytes = file->bytes(), .owner = file}, input.path().string(),
                              read.input.limits);
}

class OpenedGguf final : public OpenedFile {
 public:
  OpenedGguf(const io::InputFile& input, const OpenOptions& options)
      : file_(open_file(input, options.chain.read)),
        dequantize_(options.dequantize),
        work_(options.chain.read.work) {
    facts_.version = std::to_string(file_.version());
    facts_.file_bytes = file_.file_bytes();
    std::vector<SourceTensorType> source_types;
    for (const GgufTensor& tensor : file_.tensors()) {
      const bool restored = is_restored(tensor);
      if (restored && !ggml_type_facts(tensor.type)->dequantizes) refuse(input.path(), tensor);
      facts_.tensors.push_back(described(tensor, restored));
      source_types.push_back({tensor.name, restored ? GgmlType::f32 : tensor.type, tensor.shape});
    }
    facts_.metadata = source_metadata_to_json(file_.key_values(), source_types);
    if (const GgufValue* const embedded = file_.find(kEmbeddedMetadata)) {
      if (const auto* const text = std::get_if<std::string>(embedded)) facts_.embedded = *text;
    }
    if (file_.unused_bytes() > 0)
      facts_.losses.push_back(
          fmt::format("{} bytes that belong to no tensor", file_.unused_bytes()));
  }

  // As llama.cpp splits a model. Its numbers begin with 0.
  std::optional<ModelPart> part() const override {
    const auto number = count_of("split.no"), count = count_of("split.count");
    if (!count) return std::nullopt;
    return ModelPart{.number = number.value_or(0) + 1, .count = *count};
  }

  Tensor read(std::size_t i) const override {
    const std::string& name = file_.tensors()[i].name;
    return dequantize_ ? file_.dequantize(name, work_.threads) : file_.read(name);
  }

  Tensor restored(std::size_t i) const override {
    const GgufTensor& tensor = file_.tensors()[i];
    if (!ggml_type_facts(tensor.type)->dequantizes) return read(i);
    return file_.dequantize(tensor.name, work_.threads);
  }

  void visit(std::size_t i, const PieceSink& sink) const override {
    const GgufTensor& tensor = file_.tensors()[i];
    if (!is_restored(tensor)) return sink(tensor.bytes);
    const GgmlTypeFacts& facts = *ggml_type_facts(tensor.type);
    const std::size_t blocks = tensor.bytes.size() / facts.block_bytes;
    const std::size_t per_thread = kVisitElements / facts.block_elements;
    const std::uint64_t in_memory =
        work_.memory_bytes.value_or(kDefaultMemoryBytes) / (kVisitElements * sizeof(float));
    const std::size_t most =
        per_thread * std::clamp<std::uint64_t>(
                         in_memory, 1, resolve_threads(work_.threads, blocks / per_thread + 1));
    std::vector<float> numbers;
    for (std::size_t begin = 0; begin < blocks; begin += most) {
      stop_if_cancelled(work_.cancel);
      const std::size_t count = std::min(most, blocks - begin);
      numbers.resize(count * facts.block_elements);
      dequantize_ggml(tensor.type,
                      tensor.bytes.subspan(begin * facts.block_bytes, count * facts.block_bytes),
                      numbers, work_.threads);
      sink(as_byte_span(numbers));
    }
  }

  /// Any bytes are elements, or blocks: all that can be wrong was checked when the file was opened.
  void check(std::size_t) const override {}

 private:
  // A whole number that is not negative, of whichever type.
  std::optional<std::uint64_t> count_of(std::string_view key) const {
    const GgufValue* const value = file_.find(key);
    if (value == nullptr) return std::nullopt;
    return std::visit(
        [](const auto& number) -> std::optional<std::uint64_t> {
          using Number = std::decay_t<decltype(number)>;
          if constexpr (std::is_integral_v<Number> && !std::is_same_v<Number, bool>) {
            if (std::cmp_greater_equal(number, 0)) return static_cast<std::uint64_t>(number);
          }
          return std::nullopt;
        },
        *value);
  }

  bool is_restored(const GgufTensor& tensor) const {
    return dequantize_ && !ggml_type_facts(tensor.type)->dtype;
  }

  static AnyTensor described(const GgufTensor& tensor, bool restored) {
    const GgmlTypeFacts& facts = *ggml_type_facts(tensor.type);
    const TensorLayout layout =
        restored ? dequantized_layout(tensor.shape) : stored_layout(tensor.type, tensor.shape);
    return {.name = tensor.name,
            .layout = layout,
            .type = restored || facts.dtype ? std::string() : std::string(facts.name),
            .offset = tensor.offset,
            .stored_bytes = tensor.bytes.size(),
            // Others are copied when they are read.
            .in_place = !restored && is_aligned(tensor.bytes, layout.dtype)};
  }

  [[noreturn]] static void refuse(const std::filesystem::path& path, const GgufTensor& tensor) {
    const std::string name(ggml_type_facts(tensor.type)->name);
    throw UnsupportedDtypeError(
        name, "no dequantizing of this type of blocks",
        {.path = path.string(), .tensor = printable(tensor.name), .value = name});
  }

  GgufFile file_;
  bool dequantize_;
  Work work_;
};

}  // namespace

std::shared_ptr<const OpenedFile> open_gguf_file(const io::InputFile& input,
                                                 const OpenOptions& options) {
  return std::make_shared<OpenedGguf>(input, options);
}

}  // namespace thalia::formats::gguf
