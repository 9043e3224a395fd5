// Headers are made before the output is created, and elements pass through a piece at a time: only
// those that change their order have to be there all at once.
#include "formats/npz/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/npz/archive.h"
#include "formats/npz/elements.h"
#include "formats/npz/source_metadata.h"
#include "formats/source/list_names.h"
#include "formats/source/lost_metadata.h"
#include "formats/source/npy_header.h"
#include "formats/source/npy_type.h"
#include "formats/source/refuse_tensor.h"
#include "formats/source/swap_bytes.h"
#include "formats/source/tensor_sink.h"
#include "formats/zip/member.h"
#include "formats/zip/writer.h"
#include "io/memory/allocation_limit.h"
#include "thalia/files.h"
#include "thalia/formats/npz.h"
#include "thalia/text.h"

namespace thalia::formats::npz {
namespace {

// What an .npy or .npz file will hold, decided before anything is written.
//
// Arrays that the metadata name come first, in their order there, and in the form that they had.

struct PlannedArray {
  std::size_t tensor = 0;  ///< in the input
  std::string member;      ///< of an archive
  std::string head;        ///< the array's header
  NpyType type{};
  Shape shape{};            ///< as the header says it
  bool reordered = false;   ///< goes to Fortran order
  std::uint64_t bytes = 0;  ///< of its elements
  std::size_t element_bytes = 1;
};

struct Plan {
  std::vector<PlannedArray> arrays{};  ///< in the order of the file
  bool deflated = false;
  bool old_zip64 = false;
  std::vector<std::string> losses{};
  std::uint64_t bytes = 0;  ///< of all elements
};

void check_layout(const SinkTensor& tensor) {
  if (tensor.layout.encoding != Encoding::dense)
    refuse_tensor(tensor.name, "NumPy has no sparse arrays");
  if (!npy_descr(tensor.layout.dtype).empty()) return;
  throw UnsupportedDtypeError(
      std::string(dtype_name(tensor.layout.dtype)), "NumPy has no packed element types",
      {.tensor = printable(tensor.name), .value = std::string(dtype_name(tensor.layout.dtype))});
}

bool is_lost(DType dtype) {
  return dtype != DType::bf16 && npy_descr(dtype).find('V') != std::string::npos;
}

// Whether elements of the type that the source metadata say are the tensor's; if they are, sets
// the shape that the header says.
bool fits(const NpyType& type, const TensorLayout& layout, Shape& shape) {
  if (type.dtype != layout.dtype) return false;
  shape = layout.shape;
  if (type.opaque <= 1) return true;
  const unsigned rank = layout.shape.rank();
  if (rank == 0 || layout.shape[rank - 1] != type.opaque) return false;
  shape = Shape(layout.shape.extents().first(rank - 1));
  return true;
}

PlannedArray plan_array(const SinkTensor& tensor, const SourceArray& source,
                        const ReadLimits& limits) {
  const TensorLayout& layout = tensor.layout;
  PlannedArray array{.bytes = *layout.shape.byte_length(layout.dtype)};
  std::string descr = source.descr;
  const auto type = npy_type(descr);
  if (type && fits(*type, layout, array.shape)) {
    array.type = *type;
  } else {
    descr = npy_descr(layout.dtype);
    array.type = {.dtype = layout.dtype};
    array.shape = layout.shape;
  }
  array.element_bytes = array.type.opaque != 0 ? array.type.opaque : dtype_bits(layout.dtype) / 8;
  array.reordered = source.fortran_order && array.shape.rank() > 1;
  // The tensor as it comes, and in the other order.
  if (array.reordered) io::MemoryBudget(limits, array.bytes).take("array", 2, array.bytes);
  array.head = make_npy_header(descr, source.fortran_order, array.shape, source.header_bytes,
                               source.version);
  array.member = tensor.name;
  if (!source.bare || tensor.name.ends_with(kArraySuffix)) array.member += kArraySuffix;
  return array;
}

// numpy.load takes "a.npy" for the array "a" where both are there.
void check_names(const SinkInput& input) {
  std::unordered_set<std::string_view> names;
  for (const SinkTensor& tensor : input.tensors) names.insert(tensor.name);
  for (const SinkTensor& tensor : input.tensors) {
    if (tensor.name.ends_with(kArraySuffix) && names.contains(array_name(tensor.name)))
      refuse_tensor(tensor.name, "NumPy reads another array under this name", "name",
                    printable(array_name(tensor.name)));
  }
}

bool wants_deflate(const NpzSourceMetadata& source, const SinkOptions& options) {
  const auto codec = options.save.compression.codec;
  return codec ? *codec != Codec::none : source.deflated;
}

/// @throws UnsupportedError naming the tensor; FormatError (limit_exceeded) for a tensor too large
/// to be reordered in memory, or metadata that are no JSON object.
Plan plan_arrays(const SinkInput& input, const SinkOptions& options) {
  const NpzSourceMetadata source =
      source_metadata_from_json(input.metadata, options.limits.max_json_depth);
  Plan plan{.deflated = wants_deflate(source, options), .old_zip64 = source.old_zip64};
  check_names(input);
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < input.tensors.size(); ++i) places.emplace(input.tensors[i].name, i);
  std::vector<bool> planned(input.tensors.size());
  const auto add = [&](std::size_t i, const SourceArray& of) {
    const SinkTensor& tensor = input.tensors[i];
    check_layout(tensor);
    plan.arrays.push_back(plan_array(tensor, of, options.limits));
    plan.arrays.back().tensor = i;
    plan.bytes += plan.arrays.back().bytes;
    planned[i] = true;
  };
  for (const SourceArray& of : source.arrays) {
    const auto found = places.find(of.name);
    if (found != places.end()) add(found->second, of);
  }
  for (std::size_t i = 0; i < planned.size(); ++i)
    if (!planned[i]) add(i, {});

