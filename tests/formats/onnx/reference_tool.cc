// What onnx_reference_test.py asks of the library:
//   reference_tool dump MODEL OUT        each tensor into OUT/NUMBER, and a line of JSON about it
//   reference_tool copy IN OUT           what a conversion through a .thalia file writes
//   reference_tool save OUT [external]   a model of every type
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "formats/onnx/file.h"
#include "formats/onnx/opened.h"
#include "formats/onnx/sink.h"
#include "json/writer.h"
#include "support/bytes.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/onnx.h"

namespace {

using namespace thalia;

void dump(const std::filesystem::path& model, const std::filesystem::path& out) {
  const formats::onnx::OnnxFile file = formats::onnx::OnnxFile::open(model);
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const formats::onnx::OnnxTensor& described = file.tensors()[i];
    const Tensor tensor = file.read(i).to_dense();
    OutputFile bytes(out / std::to_string(i), {.durability = Durability::none});
    bytes.write(tensor.bytes());
    bytes.commit();
    std::string line;
    JsonWriter json(line);
    json.begin_object()
        .member("name", described.name)
        .member("dtype", dtype_name(tensor.dtype()))
        .member("initialiser", described.initialiser)
        .member("nnz", described.layout.nnz)
        .key("shape")
        .begin_array();
    for (const std::uint64_t extent : tensor.shape().extents()) json.value(extent);
    json.end_array().end_object();
    std::puts(line.c_str());
  }
}

void copy_model(const std::filesystem::path& from, const char* to) {
  const auto source = formats::open_onnx_file(from, {});
  formats::SinkInput input{.metadata = source->facts().metadata,
                           .training_steps = source->facts().training_steps};
  for (const auto& tensor : source->facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  formats::SinkOptions options;
  options.save.output.durability = Durability::none;
  formats::write_onnx(to, input, options, [&](std::size_t i, const formats::PieceSink& sink) {
    source->visit(i, sink);
  });
}

// Every type, of 15 elements; shapes without elements and without extents; sparse ones.
void save(const char* out, bool external) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  const auto add = [&](std::string name, DType dtype, const Shape& shape) {
    std::vector<std::byte> bytes =
        test::random_bytes(*shape.byte_length(dtype), tensors.size() + 1);
    const unsigned rest = static_cast<unsigned>(*shape.element_count() * dtype_bits(dtype) % 8);
    for (std::byte& byte : bytes)
      if (dtype == DType::boolean) byte &= std::byte{1};
    if (rest != 0) bytes.back() &= static_cast<std::byte>((1u << rest) - 1);
    tensors.emplace_back(std::move(name), Tensor::copy_of(dtype, shape, bytes));
  };
  for (unsigned code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype != DType::ternary && dtype != DType::binary)
      add(std::string(dtype_name(dtype)), dtype, {5, 3});
  }
  add("scalar", DType::f32, {});
  add("empty", DType::i64, {4, 0});
  add("large", DType::f32, {33, 100});
  add("larger", DType::f16, {3, 4000});
  std::vector<float> elements(60);
  for (const std::size_t i : {3, 17, 59}) elements[i] = 0.5f + static_cast<float>(i);
  const Tensor dense = Tensor::copy_of({3, 4, 5}, elements);
  tensors.emplace_back("sparse", dense.to_coo());
  tensors.emplace_back("matrix", Tensor::copy_of({6, 10}, elements).to_csr());
  tensors.emplace_back("none", Tensor::zeros(DType::f64, {2, 2}).to_coo());
  save_onnx(out, tensors, {{"key", "value"}, {"names", "ünïcode"}},
            {.external_data = external ? std::optional(true) : std::nullopt,
             .output = {.durability = Durability::none}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (argc == 4 && command == "dump") return dump(argv[2], argv[3]), 0;
    if (argc == 4 && command == "copy") return copy_model(argv[2], argv[3]), 0;
    if ((argc == 3 || argc == 4) && command == "save") return save(argv[2], argc == 4), 0;
  } catch (const thalia::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fputs("usage: reference_tool dump MODEL OUT | copy IN OUT | save OUT [external]\n", stderr);
  return 2;
}
