// Options of saving, reading and verifying: plain structs whose defaults are right for most. Every
// field has an initializer, so that a caller who names a few draws no compiler warning.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

namespace thalia {

/// How the bytes of a chunk are coded. Persistent: values are part of the format.
enum class Codec : std::uint8_t {
  none = 0,
  zstd = 1,
  lz4 = 2,
  plane_entropy = 3,
  packed_exponents = 4
};
inline constexpr std::uint8_t kCodecCount = 5;

/// What closes a file and tells whether its bytes are those that were saved. Persistent: values are
/// part of the format.
enum class ChecksumType : std::uint32_t { none = 0, sha256 = 1, crc32 = 2, block_tree = 3 };
/// What hashes the blocks of a tree. Persistent: values are part of the format.
enum class LeafAlgorithm : std::uint8_t { xxh3_128 = 1, sha256 = 2 };

/// How far a save goes before it returns.
enum class Durability {
  none,  ///< into the page cache; atomic against a crash of the process, not of the machine
  data,  ///< fdatasync before the rename: after a power loss the old file or the new
  full,  ///< and fsync of the directory: after a return, the new file even through a power loss
};

/// How bytes get between a file and memory.
enum class IoMode {
  automatic,  ///< for a save: direct if it is durable, of 8 MiB and more, and to a disk that
              ///< allows it, else buffered. For a stream: StreamOptions::io says it
  buffered,   ///< through the page cache; a durable save starts early to write it back
  direct,     ///< past it: O_DIRECT over io_uring, with aligned buffers; falls back where denied
};

/// Called now and then while a long operation runs, never concurrently with itself; done <= total,
/// both in bytes: for a save, logical bytes of payloads.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// How payloads are stored.
struct Compression {
  /// `none`: raw, so that a reader can view them in place. `zstd`, `lz4`: in chunks, each a
  /// standard frame. `plane_entropy`, `packed_exponents`: in chunks that code floats by how often
  /// their exponents occur, the first smaller, the second at the speed of memory; other payloads as
  /// suits them. nullopt: what the call does by default, for most of them none.
  std::optional<Codec> codec{};
  /// 1 to 22 for zstd, 1 to 12 for lz4; 0 is the default of the codec (3 and 1), and the only level
  /// of the other codecs.
  int level = 0;
  /// Raw bytes of a chunk when compressing, 4 KiB to 1 GiB.
  std::uint32_t chunk_bytes = 1 << 20;
};

/// What a call may take of the machine, and how its caller hears of it and stops it. Where a call
/// has no use for a part, its options say so.
struct Work {
  /// Threads that hash, compress, convert, read and write; 0: one for each core.
  unsigned threads = 0;
  /// Buffers take at most this much memory, whatever the size of the file; 4 MiB or more. nullopt:
  /// 128 MiB, where the options of a call name no other default.
  std::optional<std::uint64_t> memory_bytes{};
  Progress progress{};
  /// Once a stop is requested, from any thread, the call ends with CancelledError and leaves what
  /// it leaves after an error: the old file.
  std::stop_token cancel{};
};

/// How a reader gets at a file's bytes. Views, look-ups and checks are the same.
enum class Access {
  mapped,    ///< in place: nothing is copied, and all readers of a file share one copy, the page
             ///< cache's. Where the file shrinks or its disk fails, touching a view raises SIGBUS.
             ///< A file that is larger than the address space that the process may have (ulimit -v)
             ///< is copied
  copied,    ///< with checked reads into memory of the reader's own, 64 KiB at a time, before they
             ///< are first handed out. A file that shrinks or a disk that fails is a FormatError
             ///< (truncated) or an IoError, and bytes once handed out never change
  writable,  ///< as mapped, and who casts the const of a view away may write to it: the page is
             ///< copied for this reader, and the file never changes. Later reads and checks of
             ///< these bytes may meet what was written
};

/// Limits, checked before anything that a file claims is allocated or walked. What passes one
/// throws FormatError with code limit_exceeded, naming the limit and how far it was passed.
struct ReadLimits {
  /// The size of the whole file as it lies there, and of what frames around it hold. 0: any. The
  /// reader maps the file and allocates nothing in proportion to its size.
  std::uint64_t max_file_bytes = 0;
  std::uint32_t max_regions = 1u << 24;
  std::uint32_t max_tensors = 1u << 28;
  std::uint64_t max_json_bytes = 1ull << 30;  ///< of one JSON text
  unsigned max_json_depth = 256;
  std::optional<std::uint64_t> max_allocation_bytes{};  ///< not set: what fits file and machine
};

/// From now on stands for ReadLimits::max_allocation_bytes in this process wherever that is not
/// set; 0: what fits the file and the machine again (docs/contribute/security.md, "Limits"). Any
/// thread.
void set_default_allocation_limit(std::uint64_t bytes) noexcept;

/// How a file is read. Where a call has no use for a part, its options say so.
struct InputOptions {
  Access access = Access::mapped;
  ReadLimits limits{};
  /// Also files that the current program of their format refuses as too old, as GPTRSCHK 1, and
  /// whatever else of the same format it takes (docs/format/gptrs.md, "Reading").
  bool legacy = false;
};

/// Which files a checkpoint may name as the one that it was taken against. What a file names is
/// opened if it is a regular file, and used where its identity is the one that the file asks
/// for. By default, it has to be named by a path from the file's folder, which may lead out of
/// it; only the file name of an absolute path counts. docs/contribute/security.md, "Files that a
/// file names".
struct BasePolicy {
  bool absolute = false;  ///< absolute paths are opened as they are
  /// Not empty: only what lies in this folder or below it, links followed, is opened. This counts
  /// for folders that are searched too.
  std::filesystem::path folder{};
};

/// For those who read files of strangers.
inline BasePolicy within(std::filesystem::path folder) {
  return {.absolute = true, .folder = std::move(folder)};
}

/// What a symbolic link at the path of an output is.
enum class OutputLink {
  refused,   ///< UsageError (bad_argument)
  followed,  ///< the way to the file that is written, which need not exist yet
  replaced,  ///< a name like any other: the new file takes it, and what the link leads to stays
};

/// How a file is written.
struct OutputOptions {
  Durability durability = Durability::full;
  /// false: a file that is there already stays, and writing is a UsageError (exists): at once, or
  /// where the file appears meanwhile, when the new one would get its name.
  bool replace = true;
  /// Equal input gives equal bytes: a file says that it was saved at SOURCE_DATE_EPOCH, or at 0,
  /// and its identity follows from what it declares. A timestamp or a uuid that is given counts all
  /// the same.
  bool reproducible = false;
  /// How the path that the caller names is treated. Files that get their names from it, as
  /// NAME.sha256 and the shards of a model, are never written through a link.
  OutputLink link = OutputLink::refused;
  /// Not empty: the path begins with this folder, and no link below it is followed, at any of its
  /// names; for folders in which strangers may have put links. docs/contribute/security.md,
  /// "Links".
  std::filesystem::path within{};

