// What model_reference_test.py asks of the library:
//   model_tool copy FROM TO [BYTES]         through source and sink, in shards of so many bytes
//   model_tool edit FILE [KEY TEXT]…        texts of "__metadata__"; prints how it was done
//   model_tool slice PATH NAME [BEGIN END]… elements inside the ranges, to standard output
//   model_tool judge PATH…                  a line for each: good, or why it is refused
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors/opened.h"
#include "formats/safetensors/sink.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"

using namespace thalia;

namespace {

void copy(const std::filesystem::path& from, const std::string& to, const char* shard_bytes) {
  const auto source = formats::open_safetensors_file(from, {});
  formats::SinkInput input{.metadata = source->facts().metadata};
  for (const AnyTensor& tensor : source->facts().tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  formats::SinkOptions options;
  options.save.output.durability = Durability::none;
  if (shard_bytes != nullptr) options.shard_bytes = std::stoull(shard_bytes);
  formats::write_safetensors_tensors(
      to, input, options,
      [&](std::size_t i, const formats::PieceSink& sink) { source->visit(i, sink); });
}

void edit(const std::string& file, const std::vector<std::string>& arguments) {
  SafetensorsMetadataChanges changes;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2)
    changes.emplace_back(arguments[i], arguments[i + 1]);
  const SafetensorsEdit how = edit_safetensors_metadata(file, changes);
  constexpr const char* kNames[] = {"unchanged", "cloned", "in_place", "rewritten"};
  std::puts(kNames[static_cast<int>(how)]);
}

void slice(const std::string& path, const std::string& name,
           const std::vector<std::string>& arguments) {
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2)
    ranges.push_back({.begin = std::stoull(arguments[i]), .end = std::stoull(arguments[i + 1])});
  const AnyFile file = open_any(path);
  const TensorElements elements = file.elements(file.at(name));
  std::uint64_t count = 1;
  for (const SliceRange& range : ranges) count *= range.end - range.begin;
  std::vector<std::byte> part(*Shape({count}).byte_length(elements.layout.dtype));
  elements.read(ranges, part);
  std::fwrite(part.data(), 1, part.size(), stdout);
}

void judge(const std::string& path) {
  try {
    open_any(path, {}, FileFormat::safetensors);
    std::puts("good");
  } catch (const Error& error) {
    std::printf("refused: %s\n", error.message().c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const std::vector<std::string> rest(argv + (argc > 4 ? 4 : argc), argv + argc);
  if (command == "copy" && argc >= 4) {
    copy(argv[2], argv[3], argc > 4 ? argv[4] : nullptr);
  } else if (command == "edit" && argc >= 3) {
    edit(argv[2], {argv + 3, argv + argc});
  } else if (command == "slice" && argc >= 4) {
    slice(argv[2], argv[3], rest);
  } else if (command == "judge") {
    for (int i = 2; i < argc; ++i) judge(argv[i]);
  } else {
    std::fputs("usage: model_tool copy | edit | slice | judge …\n", stderr);
    return 2;
  }
  return 0;
}
