// Each matrix that changed becomes factors by the decomposition that deltas of low rank have. What
// is lost is measured with the factors as they are stored.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "base/square_sum.h"
#include "base/utf8.h"
#include "codec/lossy/low_rank.h"
#include "codec/lossy/quantize.h"
#include "formats/weight_sync/adapter_config.h"
#include "formats/weight_sync/lora_tensors.h"
#include "formats/weight_sync/output_folder.h"
#include "formats/weight_sync/weight_writers.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "state/low_rank/matrix_change.h"
#include "state/low_rank/truncated_svd.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats {
namespace weight_sync {
namespace {

constexpr std::string_view kAdapterConfig = "adapter_config.json";
constexpr std::string_view kAdapterModel = "adapter_model.safetensors";
constexpr std::size_t kMostNames = 10;  // in an error

// Singular values below this part of the largest are the decomposition's own rounding, in f32.
constexpr double kLeastValue = 0x1p-20;

using Floats = std::vector<float>;

struct Factors {
  Floats down{};  ///< rank × inputs: lora_A
  Floats up{};    ///< outputs × rank: lora_B
  LowRankReport report{};
  bool is_finite = true;
};

// The first pairs, rounded as they are stored.
codec::LowRankFactors stored_factors(const state::TruncatedSvd& svd, std::uint64_t rank,
                                     std::uint64_t rows, std::uint64_t columns) {
  codec::LowRankFactors factors{.rows = rows, .columns = columns, .rank = rank};
  const auto round = [](const std::vector<double>& from, std::uint64_t count) {
    std::vector<double> out(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    for (double& number : out) number = static_cast<double>(static_cast<float>(number));
    return out;
  };
  factors.left = round(svd.left, rank * rows);
  factors.right = round(svd.right, rank * columns);
  return factors;
}

// The number of pairs that are more than rounding.
std::uint64_t meaningful_rank(const state::TruncatedSvd& svd, std::uint64_t rows) {
  const auto value =
      [&](std::uint64_t k) {  // the singular value: the vector has its root as length
        double sum = 0;
        for (const double x : std::span(svd.left).subspan(k * rows, rows)) sum += x * x;
        return sum;
      };
  std::uint64_t rank = svd.rank;
  while (rank > 1 && value(rank - 1) < kLeastValue * value(0)) --rank;
  return rank;
}

void measure(const Floats& change, const codec::LowRankFactors& factors, LowRankReport& report) {
  Floats made(change.size());
  const Floats nothing(change.size());
  state::add_products(DType::f32, factors, std::as_writable_bytes(std::span(made)), 1);
  codec::QuantizationLoss lost, all;
  const ByteSpan wanted = std::as_bytes(std::span(change));
  codec::measure_quantization(DType::f32, wanted, std::as_bytes(std::span(made)), lost);
  codec::measure_quantization(DType::f32, wanted, std::as_bytes(std::span(nothing)), all);
  report.max_error = lost.largest_error;
  report.rms_error = lost.rms_error();
  report.relative_error = root_of_ratio(lost.squared_errors, all.squared_errors);
}

Floats as_rows(const std::vector<double>& vectors) {
  return {vectors.begin(), vectors.end()};
}

Floats as_columns(const std::vector<double>& vectors, std::uint64_t rank) {
  const std::uint64_t length = vectors.size() / rank;
  Floats out(vectors.size());
  for (std::uint64_t k = 0; k < rank; ++k)
    for (std::uint64_t i = 0; i < length; ++i)
      out[i * rank + k] = static_cast<float>(vectors[k * length + i]);
  return out;
}

// nullopt where nothing changed.
std::optional<Factors> factors_of(const OpenedFile& base, const OpenedFile& next,
                                  const LoraTensor& tensor, const LoraAdapterOptions& options) {
  Factors out;
  LowRankReport& report = out.report;
  const Tensor after = next.read(tensor.after);
  report.name = next.stored(tensor.after).name;
  report.dtype = after.dtype();
  report.rows = after.shape()[0];
  report.columns = after.shape()[1];
  report.bits = 32;
  const Tensor before = base.read(tensor.before);
  if (before.dtype() == after.dtype() && std::ranges::equal(before.bytes(), after.bytes()))
    return std::nullopt;
  const auto change =
      state::matrix_change({before.dtype(), before.bytes()}, {after.dtype(), after.bytes()});
  out.is_finite = change.has_value();
  if (!change) return out;
  if (std::ranges::all_of(*change, [](float x) { return x == 0; })) return std::nullopt;
  const state::TruncatedSvd svd =
      state::truncated_svd(*change, report.rows, report.columns, options.max_rank, state::kSvdSeed);
  const std::uint64_t most = meaningful_rank(svd, report.rows);
  const auto try_rank = [&](std::uint64_t rank) {
    codec::LowRankFactors factors = stored_factors(svd, rank, report.rows, report.columns);
    measure(*change, factors, report);
    return factors;
  };
  codec::LowRankFactors factors = try_rank(most);
  if (options.max_relative_error < 1 && report.relative_error <= options.max_relative_error) {
    // The error falls with each pair.
    std::uint64_t least = 1, enough = most;
    while (least < enough) {
      const std::uint64_t middle = least + (enough - least) / 2;
      static_cast<void>(try_rank(middle));
      if (report.relative_error <= options.max_relative_error) {
        enough = middle;
      } else {
        least = middle + 1;
      }
    }
    factors = try_rank(enough);
  }
  report.rank = static_cast<std::uint32_t>(factors.rank);
  out.down = as_rows(tensor.is_transposed ? factors.left : factors.right);
  out.up = as_columns(tensor.is_transposed ? factors.right : factors.left, factors.rank);
  report.stored_bytes = (out.down.size() + out.up.size()) * sizeof(float);
  return out;
}

void check_options(const LoraAdapterOptions& options) {
  if (options.max_rank == 0) fail_argument(ErrorCode::bad_argument, "max_rank", "0", "1 or more");
  if (!(options.max_relative_error >= 0 && options.max_relative_error <= 1)) {
    fail_argument(ErrorCode::bad_argument, "max_relative_error",
                  fmt::format("{}", options.max_relative_error), "0 to 1");
  }
}

void check_left_out(const std::vector<LeftOutTensor>& tensors, const LoraAdapterOptions& options) {
  if (tensors.empty() || options.leave_out) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(tensors.size(), kMostNames); ++i) {
    names +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", printable(tensors[i].name), tensors[i].reason);
  }
  if (tensors.size() > kMostNames)
    names += fmt::format(" and {} more", tensors.size() - kMostNames);
  throw UnsupportedError(
      ErrorCode::unsupported_feature,
      "what changed and an adapter cannot hold; it may be left out (--leave-out, leave_out)",
      {.field = tensors.size() == 1 ? "1 tensor" : fmt::format("{} tensors", tensors.size()),
       .value = std::move(names),
       .bound = "changes of the weights of linear layers alone"});
}

void check_loss(const LowRankReport& report, const LoraAdapterOptions& options) {
  if (options.max_relative_error >= 1 || report.relative_error <= options.max_relative_error)
    return;
  throw UsageError(ErrorCode::bad_argument,
                   fmt::format("more of its change is lost at rank {}", report.rank),
                   {.field = "max_relative_error",
                    .tensor = printable(report.name),
                    .value = fmt::format("{:.3g}", report.relative_error),
                    .bound = fmt::format("at most {:g}", options.max_relative_error)});
}

NamedArray array_of(const std::string& module, std::string_view part, std::uint64_t rows,
                    std::uint64_t columns, const Floats& numbers) {
  return {.name = fmt::format("base_model.model.{}.{}.weight", module, part),
          .dtype = DType::f32,
          .shape = Shape{rows, columns},
          .bytes = std::as_bytes(std::span(numbers))};
}

}  // namespace
}  // namespace weight_sync

