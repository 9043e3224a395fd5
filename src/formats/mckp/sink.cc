// Conversions to MCKP, whole or as a delta. A delta finds its base by key alone, and keys do not
// lead out of a folder. So everything that would make a file that nobody can read is looked for
// before it is written.
#include "formats/mckp/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "formats/mckp/format.h"
#include "formats/source/tensor_sink.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/files.h"
#include "thalia/formats/mckp.h"
#include "thalia/storage.h"
#include "thalia/tensor.h"

namespace thalia::formats::mckp {
namespace {

// The MCKP file that a new one is taken against.
class DeltaBase {
 public:
  /// @throws as write_mckp().
  DeltaBase(const std::filesystem::path& output, const SinkBase& base, const SinkOptions& options);

  const MckpPrevious& previous() const noexcept { return previous_; }
  /// Whether a reader of the output finds the base without being told where to look.
  bool is_found_from_output() const noexcept { return found_; }
  /// A tensor of that name and layout; nullopt if there is none.
  std::optional<Tensor> find(const std::string& name, const TensorLayout& layout) const;

 private:
  void check_chain(const std::filesystem::path& output) const;

  MckpChain chain_;
  MckpPrevious previous_;
  bool found_ = false;
};

MckpChain open_chain(const SinkBase& base, const SinkOptions& options) {
  // A difference to damaged bytes would be kept for good.
  MckpReadOptions read{.verify = true, .chain = base.chain};
  read.chain.read.work = {.threads = options.save.work.threads, .cancel = options.save.work.cancel};
  return MckpChain::open(base.path, read);
}

// From the folder where a reader begins to look; nullopt where the base lies elsewhere.
std::optional<std::string> key_from(const std::filesystem::path& folder,
                                    const std::filesystem::path& base) {
  const std::filesystem::path place = resolved_path(folder_of(base)) / base.filename();
  const std::filesystem::path from_there = place.lexically_relative(folder);
  if (from_there.empty() || *from_there.begin() == "..") return std::nullopt;
  try {
    check_storage_key(from_there.native());
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return from_there.native();
}

[[noreturn]] void refuse_base(const std::string& base, std::string message, std::string value = {},
                              std::string bound = {}) {
  throw UsageError(
      ErrorCode::bad_argument, std::move(message),
      {.path = base, .field = "base", .value = std::move(value), .bound = std::move(bound)});
}

DeltaBase::DeltaBase(const std::filesystem::path& output, const SinkBase& base,
                     const SinkOptions& options)
    : chain_(open_chain(base, options)) {
  const auto& hash = chain_.newest().header().content_hash;
  if (!hash) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a file without a content hash can be no previous checkpoint",
                           {.path = base.path.string(), .field = "content_hash"});
  }
  previous_.content_hash = *hash;
  const auto key = key_from(resolved_path(output).parent_path(), base.path);
  found_ = key.has_value();
  previous_.key = key.value_or(base.path.filename().native());
  try {
    check_storage_key(previous_.key);
  } catch (const UsageError&) {
    refuse_base(base.path.string(), "a name that is no key", printable(previous_.key),
                "1 to 255 bytes that do not begin with '.'");
  }
  if (!is_valid_utf8(previous_.key))
    refuse_base(base.path.string(), "a name that is no key", printable(previous_.key), "UTF-8");
  check_chain(output);
}

void DeltaBase::check_chain(const std::filesystem::path& output) const {
  const std::string& base = chain_.newest().name();
  if (chain_.files().size() >= kMckpMaxChain) {
    refuse_base(base, "the chain becomes too long", std::to_string(chain_.files().size() + 1),
                fmt::format("at most {} files", kMckpMaxChain));
  }
  const std::filesystem::path place = resolved_path(output);
  for (const MckpFile& file : chain_.files()) {
    if (resolved_path(file.name()) == place)
      refuse_base(base, "the output is a file that the base needs, or the base itself");
    const auto& before = file.header().previous;
    if (before && before->key == previous_.key) {
      refuse_base(base, "a previous checkpoint of the base has its key", printable(previous_.key),
                  "another name, or another folder");
    }
  }
}

std::optional<Tensor> DeltaBase::find(const std::string& name, const TensorLayout& layout) const {
  const MckpTensor* const tensor = chain_.newest().find(name);
  if (tensor == nullptr || tensor->layout() != layout) return std::nullopt;
  return chain_.read(name);
}

}  // namespace
}  // namespace thalia::formats::mckp

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
                         .header = {.training_step = input.training_steps,
                                    .metadata = input.metadata,
                                    .content_digests = options.save.leaves},
                         .output = options.save.output,
                         .work = options.save.work};
  if (base) write.header.previous = base->previous();
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
