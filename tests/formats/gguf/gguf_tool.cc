// What gguf_reference_test.py asks of the library:
//   gguf_tool dequantize IN NAME OUT   the elements of a tensor, as f32, into a file
//   gguf_tool read IN NAME OUT         its bytes as they are stored
//   gguf_tool rewrite IN OUT           all key/values and tensors into a new file
//   gguf_tool carry IN OUT             the same, by way of the metadata of a .thalia file
//   gguf_tool numbers IN OUT           the same, with elements in place of blocks
//   gguf_tool metadata IN              those metadata
//   gguf_tool judge FILE…              a line for each file: good, or why it is refused
//   gguf_tool speed TYPE MIB           bytes of f32 a second, on one thread and on all
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/opened.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/gguf.h"

namespace {

using namespace thalia;

void write_bytes(const char* path, ByteSpan bytes) {
  OutputFile out(path, {.durability = Durability::none});
  out.write(bytes);
  out.commit();
}

void carry(const std::filesystem::path& in, const char* out, bool dequantize) {
  OpenOptions options;
  options.dequantize = dequantize;
  const auto source = formats::gguf::open_gguf_file(in, options);
  formats::SinkInput input{.metadata = source->facts().metadata};
  for (const auto& tensor : source->facts().tensors)
    input.tensors.push_back({tensor.name, tensor.layout});
  formats::SinkOptions sink;
  sink.save.output.durability = Durability::none;
  formats::gguf::write_gguf(out, input, sink, [&](std::size_t i, const formats::PieceSink& piece) {
    source->visit(i, piece);
  });
}

void judge(const char* path) {
  try {
    GgufFile::open(path);
    std::puts("good");
  } catch (const Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}

void speed(std::string_view name, std::size_t mib) {
  const GgmlTypeFacts& facts = *ggml_type_from_name(name);
  const std::size_t blocks = (mib << 20) / 4 / facts.block_elements;
  std::vector<std::byte> in(blocks * facts.block_bytes, std::byte{0x11});
  std::vector<float> out(blocks * facts.block_elements);
  for (const unsigned threads : {1u, 0u}) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      dequantize_ggml(facts.type, in, out, threads);
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::printf("%s threads=%u: %.0f MB/s of f32\n", facts.name.data(), threads,
                static_cast<double>(out.size()) * 4e-6 / best);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "dequantize" && argc == 5) {
    const Tensor tensor = GgufFile::open(argv[2]).dequantize(argv[3]);
    write_bytes(argv[4], tensor.bytes());
  } else if (command == "read" && argc == 5) {
    write_bytes(argv[4], GgufFile::open(argv[2]).read(argv[3]).bytes());
  } else if (command == "rewrite" && argc == 4) {
    const GgufFile file = GgufFile::open(argv[2]);
    save_gguf(argv[3], file.tensors(), file.key_values(),
              {.long_names = true, .output = {.durability = Durability::none}});
  } else if ((command == "carry" || command == "numbers") && argc == 4) {
    carry(argv[2], argv[3], command == "numbers");
  } else if (command == "metadata" && argc == 3) {
    std::puts(formats::gguf::open_gguf_file(std::filesystem::path(argv[2]), {})
                  ->facts()
                  .metadata.c_str());
  } else if (command == "judge") {
    for (int i = 2; i < argc; ++i) judge(argv[i]);
  } else if (command == "speed" && argc == 4) {
    speed(argv[2], std::stoul(argv[3]));
  } else {
    std::fputs("usage: gguf_tool COMMAND …\n", stderr);
    return 2;
  }
  return 0;
}
