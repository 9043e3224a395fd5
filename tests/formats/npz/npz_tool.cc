// What numpy_test.py asks of the library:
//   npz_tool dump FILE FOLDER          a JSON line for each array; its row-major bytes as FOLDER/N
//   npz_tool rewrite IN OUT [CODEC]    through source and sink, by the names' ends; losses a line
//   each npz_tool judge FILE…               a line for each file: good, or why it is refused
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "formats/npz/opened.h"
#include "formats/npz/sink.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/npz.h"

namespace {

using namespace thalia;

bool is_npz(const std::string& path) {
  return path.ends_with(".npz");
}

std::shared_ptr<const formats::OpenedFile> open_source(const std::filesystem::path& path) {
  return is_npz(path) ? formats::open_npz_file(path, {}) : formats::open_npy_file(path, {});
}

void dump(const std::string& path, const std::string& folder) {
  const auto source = open_source(path);
  for (std::size_t i = 0; i < source->facts().tensors.size(); ++i) {
    const AnyTensor& tensor = source->facts().tensors[i];
    source->check(i);
    std::string line;
    JsonWriter json(line);
    json.begin_object().member("name", tensor.name).member("type", tensor.type);
    json.member("dtype", dtype_name(tensor.layout.dtype)).key("shape").begin_array();
    for (const std::uint64_t extent : tensor.layout.shape.extents()) json.value(extent);
    json.end_array().end_object();
    std::puts(line.c_str());
    OutputFile out(folder + "/" + std::to_string(i), {.durability = Durability::none});
    out.write(source->read(i).bytes());
    out.commit();
  }
}

void rewrite(const std::string& input, const std::string& output, const char* codec) {
  const auto source = open_source(input);
  formats::SinkInput tensors{.metadata = source->facts().metadata};
  for (const AnyTensor& tensor : source->facts().tensors)
    tensors.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  formats::SinkOptions options;
  options.save.output.durability = Durability::none;
  if (codec != nullptr)
    options.save.compression.codec = std::strcmp(codec, "none") == 0 ? Codec::none : Codec::zstd;
  options.announce = [](const std::vector<std::string>& losses) {
    for (const std::string& loss : losses) std::puts(loss.c_str());
  };
  const auto write = is_npz(output) ? formats::write_npz : formats::write_npy;
  write(output, tensors, options,
        [&](std::size_t i, const formats::PieceSink& sink) { source->visit(i, sink); });
}

void judge(const char* path) {
  try {
    const auto source = open_source(path);
    for (std::size_t i = 0; i < source->facts().tensors.size(); ++i)
      static_cast<void>(source->read(i));
    std::puts("good");
  } catch (const Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "dump" && argc == 4) {
    dump(argv[2], argv[3]);
  } else if (what == "rewrite" && (argc == 4 || argc == 5)) {
    rewrite(argv[2], argv[3], argc == 5 ? argv[4] : nullptr);
  } else if (what == "judge") {
    for (int i = 2; i < argc; ++i) judge(argv[i]);
  } else {
    std::fputs("usage: npz_tool dump FILE FOLDER | rewrite IN OUT [CODEC] | judge FILE…\n", stderr);
    return 2;
  }
  return 0;
}
