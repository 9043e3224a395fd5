// A checkpoint's file and the bases below it, open. docs/format/deltas.md, "Resolving".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "container/file/open_file.h"
#include "io/file/input_file.h"
#include "io/memory/allocation_limit.h"
#include "io/system/process.h"
#include "thalia/state/delta.h"

namespace thalia::state {

/// The names by which a tensor is found in every file of a chain.
struct TensorKey {
  std::string region;  ///< empty: a matrix of a connection
  std::string name;
  std::string source;  ///< of the connection: short names
  std::string target;
  bool delays = false;
};

/// A tensor's place in one file.
struct FilePlace {
  std::uint32_t region;  ///< the connectivity section's is region_count()
  std::uint32_t number;
};

/// One file. Immutable; any number of threads.
class ChainLink {
 public:
  explicit ChainLink(std::shared_ptr<const detail::OpenFile> file) : file_(std::move(file)) {}

  const std::shared_ptr<const detail::OpenFile>& file() const noexcept { return file_; }
  std::optional<FilePlace> find(const TensorKey& key) const;

 private:
  std::shared_ptr<const detail::OpenFile> file_;
  mutable io::Once connections_once_;
  mutable std::unordered_map<std::string, std::uint32_t> connections_;
};

class HeldBase;

/// Immutable; any number of threads.
class FileChain {
 public:
  /// @param held where the chain ends, if a delta of it is based on this: no file below is opened.
  /// @throws as ChainReader::open().
  FileChain(std::shared_ptr<const detail::OpenFile> top, const ChainOptions& options,
            std::shared_ptr<const HeldBase> held = nullptr);

  const ChainOptions& options() const noexcept { return options_; }
  /// The top first.
  std::size_t size() const noexcept { return links_.size(); }
  /// The bytes of all files on disk.
  std::uint64_t disk_bytes() const;
  const ChainLink& link(std::size_t i) const noexcept { return *links_[i]; }
  const detail::OpenFile& file(std::size_t i) const noexcept { return *links_[i]->file(); }
  /// What the lowest link is based on, where that is no file; else null.
  const HeldBase* held() const noexcept { return held_.get(); }

 private:
  std::shared_ptr<const detail::OpenFile> open_base(const detail::OpenFile& delta) const;

  ChainOptions options_;
  std::vector<std::unique_ptr<ChainLink>> links_;
  std::shared_ptr<const HeldBase> held_;
};

/// The key of a tensor of a file. @throws FormatError for a matrix without a connection.
TensorKey tensor_key(const detail::OpenFile& file, std::string_view region, std::string_view name);

const FileChain& files_of(const ChainReader& reader) noexcept;

/// verify_chain() of a file that others look at too.
VerifyReport verify_chain(const io::InputFile& input, const VerifyOptions& options,
                          const std::vector<std::filesystem::path>& search,
                          const BasePolicy& bases);
/// As reader.read(tensor); what it allocates counts in the budget, beside what a call has counted
/// before.
Tensor read_tensor(const ChainReader& reader, const TensorView& tensor,
                   std::shared_ptr<io::MemoryBudget> budget);

}  // namespace thalia::state