  std::vector<std::string> without_type;
  for (const PlannedArray& array : plan.arrays) {
    const SinkTensor& tensor = input.tensors[array.tensor];
    if (is_lost(tensor.layout.dtype) && array.head.find("<V1") != std::string::npos)
      without_type.push_back(tensor.name);
  }
  if (!without_type.empty()) {
    plan.losses.push_back(fmt::format("element types that NumPy lacks, written as bytes (V1): {}",
                                      list_names(without_type)));
  }
  add_lost_metadata(plan.losses, input, source.other_keys);
  return plan;
}

constexpr std::size_t kSwapPiece = std::size_t{1} << 18;

// Takes a tensor's bytes in pieces of any size and hands on those of the file.
class ElementWriter {
 public:
  ElementWriter(const PlannedArray& array, const PieceSink& sink) : array_(array), sink_(sink) {}

  void write(ByteSpan piece) {
    if (array_.reordered) {
      held_.insert(held_.end(), piece.begin(), piece.end());
      return;
    }
    if (!array_.type.swapped) return sink_(piece);
    while (!piece.empty()) {
      const ByteSpan part = piece.first(std::min(piece.size(), kSwapPiece - held_.size()));
      held_.insert(held_.end(), part.begin(), part.end());
      piece = piece.subspan(part.size());
      if (held_.size() == kSwapPiece) hand_on_swapped(std::exchange(held_, {}));
    }
  }

  void finish() {
    if (!array_.reordered) {
      if (!held_.empty()) hand_on_swapped(std::move(held_));
      return;
    }
    std::vector<std::byte> out(held_.size());
    to_column_major(held_, array_.shape, array_.element_bytes, out);
    held_ = {};
    hand_on_swapped(std::move(out));
  }

 private:
  void hand_on_swapped(std::vector<std::byte> numbers) {
    if (array_.type.swapped) swap_bytes(array_.type.dtype, numbers);
    sink_(numbers);
  }

  const PlannedArray& array_;
  const PieceSink& sink_;
  std::vector<std::byte> held_;
};

// Hands on header and elements of each array, between what `begin` and `end` do.
void emit_arrays(const Plan& plan, const Work& work, const EmitPayload& emit, const PieceSink& sink,
                 const std::function<void(const PlannedArray&)>& begin,
                 const std::function<void()>& end) {
  std::uint64_t done = 0;
  for (const PlannedArray& array : plan.arrays) {
    begin(array);
    sink(as_byte_span(array.head));
    ElementWriter elements(array, sink);
    std::uint64_t emitted = 0;
    emit(array.tensor, [&](ByteSpan piece) {
      elements.write(piece);
      emitted += piece.size();
      if (work.progress) work.progress(done + emitted, plan.bytes);
    });
    assert(emitted == array.bytes);
    elements.finish();
    done += array.bytes;
    end();
  }
}

Plan announced_plan(const SinkInput& input, const SinkOptions& options,
                    const std::function<void(Plan&)>& check) {
  Plan plan = plan_arrays(input, options);
  check(plan);
  if (options.announce) options.announce(plan.losses);
  return plan;
}

}  // namespace
}  // namespace thalia::formats::npz