  bool follows_link() const noexcept { return link == OutputLink::followed && within.empty(); }
  /// The options for a file whose name follows from that of the output.
  OutputOptions beside() const {
    OutputOptions options = *this;
    if (link == OutputLink::followed) options.link = OutputLink::refused;
    return options;
  }
};

struct SaveOptions {
  // --- Affecting the file ---------------------------------------------------
  ChecksumType checksum = ChecksumType::block_tree;
  /// Leaves of the block tree: XXH3-128 at memory speed, or SHA-256 for tamper evidence.
  LeafAlgorithm leaves = LeafAlgorithm::xxh3_128;
  /// Blocks of the tree are 2^block_log2 bytes, 12 to 30. Damage to one byte reaches as far as its
  /// block. nullopt: by the size of the file, from 4 KiB (up to 1 MiB) to 1 MiB (beyond 16 MiB);
  /// regions and tables of small files then begin on blocks of their own.
  std::optional<unsigned> block_log2{};
  Compression compression{};
  /// In place of a codec and a level: tries a sample of the borrowed payloads and the speed of the
  /// target, and compresses where that makes the save faster. SaveResult tells what it chose.
  bool automatic_codec = false;
  /// Also SHA-256 of the whole file, computed while it is written: SaveResult::sha256, and
  /// NAME.sha256 next to the file, for `sha256sum -c`. The file is in place before that one is.
  bool sha256 = false;
  /// Seconds since 1970 for the header; nullopt: now, or as OutputOptions::reproducible says.
  std::optional<std::uint64_t> timestamp{};
  /// Identity of the file; nullopt: random, or as OutputOptions::reproducible says.
  std::optional<std::array<std::uint8_t, 16>> file_uuid{};

  // --- Affecting the work ---------------------------------------------------
  OutputOptions output{};
  IoMode io = IoMode::automatic;
  /// Direct writes in flight, of all threads together, 1 to 1024.
  unsigned queue_depth = 16;
  Work work{};  ///< a stop counts at the next extent or chunk
};

/// When a reader checks the bytes that it hands out against the file's checksum.
enum class Verification {
  off,             ///< never; structure is still checked before it is used
  on_first_touch,  ///< each block of the block tree once, before its bytes are first handed out.
                   ///< Files with another checksum type are checked tensor by tensor against the
                   ///< directory's CRC-32. A tensor in a damaged block can still be read if
                   ///< its entry is verified and its CRC-32 and content hash hold
  at_open,         ///< the whole file, before open returns
  by_tensor,       ///< each tensor, or chunk of one, on its own instead of the blocks, against its
                   ///< CRC-32: to get what is sound out of a damaged file. Names, tables and texts
                   ///< are not verified
};

struct ReadOptions {
  InputOptions input{};
  Verification verification = Verification::on_first_touch;
  /// Where the header does not hold, reads the file by the commit record that recover() would
  /// restore, and changes nothing. To find it reads the file up to twice.
  bool use_commit_record = false;
  /// Threads, and the stop, which also ends what a view reads. No memory_bytes, as all buffers are
  /// the caller's, and no progress.
  Work work{};
};

/// How a file is read, and those that it names: bases of deltas, shards of models, external data.
struct ChainOptions {
  ReadOptions read{};  ///< of every file
  /// Folders in which a base is looked for when it is not where its delta says.
  std::vector<std::filesystem::path> search{};
  BasePolicy bases{};  ///< which files a file may name
  /// Deltas that a chain may have; a deeper one is a FormatError (limit_exceeded). Chains of .mckp
  /// files have the bound of their format, 1,024 files.
  unsigned max_depth = 256;
};

struct VerifyOptions {
  /// With copied access, bytes that cannot be read are findings. The file then passes through a
  /// buffer of 1 MiB a thread; tables, and the compressed and sparse tensors being checked, are in
  /// memory.
  InputOptions input{};
  bool quick = false;                 ///< structure only: no payload byte is read
  std::uint64_t max_findings = 1000;  ///< further findings are counted, not kept
  Work work{};                        ///< all but memory_bytes
};

}  // namespace thalia
