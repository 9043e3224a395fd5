// Where one full file is wanted, and several were given: their state is written into a file that
// nobody sees. It has no name and is gone when it is closed, so that it needs no syncing. A delta
// between two paths needs no such file: it takes the new state from where it lies.
#include "thalia/formats/any_file.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "container/read/reader_of.h"
#include "convert/conversions.h"
#include "convert/formats.h"
#include "convert/thalia_shards.h"
#include "io/file/open_descriptor.h"
#include "io/output/atomic_file.h"
#include "io/output/unnamed_file.h"
#include "state/delta/save_state.h"
#include "thalia/files.h"
#include "thalia/formats/file_facts.h"
#include "thalia/formats/safetensors.h"
#include "thalia/state/quantization.h"

namespace thalia {
namespace {

using std::filesystem::path;

// The state of a checkpoint, and of what it was read.
struct FoundState {
  StateSource state;
  std::vector<path> files;  ///< its own first, or the index
  std::uint64_t bytes = 0;
  unsigned depth = 0;
  bool in_parts = false;
};

FoundState state_of(const ChainReader& chain) {
  return {.state = state_source(chain),
          .files = chain.paths(),
          .bytes = chain.disk_bytes(),
          .depth = chain.depth()};
}

FoundState state_of_parts(const io::InputFile& index, const ChainOptions& options) {
  formats::ShardsState shards = formats::open_shards_state(index, options);
  return {.state = std::move(shards.state),
          .files = std::move(shards.files),
          .bytes = shards.file_bytes,
          .in_parts = true};
}

FoundState find_state(const io::InputFile& input, const ChainOptions& options) {
  if (formats::is_in_parts(input, options.read.input.access)) return state_of_parts(input, options);
  return state_of(ChainReader::open(container::open_reader(input, options.read), options));
}

// The first file may become what it stands for. An index and its parts stand for nothing without
// each other.
void refuse_read(const path& target, const FoundState& found) {
  io::refuse_read(target, std::span(found.files).subspan(found.in_parts ? 0 : 1));
}

// Every message knows the state by its first file.
Reader resolved(const FoundState& found, const path& folder, const ReadOptions& read) {
  const path& name = found.files.front();
  io::UniqueFd fd = io::create_unnamed_file(folder);
  state::save_state(found.state, fd.get(), name,
                    {.output = {.durability = Durability::none},
                     .work = {.threads = read.work.threads, .cancel = read.work.cancel}});
  // As the files that it was made of: a disk may fail under this one too.
  return container::reader_of(io::open_descriptor(std::move(fd), name, read.input.access), read);
}

Reader take(formats::ResolvedInput input, std::uint64_t& copied_bytes) {
  copied_bytes = input.copied_bytes;
  return std::move(input.reader);
}

}  // namespace

formats::ResolvedInput formats::resolve_input(const io::InputFile& input, const path& folder,
                                              const ChainOptions& options) {
  std::optional<FoundState> found;
  if (is_in_parts(input, options.read.input.access)) {
    found = state_of_parts(input, options);
  } else {
    Reader reader = container::open_reader(input, options.read);
    if (!reader.delta_base()) return {.reader = std::move(reader)};
    found = state_of(ChainReader::open(reader, options));
  }
  return {.reader = resolved(*found, folder, options.read), .copied_bytes = found->bytes};
}

bool formats::is_in_parts(const io::InputFile& input, Access access) {
  // The text of an index is looked into; that of no other file is, as most of these have no parts.
  if (input.path().extension() != ".json" || !is_file(input.path())) return false;
  return format_of(input, access) == FileFormat::thalia_shards;
}

FileFormat formats::thalia_format(const io::InputFile& input, Access access) {
  return is_in_parts(input, access) ? FileFormat::thalia_shards : FileFormat::thalia;
}

bool is_in_parts(const path& path, Access access) {
  if (is_file(path) && path.extension() != ".json") return false;
  return detect_format(path, access) == FileFormat::thalia_shards;
}

ResolvedFile::ResolvedFile(const path& file, const path& folder, const ChainOptions& options)
    : reader_(take(formats::resolve_input(find_model(file), folder, options), input_bytes_)) {}

StateSource state_source(const path& file, const ChainOptions& options) {
  return find_state(find_model(file), options).state;
}

DeltaResult write_delta(const path& base, const path& input, const path& target,
                        const ChainOptions& chain, const DeltaOptions& options) {
  const io::InputFile full(find_model(base));
  if (formats::is_in_parts(full, chain.read.input.access)) {
    fail_argument(ErrorCode::bad_argument, "base", printable(base.string()), "one file",
                  "a delta names one file as its base; make one of these parts with thalia merge "
                  "or thalia convert");
  }
  const ChainReader before = ChainReader::open(container::open_reader(full, chain.read), chain);
  const FoundState found = find_state(find_model(input), chain);
  refuse_read(target, found);
  return write_delta(found.state, before, target, options);
}

QuantizeFileResult quantize_file(const path& input, const path& output,
                                 const QuantizationOptions& options,
                                 const QuantizeFileOptions& file) {
  const OpenOptions open{.chain = {.read = {.input = file.input, .work = file.save.work}}};
  const io::InputFile found(find_model(input));
  formats::check_not_read(found, output, file.save.output, open,
                          formats::thalia_format(found, file.input.access));
  const formats::ResolvedInput full = formats::resolve_input(found, folder_of(output), open.chain);
  QuantizeFileResult result = quantize_file(full.reader, output, options, file);
  if (full.copied_bytes != 0) result.input_bytes = full.copied_bytes;
  return result;
}

ResolveResult resolve(const path& input, const path& target, const ChainOptions& options,
                      const SaveOptions& save) {
  const Stopwatch watch;
  const container::CheckedOptions checked(save);  // before anything is read
  const FoundState found = find_state(find_model(input), options);
  refuse_read(target, found);
  const SaveResult saved = state::save_state(found.state, target, checked);
  return {{.input_bytes = found.bytes,
           .output_bytes = saved.file_bytes,
           .tensors = saved.tensors,
           .seconds = watch.seconds()},
          found.depth,
          saved.regions,
          saved.closing_checksum};
}

}  // namespace thalia
