// thalia cat: tensors, or slices of them, in blocks of limited size, so that a tensor larger than
// the memory can be printed. Only the blocks that the slice needs are read. Once the output is
// closed, nothing more is read.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/print.h"
#include "cli/print/tensor_table.h"
#include "cli/tensor/array_json.h"
#include "cli/tensor/array_text.h"
#include "cli/tensor/element_stream.h"
#include "cli/tensor/npy.h"
#include "cli/tensor/slice.h"
#include "cli/terminal/escape.h"
#include "cli/terminal/output_file.h"
#include "inspect/block_cursor.h"
#include "inspect/file_tensors.h"
#include "inspect/opened_tensor.h"
#include "io/memory/allocation_limit.h"
#include "state/tensor/slice.h"
#include "thalia/files.h"

namespace thalia::cli {
namespace {

enum class Format { text, json, npy, raw };
constexpr std::array kFormats{
    Choice<Format>{"text", Format::text}, Choice<Format>{"json", Format::json},
    Choice<Format>{"npy", Format::npy}, Choice<Format>{"raw", Format::raw}};

struct CatArguments {
  std::string file;
  std::string tensor;
  std::optional<std::string> slice;
  Format format = Format::text;
  std::string output;
  bool all = false;
  bool dense = false;
};

void print_text(Output& out, const inspect::OpenedTensor& source, const Slice& slice,
                const CatArguments& arguments) {
  std::string heading =
      fmt::format("# {}  {} {}", shown_name(source.region, source.name),
                  dtype_name(source.layout.dtype), source.layout.shape.to_string());
  if (source.entries)
    heading += fmt::format(" {}, {}", encoding_name(source.layout.encoding),
                           counted(source.layout.nnz, "entry", "entries"));
  if (arguments.slice) heading += fmt::format(", [{}] of it", escape(*arguments.slice));
  out.write(heading + "\n");
  if (source.entries && !arguments.dense) {
    print_entries(out, source, slice, arguments.all);
  } else {
    print_array(out, source, slice, arguments.all);
  }
}

void print_npy(Output& out, const inspect::OpenedTensor& source, const Slice& slice) {
  out.write(as_byte_span(npy_header(source.layout.dtype, slice.shape)));
  inspect::BlockCursor blocks(slice.ranges, source.layout.dtype, kBlockBytes);
  std::vector<std::byte> bytes;
  while (const auto ranges = blocks.next()) {
    const std::uint64_t elements = state::range_elements(*ranges);
    bytes.resize(state::packed_bytes(source.layout.dtype, elements));
    source.read(*ranges, bytes);
    std::string converted;
    append_npy(converted, source.layout.dtype, bytes, elements);
    out.write(as_byte_span(converted));
    if (out.closed()) return;
  }
}

void print_raw(Output& out, const inspect::OpenedTensor& source, const Slice& slice,
               const CatArguments& arguments) {
  if (source.entries && !arguments.dense) {
    if (arguments.slice) {
      throw UsageError(ErrorCode::bad_argument,
                       "the stored arrays of a sparse tensor cannot be sliced, --dense can",
                       {.field = "--slice"});
    }
    out.write(source.entries->tensor().bytes());
    return;
  }
  // A block of a packed dtype would end in padding bits, so such a tensor is read in one block.
  const std::uint64_t limit =
      dtype_is_packed(source.layout.dtype) ? ~std::uint64_t{0} / 8 : kBlockBytes;
  inspect::BlockCursor blocks(slice.ranges, source.layout.dtype, limit);
  while (const auto ranges = blocks.next()) {
    io::MemoryBudget budget({}, file_bytes(arguments.file));
    auto bytes = budget.vector<std::byte>(
        "payload", state::packed_bytes(source.layout.dtype, state::range_elements(*ranges)));
    source.read(*ranges, bytes);
    out.write(ByteSpan(bytes));
    if (out.closed()) return;
  }
}

Slice slice_of(const inspect::OpenedTensor& source, const CatArguments& arguments) {
  if (!arguments.slice) return whole(source.layout.shape);
  try {
    return parse_slice(*arguments.slice, source.layout.shape);
  } catch (UsageError& error) {
    error.add_path(arguments.file);
    error.add_region(source.region);
    error.add_tensor(source.name);
    throw;
  }
}

void print_tensor(Output& out, const inspect::OpenedTensor& source, const CatArguments& arguments) {
  const Slice slice = slice_of(source, arguments);
  switch (arguments.format) {
    case Format::text:
      print_text(out, source, slice, arguments);
      break;
    case Format::json:
      if (source.entries && !arguments.dense) {
        print_entries_json(out, source, slice);
      } else {
        print_array_json(out, source, slice);
      }
      break;
    case Format::npy:
      print_npy(out, source, slice);
      break;
    case Format::raw:
      print_raw(out, source, slice, arguments);
      break;
  }
}

// The tensor of that very name; nullopt if there is none, and the name may be a pattern.
std::optional<inspect::OpenedTensor> open_named(const AnyFile& file,
                                                const CatArguments& arguments) {
  try {
    return inspect::find_tensor(file, arguments.tensor).open();
  } catch (const UsageError& error) {
    const bool is_pattern = arguments.tensor.find_first_of("*?") != std::string::npos;
    if (!is_pattern || error.code() != ErrorCode::not_found) throw;
    return std::nullopt;
  }
}

// A file of one array has room for one tensor.
void require_one(const AnyFile& file, const CatArguments& arguments) {
  inspect::Selection selection("TENSOR", {arguments.tensor});
  std::uint64_t tensors = 0;
  inspect::visit_tensors(file, selection, [&](const inspect::ShownTensor&) { ++tensors; });
  if (tensors < 2) return;
  throw UsageError(ErrorCode::bad_argument, {},
                   {.path = arguments.file,
                    .field = "TENSOR",
                    .value = fmt::format("a pattern of {} tensors", grouped(tensors)),
                    .bound = "one, as npy and raw have room for one"});
}

void print_tensors(Output& out, const CatArguments& arguments, const Session& session) {
  const bool binary = arguments.format == Format::npy || arguments.format == Format::raw;
  // Asked before the file is opened: it is a mistake whatever the file holds.
  if (binary && out.is_terminal()) {
    throw UsageError(ErrorCode::bad_argument,
                     fmt::format("{} is binary and would upset the terminal, name a file with -o",
                                 arguments.format == Format::npy ? "npy" : "raw"),
                     {.field = "--format"});
  }
  const AnyFile file = inspect::open_stored(arguments.file, session.options<ChainOptions>());
  if (const auto source = open_named(file, arguments)) return print_tensor(out, *source, arguments);
  if (binary) require_one(file, arguments);
  inspect::Selection selection("TENSOR", {arguments.tensor});
  bool is_first = true;
  inspect::visit_tensors(file, selection, [&](const inspect::ShownTensor& tensor) {
    if (out.closed()) return;
    if (!is_first && arguments.format == Format::text) out.write("\n");
    is_first = false;
    print_tensor(out, tensor.open(), arguments);
  });
}

int run_cat(const CatArguments& arguments, const Session& session) {
  if (arguments.output.empty()) {
    print_tensors(session.out, arguments, session);
  } else {
    print_into(arguments.output, session,
               [&](Output& out) { print_tensors(out, arguments, session); });
  }
  return kDone;
}

}  // namespace

Run declare_cat(CLI::App& app) {
  app.description(
      "Prints one tensor, or a slice of it, reading only what that needs. TENSOR is REGION/NAME, "
      "or NAME where only one region has it, as ls shows it; or a pattern: every tensor that "
      "matches is printed under its name.");
  app.footer(
      "Slices: parts separated by commas, outermost dimension first: '2:5' (up to and without 5), "
      "'2:', ':5', ':', '7' (drops the dimension), negative numbers from the end, '...' for all "
      "dimensions in between. Unlike in Python, an index outside the tensor is an error.\n\nText: "
      "as "
      "NumPy prints arrays; sparse tensors as one line an entry. Numbers are the shortest decimals "
      "that read back as the same f32 (f64 for f64). json: numbers that are not finite are "
      "\"NaN\", \"Infinity\" and \"-Infinity\", complex ones [real, imaginary]. npy: bf16 and the "
      "floating-point types of 8 bits and less become float32, packed integers int8 or uint8. raw: "
      "the bytes as docs/format/format.md has them.\n\nExamples:\n  thalia cat run.thalia "
      "cortex/w_rec --slice '0:4,:'\n  thalia cat run.thalia cortex/w_rec --format npy -o "
      "w_rec.npy");
  const auto arguments = std::make_shared<CatArguments>();
  add_model(app, "FILE", arguments->file, "The file to read");
  offer(app.add_option("TENSOR", arguments->tensor, "The tensor, or a pattern")->required(),
        kTensor);
  add_option(app, "--slice SLICE", arguments->slice, "The part to print, such as '0:4,:'");
  add_choice(app, "--format FORMAT", arguments->format, kFormats,
             "text (the default), json, npy or raw");
  add_output(app, "OUT", arguments->output);
  app.add_flag("--all", arguments->all,
               "Text: every element, also of more than 1000, a row a line");
  add_dense(app, arguments->dense);
  return [arguments](const Session& session) { return run_cat(*arguments, session); };
}

}  // namespace thalia::cli
