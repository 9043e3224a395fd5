#include "formats/mckp/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "formats/mckp/delta_base.h"
#include "formats/mckp/format.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/formats/mckp.h"
#include "thalia/tensor.h"

namespace thalia::formats {
namespace mckp {
namespace {

// Bytes of all tensors together.
std::uint64_t check_tensors(const SinkInput& input) {
  std::uint64_t total = 0;
  for (const SinkTensor& tensor : input.tensors) {
    const auto refuse = [&](std::string message, std::string field, std::string value,
                            std::string bound) {
      throw UnsupportedError(ErrorCode::unsupported_feature, std::move(message),
                             {.field = std::move(field),
                              .tensor = printable(tensor.name),
                              .value = std::move(value),
                              .bound = std::move(bound)});
    };
    if (!is_valid_utf8(tensor.name))
      refuse("a name that mckp files have not", "name", "other bytes", "UTF-8");
    if (tensor.name.size() > kMckpMaxName) {
      refuse("the name is too long for mckp", "name", fmt::format("{} bytes", tensor.name.size()),
             std::to_string(kMckpMaxName));
    }
    const Encoding encoding = tensor.layout.encoding;
    const auto length = format::payload_length(tensor.layout);
    if ((encoding != Encoding::dense && !is_sparse(encoding)) || !length) {
      refuse("mckp has no such encoding", "encoding", std::string(encoding_name(encoding)),
             "dense, csr or coo");
    }
    total += length.value_or(0);
  }
  return total;
}

}  // namespace
}  // namespace mckp

std::uint64_t write_mckp(const std::filesystem::path& output, const SinkInput& input,
                         const SinkOptions& options, const EmitPayload& emit) {
  const std::uint64_t total =
      with_path(output.native(), [&] { return mckp::check_tensors(input); });
  std::optional<mckp::DeltaBase> base;
  if (options.base) base.emplace(output, *options.base, options);
  MckpWriteOptions write{.compression = options.save.compression,
                         .training_step = input.training_steps,
                         .metadata = input.metadata,
                         .content_digests = options.save.leaves,
                         .output = options.save.output,
                         .work = options.save.work};
  if (base) write.previous = base->previous();
  // Checks the options, and creates nothing before commit().
  MckpWriter writer(output, write);
  if (options.announce) {
    std::vector<std::string> losses;
    if (base && !base->is_found_from_output())
      losses.emplace_back("the folder of the base: a reader of the delta has to be told it");
    options.announce(losses);
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    const std::string& name = input.tensors[i].name;
    const TensorLayout& layout = input.tensors[i].layout;
    io::MemoryBudget budget(options.limits, format::payload_length(layout).value_or(UINT64_MAX));
    // Made with the first piece: a source may find out when it reads that a shape is a lie.
    std::optional<Tensor> tensor;
    std::size_t done = 0;
    const auto made = [&]() -> Tensor& {
      return tensor ? *tensor
                    : tensor.emplace(
                          state::counted_tensor(budget, "payload", layout, [](MutableByteSpan) {}));
    };
    emit(i, [&](ByteSpan piece) {
      const MutableByteSpan out = made().mutable_bytes();
      if (piece.size() > out.size() - done)
        fail_argument(ErrorCode::size_mismatch, "payload", "more",
                      fmt::format("{} bytes", out.size()));
      std::ranges::copy(piece, out.begin() + static_cast<std::ptrdiff_t>(done));
      done += piece.size();
      if (write.work.progress) write.work.progress(before + done, total);
    });
    if (done != made().bytes().size())
      fail_argument(ErrorCode::size_mismatch, "payload", fmt::format("{} bytes", done),
                    std::to_string(made().bytes().size()));
    before += done;
    writer.add(name, *std::move(tensor), base ? base->find(name, layout) : std::nullopt);
  }
  return writer.commit().file_bytes;
}

}  // namespace thalia::formats
