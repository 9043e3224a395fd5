// Headers are made before the output is created, and elements pass through a piece at a time: only
// those that change their order have to be there all at once.
#include "formats/npz/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/npz/elements.h"
#include "formats/npz/origin.h"
#include "formats/npz/plan.h"
#include "formats/source/swap_bytes.h"
#include "formats/zip/writer.h"
#include "thalia/formats/npz.h"
#include "thalia/output_file.h"

namespace thalia::formats::npz {
namespace {

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
  const npz::Origin origin = npz::origin_from_json(metadata, max_json_depth);
  return origin.other_keys.empty() && npz::says_names_only(origin);
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
