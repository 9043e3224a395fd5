// Takes any bytes as the tree in the metadata of a file with some tensors. If it fits them, each
// tensor of it can be read and has the size that it is said to have, and no policy's change of
// types breaks it.

#include <memory>
#include <string>

#include "formats/pickle/view_types.h"
#include "formats/pt/opened_tree.h"
#include "fuzz/fuzz_target.h"
#include "thalia/error.h"
#include "thalia/state/value.h"

using namespace thalia;

namespace {
namespace pt_tree_target {

using namespace thalia::formats;

class FewTensors final : public formats::OpenedFile {
 public:
  explicit FewTensors(std::string metadata) {
    facts_.metadata = std::move(metadata);
    add("w", Tensor::zeros(DType::f32, Shape({4, 6})));
    add("b", Tensor::zeros(DType::u8, Shape({48})));
    add("q", Tensor::zeros(DType::i8, Shape({2, 3})));
    add("s", Tensor::zeros(DType::f64, Shape({2})));
    add("z", Tensor::zeros(DType::i64, Shape({2})));
  }
  Tensor read(std::size_t i) const override { return tensors_[i]; }

 private:
  void add(std::string name, Tensor tensor) {
    facts_.tensors.push_back({.name = std::move(name), .layout = tensor.layout()});
    tensors_.push_back(std::move(tensor));
  }
  std::vector<Tensor> tensors_;
};

void run(const std::uint8_t* data, std::size_t size) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 22;
  limits.max_json_bytes = 1 << 20;
  const std::string tree(reinterpret_cast<const char*>(data), size);
  try {
    const auto source = std::make_shared<const FewTensors>(
        R"({"thalia_checkpoint":{"version":1,"tree":)" + tree + "}}");
    const auto apart = pt::tree_tensors(source, limits);
    if (!apart) return;
    const OpenedFacts& facts = apart->source->facts();
    FUZZ_REQUIRE(apart->stored.size() == facts.tensors.size());
    for (std::size_t i = 0; i < facts.tensors.size(); ++i) {
      FUZZ_REQUIRE(apart->stored[i] < source->facts().tensors.size());
      try {
        FUZZ_REQUIRE(apart->source->read(i).layout() == facts.tensors[i].layout);
      } catch (const FormatError& error) {
        FUZZ_REQUIRE(error.code() == ErrorCode::limit_exceeded);
      }
    }
    Value saved = parse_json(source->facts().metadata, limits);
    pt::change_view_types(saved, {{"w", {DType::f32, DType::bf16}}});
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
}

}  // namespace pt_tree_target
}  // namespace

FUZZ_TARGET(pt_tree)
