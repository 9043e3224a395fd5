#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "integrity/sha256.h"
#include "interop/content_hash_list.h"
#include "interop/hex_text.h"
#include "interop/mckp_format.h"
#include "interop/mckp_impl.h"

namespace thalia {
namespace {

// nullopt where there is none of that key.
using Lookup = std::function<std::optional<MckpFile>(const std::string& key)>;

void check_hash(const MckpPrevious& wanted, const MckpFile& found, const std::string& path) {
  const auto& actual = found.header().content_hash;
  if (!actual || *actual == wanted.content_hash) return;
  throw IntegrityError(ErrorCode::checksum_mismatch,
                       "the previous checkpoint is another than the delta was taken against",
                       {.path = path,
                        .section = "header",
                        .field = "previous_checkpoint_hash",
                        .value = interop::hex_text(*actual),
                        .bound = interop::hex_text(wanted.content_hash)});
}

void follow(std::vector<MckpFile>& files, std::set<std::string> keys, const std::string& path,
            const Lookup& look_up) {
  while (const auto previous = files.back().header().previous) {
    if (files.size() == interop::kMckpMaxChain)
      fail_limit("header", "length of a chain", files.size() + 1, interop::kMckpMaxChain);
    if (!keys.insert(previous->key).second) {
      throw FormatError(ErrorCode::inconsistent, "a cycle of previous checkpoints",
                        {.path = path,
                         .section = "header",
                         .field = "previous_key",
                         .value = printable(previous->key)});
    }
    try {
      check_storage_key(previous->key);
    } catch (const UsageError&) {
      throw FormatError(ErrorCode::bad_name, "not a key",
                        {.path = path,
                         .section = "header",
                         .field = "previous_key",
                         .value = printable(previous->key)});
    }
    auto file = look_up(previous->key);
    if (!file) {
      throw MissingBaseError(
          previous->key,
          {.path = path, .field = "previous_key", .value = printable(previous->key)});
    }
    check_hash(*previous, *file, path);
    files.push_back(*std::move(file));
  }
}

Lookup in_storage(const StorageBackend& storage, const MckpReadOptions& options) {
  return [&storage, options](const std::string& key) -> std::optional<MckpFile> {
    try {
      return MckpFile::from_bytes(storage.view(key), key, options);
    } catch (const StorageError& error) {
      if (error.errno_value() == ENOENT) return std::nullopt;
      throw;
    }
  };
}

}  // namespace

MckpChain MckpChain::open(const StorageBackend& storage, std::string_view key,
                          const MckpReadOptions& options) {
  MckpChain chain;
  const std::string name(key);
  chain.files_.push_back(MckpFile::from_bytes(storage.view(key), name, options));
  follow(chain.files_, {name}, name, in_storage(storage, options));
  return chain;
}

MckpChain MckpChain::open(const StorageBackend& storage, const MckpFile& newest,
                          const MckpReadOptions& options) {
  MckpChain chain;
  chain.files_.push_back(newest);
  follow(chain.files_, {}, newest.impl_->name, in_storage(storage, options));
  return chain;
}

MckpChain MckpChain::open(const std::filesystem::path& path, const MckpReadOptions& options) {
  MckpChain chain;
  chain.files_.push_back(MckpFile::open(path, options));
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  follow(chain.files_, {}, path.string(), [&](const std::string& key) -> std::optional<MckpFile> {
    std::filesystem::path at = folder;
    for (auto names = std::count(key.begin(), key.end(), '/') + 1; names > 0; --names) {
      for (const std::string& name : {key, key + ".mckp"}) {
        std::error_code ignored;
        if (std::filesystem::is_regular_file(at / name, ignored))
          return MckpFile::open(at / name, options);
      }
      at = at.parent_path();
    }
    return std::nullopt;
  });
  return chain;
}

Tensor MckpChain::read(std::string_view name) const {
  return read(name, newest().impl_->options.threads);
}

Tensor MckpChain::read(std::string_view name, unsigned threads) const {
  const MckpTensor& wanted = newest().impl_->tensor(name);
  // The tensor of each file down to the one that has it whole.
  std::vector<const MckpTensor*> stages{&wanted};
  while (stages.back()->method.delta) {
    const MckpFile& file = files_[stages.size()];
    const MckpTensor* const base = file.find(name);
    if (base == nullptr || base->dtype != wanted.dtype || base->shape != wanted.shape) {
      throw FormatError(
          ErrorCode::inconsistent, "the previous checkpoint has no such tensor",
          {.path = file.impl_->name,
           .tensor = printable(name),
           .bound = fmt::format("{} {}", dtype_name(wanted.dtype), wanted.shape.to_string())});
    }
    stages.push_back(base);
  }
  Tensor tensor = files_[stages.size() - 1].impl_->restored(*stages.back(), nullptr, threads);
  for (std::size_t i = stages.size() - 1; i-- > 0;)
    files_[i].impl_->decode(*stages[i], tensor.mutable_bytes(), threads);
  return tensor;
}

void MckpChain::verify_content() const {
  interop::ContentHashList hashes;
  for (const MckpTensor& tensor : newest().tensors()) {
    const Tensor restored = read(tensor.name);
    hashes.add(tensor.name, tensor.dtype, tensor.shape, tensor.original_size,
               integrity::sha256(restored.bytes()));
  }
  const auto& expected = newest().header().content_hash;
  const Digest256 actual = hashes.finish();
  if (!expected || *expected == actual) return;
  throw IntegrityError(ErrorCode::checksum_mismatch, "the content hash",
                       {.path = newest().impl_->name,
                        .section = "header",
                        .field = "content_hash",
                        .value = interop::hex_text(actual),
                        .bound = interop::hex_text(*expected)});
}

}  // namespace thalia
