// A checkpoint and those that its deltas were taken against, newest first: files_[i + 1] is the one
// that files_[i] names, and has the content hash that files_[i] expects. The oldest names none. All
// are open before the first tensor is read, so a chain that was opened does not miss a file later.
//
// Names of previous files come from the files and are not trusted: they must be legal keys, may not
// repeat, and at most 1,024 files make a chain. What is found under a name and does not fit is
// never described. Else a crafted delta could be used to probe files.
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/mckp/content_hash_list.h"
#include "formats/mckp/format.h"
#include "formats/mckp/impl.h"
#include "io/path/base_file.h"
#include "io/path/real_path.h"
#include "thalia/text.h"

namespace thalia {
namespace {

constexpr std::string_view kStorage = "the storage";

// Finds the file that is wanted; nullopt if nothing is there. `tried` gets places that have
// something which cannot be read or may not, and why.
using Lookup =
    std::function<std::optional<MckpFile>(const MckpPrevious& wanted, std::string& tried)>;

[[noreturn]] void fail_wrong(const MckpPrevious& wanted, const std::string& place) {
  throw IntegrityError(
      ErrorCode::checksum_mismatch,
      fmt::format("'{}' is not the previous checkpoint that the delta was taken against, or cannot "
                  "be read as one",
                  printable(place)),
      {.section = "header",
       .field = "previous_checkpoint_hash",
       .bound = hex(wanted.content_hash.bytes)});
}

// nullopt where the bytes are something else. A file without a content hash does not say what it
// is, so it is not what is wanted.
std::optional<MckpFile> if_wanted(StoredBytes bytes, const std::string& name,
                                  const MckpPrevious& wanted, const MckpReadOptions& options) {
  try {
    MckpFile file = MckpFile::from_bytes(std::move(bytes), name, options);
    if (file.header().content_hash == wanted.content_hash) return file;
  } catch (const FormatError&) {
  } catch (const IntegrityError&) {
  } catch (const UnsupportedError&) {
  }
  return std::nullopt;
}

// `place` is where previous files should be, for messages.
void follow(std::vector<MckpFile>& files, std::set<std::string> keys, const std::string& path,
            std::string_view place, const Lookup& look_up) {
  while (const auto previous = files.back().header().previous) {
    if (files.size() == formats::kMckpMaxChain)
      fail_limit("header", "length of a chain", files.size() + 1, formats::kMckpMaxChain);
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
    with_path(path, [&] {
      std::string tried;
      auto file = look_up(*previous, tried);
      if (!file) {
        throw MissingBaseError(previous->key,
                               {.field = "previous_key",
                                .value = printable(previous->key) + tried,
                                .bound = "a file of that key in " + std::string(place)});
      }
      files.push_back(*std::move(file));
    });
  }
}

// Access::copied bypasses the storage's own view(), which may map a file.
StoredBytes bytes_of(const StorageBackend& storage, std::string_view key,
                     const MckpReadOptions& options) {
  return options.chain.read.input.access == Access::copied ? storage.StorageBackend::view(key)
                                                           : storage.view(key);
}

Lookup in_storage(const StorageBackend& storage, const MckpReadOptions& options) {
  return [&storage, options](const MckpPrevious& wanted, std::string&) -> std::optional<MckpFile> {
    StoredBytes bytes;
    try {
      bytes = bytes_of(storage, wanted.key, options);
    } catch (const StorageError& error) {
      if (error.errno_value() == ENOENT) return std::nullopt;
      throw;
    }
    if (auto file = if_wanted(std::move(bytes), wanted.key, wanted, options)) return file;
    fail_wrong(wanted, wanted.key);
  };
}

// Tries the whole key, as a storage has it below a folder, and its last name, as files lie side by
// side. A key holds no ".." and is no absolute path, so only links could lead out of a folder.
// io::open_base() opens a place once, and holds what it has opened against the policy.
std::optional<MckpFile> in_folders(const std::vector<std::filesystem::path>& folders,
                                   const MckpPrevious& wanted, const MckpReadOptions& options,
                                   std::string& tried) {
  const std::string last = wanted.key.substr(wanted.key.rfind('/') + 1);
  std::optional<std::string> wrong;
  for (const std::filesystem::path& folder : folders) {
    for (const std::string& name : {wanted.key, wanted.key + ".mckp", last, last + ".mckp"}) {
      const std::filesystem::path place = folder / name;
      const io::BaseFile found =
          io::open_base(place, options.chain.read.input.access, options.chain.bases);
      if (!found.bytes) {
        if (!found.reason.empty())
          tried += fmt::format(", '{}' ({})", printable(place.string()), found.reason);
        continue;
      }
      found.bytes->touch_whole(options.chain.read.work.cancel);
      if (auto file =
              if_wanted({found.bytes->bytes(), found.bytes}, place.string(), wanted, options))
        return file;
      // Another folder may have the right one. If none has, the first wrong place is named.
      if (!wrong) wrong = place.string();
    }
  }
  if (wrong) fail_wrong(wanted, *wrong);
  return std::nullopt;
}

}  // namespace

MckpChain MckpChain::open(const StorageBackend& storage, std::string_view key,
                          const MckpReadOptions& options) {
  MckpChain chain;
  const std::string name(key);
  chain.files_.push_back(MckpFile::from_bytes(bytes_of(storage, key, options), name, options));
  follow(chain.files_, {name}, name, kStorage, in_storage(storage, options));
  return chain;
}

MckpChain MckpChain::open(const StorageBackend& storage, const MckpFile& newest,
                          const MckpReadOptions& options) {
  MckpChain chain;
  chain.files_.push_back(newest);
  follow(chain.files_, {}, formats::impl_of(newest).name, kStorage, in_storage(storage, options));
  return chain;
}

MckpChain MckpChain::open(const std::filesystem::path& path, const MckpReadOptions& options) {
  MckpReadOptions checked = options;
  checked.verify = false;  // the call below does
  return open(path, MckpFile::open(path, checked), options);
}

MckpChain MckpChain::open(const std::filesystem::path& path, const MckpFile& newest,
                          const MckpReadOptions& options) {
  MckpChain chain;
  chain.files_.push_back(newest);
  if (options.verify) {
    with_path(formats::impl_of(newest).name, [&] {
      formats::check_mckp_checksum(formats::impl_of(newest).stored.bytes,
                                   formats::impl_of(newest).parsed);
    });
  }
  std::vector<std::filesystem::path> folders{io::real_path(path).parent_path()};
  folders.insert(folders.end(), options.chain.search.begin(), options.chain.search.end());
  follow(chain.files_, {}, path.string(), "its folder, or one to search",
         [&](const MckpPrevious& wanted, std::string& tried) {
           return in_folders(folders, wanted, options, tried);
         });
  return chain;
}

Tensor MckpChain::read(std::string_view name) const {
  return read(name, formats::impl_of(newest()).options.chain.read.work.threads);
}

Tensor MckpChain::read(std::string_view name, unsigned threads) const {
  const MckpTensor& wanted = formats::impl_of(newest()).tensor(name);
  // The tensor of each file down to the one that has it whole.
  std::vector<const MckpTensor*> stages{&wanted};
  // A delta has a previous file, which parse_mckp_header() checked; so files_ reaches far enough.
  while (stages.back()->method.delta) {
    const MckpFile& file = files_[stages.size()];
    const MckpTensor* const base = file.find(name);
    if (base == nullptr || base->layout() != wanted.layout()) {
      throw FormatError(ErrorCode::inconsistent, "the previous checkpoint has no such tensor",
                        {.path = formats::impl_of(file).name,
                         .tensor = printable(name),
                         .bound = fmt::format("{} {} {}", encoding_name(wanted.layout().encoding),
                                              dtype_name(wanted.dtype), wanted.shape.to_string())});
    }
    stages.push_back(base);
  }
  Tensor tensor =
      formats::impl_of(files_[stages.size() - 1]).restored(*stages.back(), nullptr, threads);
  // From the oldest on, each difference is applied in place: one tensor in memory, not one a file.
  for (std::size_t i = stages.size() - 1; i-- > 0;)
    formats::impl_of(files_[i]).decode(*stages[i], tensor.mutable_bytes(), threads);
  if (stages.size() > 1) formats::impl_of(newest()).check_indices(wanted, tensor);
  return tensor;
}

void MckpChain::verify_content() const {
  const MckpHeader& header = newest().header();
  formats::ContentHashList hashes(header.content_digests);
  for (const MckpTensor& tensor : newest().tensors()) {
    const Tensor restored = read(tensor.name);
    hashes.add(tensor.name, tensor.layout(), tensor.original_size,
               formats::tensor_digest(header.content_digests, restored.bytes(),
                                      formats::impl_of(newest()).options.chain.read.work.threads));
  }
  const auto& expected = header.content_hash;
  const Digest256 actual = hashes.finish();
  if (!expected || *expected == actual) return;
  throw IntegrityError(ErrorCode::checksum_mismatch, "the content hash",
                       {.path = formats::impl_of(newest()).name,
                        .section = "header",
                        .field = "content_hash",
                        .value = hex(actual.bytes),
                        .bound = hex(expected->bytes)});
}

}  // namespace thalia
