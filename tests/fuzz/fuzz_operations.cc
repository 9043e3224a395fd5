// Whole operations on any bytes: opened as a file of whatever format they are, every tensor read
// and checked, converted to another format, and that file opened, read and checked in turn. What is
// converted has to open again; to .thalia and back, the elements have to be the same.

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/memory_file.h"
#include "support/damage.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/file_facts.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace operations_target {

ReadOptions read_options() {
  return {.input = {.limits = tight_limits()}, .work = {.threads = 1, .progress = {}}};
}

// A folder of this process, of which nothing is left.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() /
              ("thalia-fuzz-operations-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path output(std::string_view format) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    return path_ / ("out." + std::string(format));
  }

 private:
  std::filesystem::path path_;
};

// Errors that a caller expects of a file; others end the process.
bool survives(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  } catch (const IoError&) {
    // A model may be in several files, or have data in others.
  }
  return false;
}

using Contents = std::vector<std::string>;

std::string contents_of(const Tensor& tensor) {
  std::string text(dtype_name(tensor.dtype()));
  for (unsigned axis = 0; axis < tensor.shape().rank(); ++axis)
    text += ',' + std::to_string(tensor.shape()[axis]);
  const ByteSpan bytes = tensor.bytes();
  return text.append(":").append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// All tensors, in no order; `whole` where each could be read.
Contents read_all(const AnyFile& file, bool& whole) {
  Contents contents;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    whole &= survives([&] { file.check(i); });
    whole &= survives([&] { contents.push_back(contents_of(file.read(i))); });
  }
  std::ranges::sort(contents);
  return contents;
}

std::vector<FileFormat> written_formats() {
  std::vector<FileFormat> formats;
  for (const FileFormat format : file_formats())
    if (file_format_is_written(format)) formats.push_back(format);
  return formats;
}

void convert_and_compare(const std::string& path, FileFormat to, const Contents& before,
                         bool whole) {
  static Scratch scratch;
  const std::filesystem::path out = scratch.output(file_format_name(to));
  ConvertOptions options{.to = to, .chain = {.read = read_options()}};
  options.save.output.durability = Durability::none;
  options.save.work = {.threads = 1, .progress = {}};
  ConvertResult result;
  if (!survives([&] { result = convert(path, out, options); })) {
    FUZZ_REQUIRE(!std::filesystem::exists(out));  // nothing is left of what failed
    return;
  }
  // What was made of other files is larger than they were.
  const AnyFile again = open_any(result.output, {}, to);
  bool is_sound = true;
  const Contents after = read_all(again, is_sound);
  FUZZ_REQUIRE(is_sound);
  if (to == FileFormat::thalia && whole && result.losses.empty()) FUZZ_REQUIRE(before == after);
}

void run(const std::uint8_t* data, std::size_t size) {
  static MemoryFile file;
  static const std::vector<FileFormat> targets = written_formats();
  const std::string path = file.put({reinterpret_cast<const char*>(data), size});
  bool whole = true;
  Contents before;
  const auto open_and_read = [&] {
    const AnyFile opened = open_any(path, {.chain = {.read = read_options()}});
    before = read_all(opened, whole);
    // States of brains, and codes, become something else than what is read of them here.
    whole &= opened.format() != FileFormat::thalia_0_1 &&
             opened.format() != FileFormat::mithril_quantized;
  };
  if (!survives(open_and_read)) return;
  convert_and_compare(path, FileFormat::thalia, before, whole);
  // Another one for each length, so that a corpus sees all of them.
  convert_and_compare(path, targets[size % targets.size()], before, whole);
}

}  // namespace operations_target
}  // namespace

FUZZ_TARGET(operations)
