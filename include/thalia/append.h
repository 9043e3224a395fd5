// Appender: regions added to, replaced in and removed from a .thalia file in place, with a crash
// leaving the old state or the new one.
//
//   thalia::Appender appender("run.thalia");
//   auto grown = appender.replace_region({.name = "cortex", .n_neurons = n});
//   appender.add_tensor(grown, {.name = "w", .shape = {n, n}}, thalia::as_byte_span(weights));
//   appender.commit();
//
// docs/format/writing.md, "In-place append".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/region.h"
#include "thalia/result.h"
#include "thalia/tensor.h"
#include "thalia/types.h"
#include "thalia/writer.h"

namespace thalia {

/// How a file that is there is changed, or written anew without its dead bytes.
struct ChangeOptions {
  /// With durability `none` nothing is synced: after a power loss a file that was appended to may
  /// need recover(), or be damaged. `data` and `full` sync before its header is written and once
  /// more after.
  OutputOptions output{};
  /// Wait while another appender, compact() or recover() holds the file; else that is an IoError.
  bool wait = false;
  InputOptions input{};  ///< of the file
  /// All but memory_bytes of an append, whose progress is of the bytes that are written. All but
  /// progress of compact(). A stop that was requested ends Appender::commit() with CancelledError
  /// and the old state, up to the moment when the header is written.
  Work work{};
};

/// Checksum type, leaves and block size are the file's.
struct AppendOptions {
  /// For the tensors that are added. All of them stay in memory until they are written.
  Compression compression{};
  /// Seconds since 1970 for the header; nullopt: now.
  std::optional<std::uint64_t> timestamp{};
  ChangeOptions change{};
};

/// `seconds` are those of commit().
struct AppendResult : WriteResult {
  std::uint64_t appended_bytes = 0;  ///< written after the old end, tables and padding among them
  std::uint64_t dead_bytes = 0;      ///< of the whole file now; compact() gives them back
  std::uint64_t generation = 0;
};

/// Use: declare everything, then commit(). Externally synchronised. Payloads are borrowed until
/// commit() returns.
///
/// Until commit() nothing is written: destroyed without it, an appender leaves the file byte for
/// byte as it was. Readers need no lock: one that is open stays on its generation, whose bytes
/// never change, and one that opens meanwhile gets the old one or the new.
///
/// Unchanged regions are not read. The header, the tables, the block of the tree in which old and
/// new bytes meet, and the first bytes of regions that go are read. The checksum types sha256 and
/// crc32 cover everything before them: with these the whole file is read, twice.
class Appender {
 public:
  /// Locks the file (flock) until commit() or the end of the appender, and checks its header and
  /// tables. @throws IoError, with EWOULDBLOCK where the file is locked; FormatError,
  /// IntegrityError: recover() may help where the header is damaged; UnsupportedError for a delta
  /// and for what a newer version wrote; UsageError for options out of bounds.
  explicit Appender(const std::filesystem::path& path, const AppendOptions& options = {});
  ~Appender();
  Appender(Appender&&) noexcept;
  Appender& operator=(Appender&&) noexcept;

  /// What is not set stays. @throws UsageError (bad_argument) if it is no JSON object.
  void set_metadata(std::string json);
  void set_training_steps(std::uint64_t steps);

  /// @throws UsageError (duplicate) where the file has a region of that name.
  RegionId add_region(RegionSpec spec);
  /// A new region, with tensors of its own, in the place of one of that name. Connections from and
  /// to it stay. @throws UsageError (not_found).
  RegionId replace_region(RegionSpec spec);
  /// With its connections. @throws UsageError (not_found); (wrong_state) where a connection that
  /// was added here names it.
  void remove_region(std::string_view name);
  /// Takes over a region of another file with its texts and tensors, compressed ones as they are
  /// stored; replaces one of that name. The view's file has to stay open until commit() returns.
  /// @throws IntegrityError, FormatError; UnsupportedError for an encoding that needs a base.
  RegionId copy_region(const RegionView& region);

  /// Declares a tensor of a region that was added or replaced here, with its logical bytes.
  /// @throws UsageError as Writer::add_tensor.
  TensorId add_tensor(RegionId region, TensorSpec spec, ByteSpan payload);
  /// Takes over tensor(i) of a region of a file as it is stored, for a region that was added or
  /// replaced here. @param name a new one; empty: its own. @throws as copy_region(); UsageError as
  /// add_tensor(), (not_found) for another i.
  TensorId copy_tensor(RegionId region, const RegionView& from, std::uint32_t i,
                       std::string_view name = {});
  template <typename Index>
  TensorId add_csr(RegionId region, TensorSpec spec, CsrArrays<Index> arrays);
  template <typename Index>
  TensorId add_coo(RegionId region, TensorSpec spec, CooArrays<Index> arrays);

  /// Any change of connections writes all of their matrices anew: they are one section of the file.
  /// A connection is replaced by removing and adding it.
  ConnectionId add_connection(std::string_view source_region, std::string_view target_region);
  TensorId add_connection_weights(ConnectionId connection, TensorSpec spec, ByteSpan payload);
  TensorId add_connection_delays(ConnectionId connection, TensorSpec spec, ByteSpan payload);
  /// @throws UsageError (not_found).
  void remove_connection(std::string_view source_region, std::string_view target_region);

  /// Writes what is new after the file's end, syncs, overwrites the header, syncs. After an error
  /// the old state holds and the file has its old length, with two exceptions. If the header could
  /// neither be written nor put back, the file keeps what was appended, and recover() restores the
  /// old state or the new one. If the last sync fails, the new state is in place and may be lost
  /// with the power. An error leaves the appender without a file.
  /// @throws IoError; UsageError (wrong_state) where the path names another file by now;
  /// IntegrityError where what would be carried over is damaged; CancelledError.
  AppendResult commit();

 private:
  class Impl;
  detail::Owned<Impl> impl_;
};

extern template TensorId Appender::add_csr(RegionId, TensorSpec, CsrArrays<std::uint32_t>);
extern template TensorId Appender::add_csr(RegionId, TensorSpec, CsrArrays<std::uint64_t>);
extern template TensorId Appender::add_coo(RegionId, TensorSpec, CooArrays<std::uint32_t>);
extern template TensorId Appender::add_coo(RegionId, TensorSpec, CooArrays<std::uint64_t>);

// A file without what appends left behind. docs/format/writing.md, "Compaction".

/// `input_bytes` are those of the old file, debris included.
struct CompactResult : RewriteResult {
  std::uint32_t regions = 0;
  Digest256 closing_checksum{};
};

/// Writes the file anew, tensor by tensor as they are stored, and puts it in the old one's place as
/// a save does: a crash leaves the old file or the new one, and open readers keep the old. The new
/// file is of generation 1 and has an identity of its own; timestamp, training steps, texts,
/// checksum type and content hashes are the old one's. Every byte is verified on the way.
///
/// Holds the file's lock, so that no append is lost. A save to the same path takes no lock: if one
/// ends meanwhile, compact() replaces its file.
/// @throws IoError, with EWOULDBLOCK where the file is locked; IntegrityError, FormatError;
/// UnsupportedError for a delta, an encoding that needs a base, and what a newer version wrote;
/// CancelledError. The old file is in place then.
CompactResult compact(const std::filesystem::path& path, const ChangeOptions& options = {});

/// The same into another file, which is replaced if there is one; `input` stays as it is.
CompactResult compact(const std::filesystem::path& input, const std::filesystem::path& output,
                      const ChangeOptions& options = {});

}  // namespace thalia
