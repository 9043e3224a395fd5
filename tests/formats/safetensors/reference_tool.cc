// What reference_test.py asks of the library:
//   reference_tool rewrite IN MIDDLE OUT   safetensors to .thalia to safetensors
//   reference_tool judge FILE…             a line for each file: good, or why it is refused
#include <cstdio>
#include <cstring>

#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"

namespace {

void judge(const char* path) {
  try {
    thalia::SafetensorsFile::open(path);
    std::puts("good");
  } catch (const thalia::Error& error) {
    std::printf("refused: %s\n", error.message().c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "rewrite") == 0) {
    thalia::ConvertOptions options;
    options.save.output.durability = thalia::Durability::none;
    thalia::convert(argv[2], argv[3], options);
    thalia::convert(argv[3], argv[4], options);
    return 0;
  }
  if (argc > 2 && std::strcmp(argv[1], "judge") == 0) {
    for (int i = 2; i < argc; ++i) judge(argv[i]);
    return 0;
  }
  std::fputs("usage: reference_tool rewrite IN MIDDLE OUT | judge FILE…\n", stderr);
  return 2;
}
