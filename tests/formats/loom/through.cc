#include "formats/loom/through.h"

#include "support/files.h"

namespace thalia::test {

std::string through(const formats::OpenedFile& source, formats::WriteTensors write,
                    const std::function<void(formats::SinkInput&)>& edit,
                    std::vector<std::string>* losses) {
  static const TemporaryFolder folder;
  const std::filesystem::path path = folder / "out";
  formats::SinkInput input{.metadata = source.facts().metadata};
  for (const AnyTensor& tensor : source.facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  if (edit) edit(input);
  formats::SinkOptions options;
  options.save.output.durability = Durability::none;
  options.announce = [&](const std::vector<std::string>& told) {
    if (losses != nullptr) *losses = told;
  };
  const std::uint64_t bytes =
      write(path, input, options, [&](std::size_t i, const formats::PieceSink& sink) {
        // In pieces that end anywhere.
        const Tensor tensor = source.read(i);
        ByteSpan rest = tensor.bytes();
        for (std::size_t size = 1; !rest.empty(); size += 2) {
          const ByteSpan piece = rest.first(std::min(size, rest.size()));
          sink(piece);
          rest = rest.subspan(piece.size());
        }
      });
  std::string text = read_file(path);
  if (text.size() != bytes) text = "another size than the sink says";
  return text;
}

}  // namespace thalia::test
