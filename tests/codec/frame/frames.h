// What the frames of tests/data/codec hold. Its README.md says how they were made.
#pragma once

#include <filesystem>
#include <string>

#include "support/files.h"

namespace thalia::test {

inline std::string codec_sample(const std::string& name) {
  return read_file(std::filesystem::path(THALIA_CODEC_DATA) / name);
}

inline std::string counting_text() {
  std::string text;
  for (int i = 1; i <= 2000; ++i) text += std::to_string(i) + '\n';
  return text;
}

inline std::string repeating_text() {
  std::string text;
  while (text.size() < 200000) text += "a line that repeats\n";
  text.resize(200000);
  return text;
}

}  // namespace thalia::test