namespace thalia::formats {

std::uint64_t write_npz(const std::filesystem::path& output, const SinkInput& input,
                        const SinkOptions& options, const EmitPayload& emit) {
  return with_path(output.native(), [&] {
    const npz::Plan plan = npz::announced_plan(input, options, [&](npz::Plan& all) {
      for (const npz::PlannedArray& array : all.arrays) {
        const std::string_view fault = zip_name_fault(array.member);
        if (fault.empty()) continue;
        throw UnsupportedError(ErrorCode::unsupported_feature, std::string(fault),
                               {.tensor = printable(input.tensors[array.tensor].name)});
      }
    });
    OutputFile out(output, options.save.output, options.save.work.cancel);
    ZipWriter zip(out, plan.old_zip64 ? kOldPythonZip : kPythonZip);
    const ZipNewMember how{.deflated = plan.deflated, .force_zip64 = true};
    npz::emit_arrays(
        plan, options.save.work, emit, [&](ByteSpan piece) { zip.write(piece); },
        [&](const npz::PlannedArray& array) {
          zip.begin(array.member, array.head.size() + array.bytes, how);
        },
        [&] { zip.end(); });
    const std::uint64_t bytes = zip.finish();
    out.commit();
    return bytes;
  });
}

std::uint64_t write_npy(const std::filesystem::path& output, const SinkInput& input,
                        const SinkOptions& options, const EmitPayload& emit) {
  return with_path(output.native(), [&] {
    if (input.tensors.size() != 1) {
      throw UnsupportedError(
          ErrorCode::unsupported_feature, "an .npy file holds one array",
          {.field = "tensors", .value = std::to_string(input.tensors.size()), .bound = "1"});
    }
    const npz::Plan plan = npz::announced_plan(input, options, [&](npz::Plan& all) {
      const std::string& name = input.tensors[0].name;
      if (name != npz::array_name(output.filename().string()))
        all.losses.push_back(fmt::format("the tensor's name: '{}'", printable(name)));
    });
    OutputFile out(output, options.save.output, options.save.work.cancel);
    npz::emit_arrays(
        plan, options.save.work, emit, [&](ByteSpan piece) { out.write(piece); },
        [](const npz::PlannedArray&) {}, [] {});
    const std::uint64_t bytes = out.size();
    out.commit();
    return bytes;
  });
}

bool is_npz_note_only(std::string_view metadata, unsigned max_json_depth) {
  const npz::NpzSourceMetadata source = npz::source_metadata_from_json(metadata, max_json_depth);
  return source.other_keys.empty() && npz::says_names_only(source);
}

}  // namespace thalia::formats

namespace thalia {

std::uint64_t save_npz(const std::filesystem::path& path, const std::vector<NpzTensor>& tensors,
                       const NpzSaveOptions& options) {
  formats::SinkInput input;
  std::unordered_set<std::string_view> names;
  for (const NpzTensor& one : tensors) {
    if (!names.insert(one.name).second) {
      throw UsageError(ErrorCode::duplicate, "two tensors have one name",
                       {.path = path.string(), .tensor = printable(one.name)});
    }
    input.tensors.push_back({.name = one.name, .layout = one.tensor.layout()});
  }
  formats::SinkOptions sink;
  sink.save.output = options.output;
  sink.save.work = options.work;
  sink.save.compression.codec = options.compressed ? Codec::zstd : Codec::none;
  return formats::write_npz(path, input, sink, [&](std::size_t i, const formats::PieceSink& out) {
    out(tensors[i].tensor.bytes());
  });
}

std::uint64_t save_npy(const std::filesystem::path& path, const Tensor& tensor,
                       const OutputOptions& output) {
  formats::SinkOptions sink;
  sink.save.output = output;
  return formats::write_npy(
      path, {.tensors = {{.name = {}, .layout = tensor.layout()}}}, sink,
      [&](std::size_t, const formats::PieceSink& out) { out(tensor.bytes()); });
}

}  // namespace thalia
