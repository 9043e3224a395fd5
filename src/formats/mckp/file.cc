// An open file is immutable and shared by its copies; tensors are decoded when they are read. Impl
// owns what keeps the bytes alive, and `places` points at names in `parsed`, which therefore never
// moves. Errors get the file's name here, in one place.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "formats/mckp/block.h"
#include "formats/mckp/format.h"
#include "formats/mckp/impl.h"
#include "io/file/file_bytes.h"
#include "state/tensor/counted_tensor.h"

namespace thalia {
namespace {

// What is wrong with the block of a tensor.
template <typename Call>
auto in_block(const MckpTensor& tensor, const Call& call) {
  try {
    return call();
  } catch (Error& error) {
    error.add_section("block");
    error.add_tensor(printable(tensor.name));
    throw;
  }
}

}  // namespace

const MckpTensor& MckpFile::Impl::tensor(std::string_view wanted) const {
  const auto found = places.find(wanted);
  if (found != places.end()) return parsed.tensors[found->second];
  throw UsageError(ErrorCode::not_found,
                   "no such tensor" + suggestion_among(wanted, parsed.tensors, &MckpTensor::name),
                   {.path = name, .tensor = printable(wanted)});
}

void MckpFile::Impl::decode(const MckpTensor& tensor, MutableByteSpan raw, unsigned threads) const {
  with_path(name, [&] {
    stop_if_cancelled(options.chain.read.work.cancel);
    io::MemoryBudget budget(options.chain.read.input.limits, tensor.compressed_size);
    const formats::MckpBlock block = block_of(tensor);
    in_block(tensor, [&] { block.decode(raw, threads, budget); });
  });
}

formats::MckpBlock MckpFile::Impl::block_of(const MckpTensor& tensor) const {
  return in_block(tensor, [&] { return formats::MckpBlock(tensor, payload_of(tensor)); });
}

ByteSpan MckpFile::Impl::payload_of(const MckpTensor& tensor) const {
  // The payload's checksum is checked on every read, even where the file's was not.
  return in_block(tensor, [&] { return formats::mckp_payload(stored.bytes, tensor, true); });
}

Tensor MckpFile::Impl::restored(const MckpTensor& tensor, const Tensor* base,
                                unsigned threads) const {
  return with_path(name, [&] {
    stop_if_cancelled(options.chain.read.work.cancel);
    const formats::MckpBlock block = block_of(tensor);
    io::MemoryBudget budget(options.chain.read.input.limits, tensor.compressed_size);
    Tensor made = in_block(tensor, [&] {
      return state::counted_tensor(budget, "header", tensor.layout(), [](MutableByteSpan) {});
    });
    const MutableByteSpan raw = made.mutable_bytes();
    // decode() applies a difference to what is there.
    if (base != nullptr) std::ranges::copy(base->bytes(), raw.begin());
    in_block(tensor, [&] { block.decode(raw, threads, budget); });
    check_indices(tensor, made);
    return made;
  });
}

void MckpFile::Impl::check_indices(const MckpTensor& tensor, const Tensor& restored) const {
  with_path(name, [&] { in_block(tensor, [&] { formats::check_mckp_indices(restored); }); });
}

MckpFile MckpFile::from_bytes(StoredBytes bytes, std::string name, const MckpReadOptions& options) {
  auto impl = std::make_shared<Impl>();
  impl->stored = std::move(bytes);
  impl->name = std::move(name);
  impl->options = options;
  with_path(impl->name, [&] {
    impl->parsed = formats::parse_mckp(impl->stored.bytes, options.chain.read.input.limits);
    // The header says what every byte of a tensor means, so it is not used unchecked.
    if (options.verify || !impl->parsed.header_is_checked)
      formats::check_mckp_checksum(impl->stored.bytes, impl->parsed);
  });
  const std::vector<MckpTensor>& tensors = impl->parsed.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) impl->places.emplace(tensors[i].name, i);
  MckpFile file;
  file.impl_ = std::move(impl);
  return file;
}

MckpFile MckpFile::open(const std::filesystem::path& path, const MckpReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.chain.read.input.access,
                                              options.chain.read.work.cancel);
  return from_bytes({.bytes = file->bytes(), .owner = file}, path.string(), options);
}

const MckpHeader& MckpFile::header() const noexcept {
  return impl_->parsed.header;
}

const std::vector<MckpTensor>& MckpFile::tensors() const noexcept {
  return impl_->parsed.tensors;
}

const MckpTensor* MckpFile::find(std::string_view name) const noexcept {
  const auto found = impl_->places.find(name);
  return found == impl_->places.end() ? nullptr : &impl_->parsed.tensors[found->second];
}

const std::string& MckpFile::name() const noexcept {
  return impl_->name;
}

std::uint64_t MckpFile::file_bytes() const noexcept {
  return impl_->stored.bytes.size();
}

Tensor MckpFile::read(std::string_view name) const {
  const MckpTensor& tensor = impl_->tensor(name);
  if (tensor.method.delta) {
    // A header with a delta always names a previous file; parsing saw to that.
    throw MissingBaseError(header().previous->key, {.path = impl_->name,
                                                    .field = "previous_key",
                                                    .tensor = printable(name),
                                                    .value = printable(header().previous->key)});
  }
  return impl_->restored(tensor, nullptr, impl_->options.chain.read.work.threads);
}

Tensor MckpFile::read(std::string_view name, const Tensor& base) const {
  const MckpTensor& tensor = impl_->tensor(name);
  // A tensor that is stored whole needs no base, so whatever was given is fine.
  if (!tensor.method.delta)
    return impl_->restored(tensor, nullptr, impl_->options.chain.read.work.threads);
  const ErrorContext context{.path = impl_->name, .field = "base", .tensor = printable(name)};
  if (base.shape() != tensor.shape)
    throw ShapeMismatchError(tensor.shape, base.shape(), "the base of a delta", context);
  if (base.layout() != tensor.layout()) {
    const auto described = [](const TensorLayout& layout) {
      std::string text =
          fmt::format("{} {}", encoding_name(layout.encoding), dtype_name(layout.dtype));
      if (is_sparse(layout.encoding)) {
        text +=
            fmt::format(", nnz {}, indices of {} bits", layout.nnz, layout.wide_indices ? 64 : 32);
      }
      return text;
    };
    throw UsageError(ErrorCode::dtype_mismatch, "the base of a delta",
                     {.path = impl_->name,
                      .field = "base",
                      .tensor = printable(name),
                      .value = described(base.layout()),
                      .bound = described(tensor.layout())});
  }
  return impl_->restored(tensor, &base, impl_->options.chain.read.work.threads);
}

Tensor MckpFile::view(std::string_view name) const {
  const MckpTensor& tensor = impl_->tensor(name);
  // Indices have to be aligned to be checked, so those of a sparse tensor are copied.
  if (tensor.method != MckpMethod{}) return read(name);
  return with_path(impl_->name, [&] {
    stop_if_cancelled(impl_->options.chain.read.work.cancel);
    const ByteSpan payload = impl_->payload_of(tensor);
    if (payload.size() != tensor.original_size) return read(name);  // which refuses it
    return Tensor::adopt(tensor.layout(), payload, impl_.pointer());
  });
}

void MckpFile::verify() const {
  with_path(impl_->name, [&] {
    formats::check_mckp_checksum(impl_->stored.bytes, impl_->parsed);
    // The sum of the whole file covers the payloads too; this tells which one is damaged or
    // disagrees with the index.
    for (const MckpTensor& tensor : tensors())
      formats::mckp_payload(impl_->stored.bytes, tensor, true);
  });
}

}  // namespace thalia
