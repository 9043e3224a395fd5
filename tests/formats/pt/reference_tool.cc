// What the library makes of .pt files, for a test in Python to compare with PyTorch:
//   dump FILE FOLDER     its tensors as the file has them, and as conversions see them
//   copy IN OUT          through source and sink
//   flat IN OUT          the same, without the metadata
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "formats/pt/opened.h"
#include "formats/pt/sink.h"
#include "json/writer.h"
#include "thalia/error.h"

using namespace thalia;

namespace {

void write_file(const std::filesystem::path& path, ByteSpan bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void describe(JsonWriter& json, const std::string& name, const Tensor& tensor) {
  json.member("name", name).member("dtype", dtype_name(tensor.dtype()));
  json.key("shape").begin_array();
  for (const std::uint64_t extent : tensor.shape().extents()) json.value(extent);
  json.end_array().member("encoding", static_cast<int>(tensor.encoding()));
  json.member("nnz", tensor.nnz()).member("wide", tensor.layout().wide_indices);
}

void dump(const std::filesystem::path& file, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto apart = formats::pt::open_pt_file(file, {});
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("tensors").begin_array();
  for (std::size_t i = 0; i < apart->facts().tensors.size(); ++i) {
    apart->check(i);
    const Tensor elements = apart->read(i);
    write_file(folder / ("t" + std::to_string(i)), elements.bytes());
    json.begin_object();
    describe(json, apart->facts().tensors[i].name, elements);
    json.end_object();
  }
  json.end_array().key("stored").begin_array();
  const auto source = formats::pt::open_pt_file(file, {.shared_memory = true});
  for (std::size_t i = 0; i < source->facts().tensors.size(); ++i) {
    source->check(i);
    const Tensor elements = source->read(i);
    write_file(folder / ("s" + std::to_string(i)), elements.bytes());
    json.begin_object();
    describe(json, source->facts().tensors[i].name, elements);
    json.end_object();
  }
  json.end_array().key("losses").begin_array();
  for (const std::string& loss : source->facts().losses) json.value(loss);
  json.end_array().key("metadata").raw(source->facts().metadata).end_object();
  write_file(folder / "index.json", as_byte_span(text));
}

void copy(const std::filesystem::path& from, const std::filesystem::path& to, bool flat) {
  const auto source = formats::pt::open_pt_file(from, {.shared_memory = true});
  formats::SinkInput input{.metadata = flat ? "{}" : source->facts().metadata};
  for (const AnyTensor& tensor : source->facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  formats::SinkOptions options;
  options.announce = [](const std::vector<std::string>& losses) {
    for (const std::string& loss : losses) std::cout << loss << '\n';
  };
  formats::pt::write_pt(to, input, options, [&](std::size_t i, const formats::PieceSink& sink) {
    // In pieces that end anywhere.
    const Tensor tensor = source->read(i);
    for (ByteSpan rest = tensor.bytes(); !rest.empty();) {
      const std::size_t taken = std::min<std::size_t>(rest.size(), 1001);
      sink(rest.first(taken));
      rest = rest.subspan(taken);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc == 4 ? argv[1] : "";
  try {
    if (command == "dump") {
      dump(argv[2], argv[3]);
    } else if (command == "copy" || command == "flat") {
      copy(argv[2], argv[3], command == "flat");
    } else {
      return 2;
    }
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
