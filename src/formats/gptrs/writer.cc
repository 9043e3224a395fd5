// Index first, then payloads, straight through: all places are known from types and shapes, so
// nothing is kept or written twice, and one piece of one tensor is in memory.
#include "formats/gptrs/writer.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "thalia/output_file.h"

namespace thalia::formats::gptrs {
namespace {

void check_config_argument(std::string_view config_text) {
  try {
    static_cast<void>(parse_gptrs_config(config_text));
  } catch (const FormatError& error) {
    ErrorContext context = error.context();
    throw UsageError(ErrorCode::bad_argument, error.message(), std::move(context));
  }
}

std::uint64_t save_sorted(GptrsFormat format, const std::filesystem::path& path,
                          const std::vector<GptrsParam>& params, std::string_view config_text,
                          const GptrsWriteOptions& options) {
  std::vector<std::size_t> order(params.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // By bytes: std::string compares them as unsigned ones.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return params[a].name < params[b].name; });
  std::vector<PlannedTensor> planned;
  for (const std::size_t i : order) {
    const GptrsParam& param = params[i];
    if (!param.tensor.is_dense()) {
      throw UsageError(ErrorCode::bad_argument, "only dense tensors are saved in this format",
                       {.tensor = printable(param.name)});
    }
    planned.push_back({.name = param.name,
                       .dtype = param.tensor.dtype(),
                       .shape = param.tensor.shape(),
                       .requires_grad = param.requires_grad ? std::uint8_t{1} : std::uint8_t{0},
                       .store_id = options.store_ids});
  }
  const PlannedFile plan = plan_file(format, planned, config_text, options.half_types);
  return write_planned(
      path, plan, planned.size(), options.output, options.work,
      [&](std::size_t i, const PieceSink& sink) { sink(params[order[i]].tensor.bytes()); });
}

}  // namespace

std::uint64_t write_planned(const std::filesystem::path& path, const PlannedFile& plan,
                            std::size_t tensors, const OutputOptions& output, const Work& work,
                            const EmitPlanned& emit) {
  OutputFile out(path, output, work.cancel);
  out.write(as_byte_span(plan.start));
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < tensors; ++i) {
    emit(i, [&](ByteSpan piece) {
      out.write(piece);
      done += piece.size();
      if (work.progress) work.progress(done, plan.data_bytes);
    });
  }
  // Payloads come from callers who have checked their lengths; offsets in the index rely on it.
  assert(done == plan.data_bytes);
  out.commit();
  return plan.start.size() + done;
}

}  // namespace thalia::formats::gptrs

namespace thalia {

std::uint64_t save_gptrs_checkpoint(const std::filesystem::path& path,
                                    const std::vector<GptrsParam>& tensors,
                                    std::string_view config_text,
                                    const GptrsWriteOptions& options) {
  return with_path(path.native(), [&] {
    formats::gptrs::check_config_argument(config_text);
    return formats::gptrs::save_sorted(GptrsFormat::checkpoint, path, tensors, config_text,
                                       options);
  });
}

std::uint64_t save_gptrs_archive(const std::filesystem::path& path,
                                 const std::vector<GptrsParam>& tensors,
                                 const GptrsWriteOptions& options) {
  return with_path(path.native(), [&] {
    return formats::gptrs::save_sorted(GptrsFormat::archive, path, tensors, {}, options);
  });
}

}  // namespace thalia
