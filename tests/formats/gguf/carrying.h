// A GGUF file's tensors and metadata handed on to the sink, and what that writes.
#pragma once

#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/gguf/files.h"
#include "formats/gguf/opened.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/gguf.h"

namespace thalia::test::gguf {

using formats::OpenedFile;
using formats::PieceSink;
using formats::SinkInput;
using formats::SinkOptions;
using formats::gguf::open_gguf_file;
using formats::gguf::write_gguf;

inline SinkInput input_of(const OpenedFile& source) {
  SinkInput input{.metadata = source.facts().metadata};
  for (const auto& tensor : source.facts().tensors)
    input.tensors.push_back({tensor.name, tensor.layout});
  return input;
}

struct Written {
  std::string bytes;
  std::vector<std::string> losses;
};

// With zeros for payloads if there is no source.
inline Written written(const SinkInput& input, const OpenedFile* source = nullptr,
                       bool all_types = false) {
  const TemporaryFolder folder;
  Written result;
  unsigned announced = 0;
  SinkOptions options;
  options.all_types = all_types;
  options.announce = [&](const std::vector<std::string>& losses) {
    result.losses = losses;
    ++announced;
    BOOST_TEST(list_folder(folder.path()).empty());
  };
  const std::uint64_t bytes =
      write_gguf(folder / "out.gguf", input, options, [&](std::size_t i, const PieceSink& sink) {
        if (source != nullptr) return source->visit(i, sink);
        const TensorLayout& layout = input.tensors[i].layout;
        sink(std::vector<std::byte>(layout.shape.byte_length(layout.dtype).value()));
      });
  BOOST_TEST(announced == 1u);
  result.bytes = read_file(folder / "out.gguf");
  BOOST_TEST(bytes == result.bytes.size());
  return result;
}

inline GgufFile file_of(const SinkInput& input) {
  return from_text(written(input).bytes);
}

inline SinkInput one_tensor(DType dtype, const Shape& shape, std::string metadata = "{}") {
  return {.tensors = {{"w", {.dtype = dtype, .shape = shape}}}, .metadata = std::move(metadata)};
}

template <typename E>
void refused(const SinkInput& input, ErrorCode code, const char* says) {
  const TemporaryFolder folder;
  BOOST_TEST_CONTEXT(says)
  BOOST_CHECK_EXCEPTION(
      write_gguf(folder / "out.gguf", input, {}, [](std::size_t, const PieceSink&) {}), E,
      test::says(code, says, "out.gguf"));
  BOOST_TEST(list_folder(folder.path()).empty());
}

}  // namespace thalia::test::gguf
