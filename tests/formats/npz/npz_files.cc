#include "formats/npz/npz_files.h"

#include "boost_test.h"
#include "formats/npz/opened.h"
#include "formats/npz/sink.h"
#include "support/bytes.h"

namespace thalia::test {

using namespace formats;

std::filesystem::path npz_sample(const char* name) {
  return std::filesystem::path(THALIA_SOURCE_ROOT) / "tests/data/formats/npz" / name;
}

Tensor random_numbers(DType dtype, const Shape& shape) {
  return Tensor::filled({.dtype = dtype, .shape = shape}, [](MutableByteSpan out) {
    const auto bytes = random_bytes(out.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
  });
}

std::vector<std::string> rewrite_npz(const std::filesystem::path& input,
                                     const std::filesystem::path& output,
                                     const std::string& metadata) {
  const auto source =
      input.extension() == ".npz" ? open_npz_file(input, {}) : open_npy_file(input, {});
  SinkInput tensors{.metadata = metadata.empty() ? source->facts().metadata : metadata};
  for (const AnyTensor& tensor : source->facts().tensors)
    tensors.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  SinkOptions options;
  options.save.output.durability = Durability::none;
  std::vector<std::string> all;
  options.announce = [&](const std::vector<std::string>& losses) {
    all = losses;
    BOOST_TEST(!std::filesystem::exists(output));
  };
  const auto write = output.extension() == ".npz" ? write_npz : write_npy;
  const std::uint64_t bytes =
      write(output, tensors, options,
            [&](std::size_t i, const PieceSink& sink) { source->visit(i, sink); });
  BOOST_TEST(bytes == std::filesystem::file_size(output));
  return all;
}

}  // namespace thalia::test
