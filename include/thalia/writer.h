// Writer: one new .thalia file, invisible until commit() has put it in its place whole.
//
//   thalia::Writer writer("run.thalia");
//   auto cortex = writer.add_region({.name = "cortex"});
//   writer.add_tensor(cortex, {.name = "w", .shape = {n, n}}, thalia::as_byte_span(weights));
//   writer.commit();
//
// docs/format/writing.md, "Writing".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/region.h"
#include "thalia/result.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia {

struct RegionId {
  std::uint32_t value;
};
struct TensorId {
  std::uint32_t value;
};
struct ConnectionId {
  std::uint32_t value;
};

/// `seconds` go from the first byte written to the return of commit().
struct SaveResult : WriteResult {
  std::uint64_t payload_bytes = 0;   ///< logical bytes of all tensors
  std::uint64_t total_neurons = 0;   ///< as in the header
  std::uint64_t total_synapses = 0;  ///< as in the header
  FileIdentity identity{};
  /// In the order in which tensors were declared, matrices of connections among them: a TensorId's
  /// value is an index.
  std::vector<TensorDigest> digests{};
  std::optional<Digest256> sha256{};  ///< of the whole file, where SaveOptions asked for it
  Codec codec = Codec::none;          ///< as asked for, or as chosen
  IoMode io = IoMode::buffered;       ///< buffered or direct: what the save used
  std::string io_fallback{};          ///< why it is not what was asked for; empty if it is
};

/// Use: declare everything, then give streamed payloads, then commit(). Externally synchronised. A
/// payload given as a span is borrowed until commit() returns. Destroyed without commit(), or after
/// an error, it leaves no trace; the file that was at the path stays as it was.
///
/// A call that begins while another one runs, as in a callback of progress, is a UsageError
/// (wrong_state) and changes nothing. So are write() and commit() in a forked child, which shares
/// the file with its parent: the file stays the parent's, also when the child's copy is destroyed.
class Writer {
 public:
  /// Creates the temporary file in the target's folder. A target that is a symbolic link is
  /// followed.
  /// @throws IoError; UsageError for options out of bounds or a target that is no regular file.
  explicit Writer(const std::filesystem::path& path, const SaveOptions& options = {});
  /// Into an empty file that is open for reading and writing, such as one in memory: it gets no
  /// name, nothing is synced, and after an error it holds anything. The descriptor stays the
  /// caller's, and open until commit() has returned. `name` is for messages. @throws UsageError for
  /// options out of bounds.
  Writer(int descriptor, const std::filesystem::path& name, const SaveOptions& options = {});
  ~Writer();
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;

  /// A JSON object, kept verbatim. @throws UsageError (bad_argument) if it is not one.
  void set_metadata(std::string json);
  void set_training_steps(std::uint64_t steps);

  /// @throws UsageError (duplicate, bad_argument) naming the region; (wrong_state) once a payload
  /// was streamed.
  RegionId add_region(RegionSpec spec);

  /// Declares a tensor whose payload comes through write().
  TensorId add_tensor(RegionId region, TensorSpec spec);
  /// Declares a tensor with its logical bytes, borrowed until commit(). @throws UsageError
  /// (size_mismatch) unless they are exactly what dtype, shape and encoding ask for.
  TensorId add_tensor(RegionId region, TensorSpec spec, ByteSpan payload);
  /// Declare a sparse tensor from borrowed arrays; encoding, nnz and wide_indices of the spec are
  /// set from them.
  template <typename Index>
  TensorId add_csr(RegionId region, TensorSpec spec, CsrArrays<Index> arrays);
  template <typename Index>
  TensorId add_coo(RegionId region, TensorSpec spec, CooArrays<Index> arrays);

  /// Declares a connection between two declared regions. @return what the two calls below take to
  /// add its matrices; weights are required.
  ConnectionId add_connection(std::string_view source_region, std::string_view target_region);
  TensorId add_connection_weights(ConnectionId connection, TensorSpec spec, ByteSpan payload);
  TensorId add_connection_delays(ConnectionId connection, TensorSpec spec, ByteSpan payload);

  /// Appends to a streamed payload, in pieces of any size. Tensors may be streamed in any order, or
  /// interleaved. With compression they come one after the other in the order of the file: by
  /// region, in a region by role (weights, homeostatic, dynamic state, then the others), then as
  /// declared. The first call ends the declarations.
  /// @throws UsageError (size_mismatch) past the payload's end, (wrong_state); IoError.
  void write(TensorId tensor, ByteSpan piece);

  /// Writes what is borrowed, the tables and the header, syncs, and renames. On an error nothing
  /// has changed at the path.
  /// @throws UsageError (size_mismatch) naming a tensor whose payload is incomplete; IoError with
  /// the failing call.
  SaveResult commit();

 private:
  friend struct detail::Inside;
  class Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  detail::Owned<Impl> impl_;
};

extern template TensorId Writer::add_csr(RegionId, TensorSpec, CsrArrays<std::uint32_t>);
extern template TensorId Writer::add_csr(RegionId, TensorSpec, CsrArrays<std::uint64_t>);
extern template TensorId Writer::add_coo(RegionId, TensorSpec, CooArrays<std::uint32_t>);
extern template TensorId Writer::add_coo(RegionId, TensorSpec, CooArrays<std::uint64_t>);

}  // namespace thalia