LoraAdapterResult write_adapter(const OpenedFile& base, const OpenedFile& next,
                                const std::optional<std::string>& base_name,
                                const std::filesystem::path& folder,
                                const LoraAdapterOptions& options) {
  using namespace weight_sync;
  check_options(options);
  LoraTensors found = find_lora_tensors(base, next, options.work);
  check_left_out(found.left_out, options);
  std::vector<std::optional<Factors>> factors(found.tensors.size());
  parallel_for(factors.size(), resolve_threads(options.work.threads, factors.size()),
               [&](std::size_t i) {
                 stop_if_cancelled(options.work.cancel);
                 factors[i] = factors_of(base, next, found.tensors[i], options);
               });
  LoraAdapterResult result;
  result.tensors = next.tensor_count();
  std::vector<NamedArray> arrays;
  std::vector<AdapterModule> modules;
  bool is_transposed = false;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) continue;
    const Factors& one = *factors[i];
    const LowRankReport& report = one.report;
    if (!one.is_finite) {
      found.left_out.push_back({report.name, "its change is not finite"});
      continue;
    }
    check_loss(report, options);
    const LoraTensor& tensor = found.tensors[i];
    arrays.push_back(
        array_of(tensor.module, "lora_A", report.rank, one.down.size() / report.rank, one.down));
    arrays.push_back(
        array_of(tensor.module, "lora_B", one.up.size() / report.rank, report.rank, one.up));
    modules.push_back({.name = tensor.module, .rank = report.rank});
    is_transposed = is_transposed || tensor.is_transposed;
    result.rank = std::max(result.rank, report.rank);
    result.matrices.push_back(report);
  }
  check_left_out(found.left_out, options);
  if (modules.empty()) {
    throw UsageError(ErrorCode::bad_argument, "no matrix changed that an adapter can hold",
                     {.field = "input"});
  }
  result.changed_tensors = modules.size() + found.left_out.size();
  result.left_out = std::move(found.left_out);
  const std::string config = write_adapter_config(modules, base_name, is_transposed);
  io::MadeFolders made(folder, options.output.durability);
  remove_older(folder, {kAdapterConfig, kAdapterModel}, options.output.replace);
  result.file_bytes = save_safetensors(folder / kAdapterModel, std::move(arrays),
                                       SafetensorsMetadata{{"format", "pt"}}, options.output) +
                      write_text(folder / kAdapterConfig, config, options.output, options.work);
  made.keep();
  return result;
}

}  // namespace thalia::formats
