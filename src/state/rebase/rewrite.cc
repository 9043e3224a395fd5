// A delta takes what two files have by the same hash from its base unread, and the old file goes:
// so nothing is taken on trust here. What was written is read again, as who restores it reads it,
// while the old file is still there.
#include "state/rebase/rewrite.h"

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/read/reader_of.h"
#include "container/write/file_digest.h"
#include "integrity/sha256.h"
#include "io/file/file_bytes.h"
#include "io/file/open_descriptor.h"
#include "io/file/posix_file.h"
#include "io/output/atomic_file.h"
#include "io/output/temporary_file.h"
#include "state/delta/file_chain.h"
#include "state/delta/save_state.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/files.h"

namespace thalia::state {
namespace {

namespace fs = std::filesystem;

bool has_sha256(const fs::path& path) {
  return is_file(path.native() + ".sha256");
}

[[noreturn]] void fail_different(const fs::path& path, std::string_view field) {
  throw IntegrityError(ErrorCode::checksum_mismatch,
                       "its other form is not the same state: it stays as it is",
                       {.path = path.string(), .field = std::string(field)});
}

// Reading a tensor holds it against its own hash.
class Comparison {
 public:
  Comparison(const ChainReader& old, const ChainReader& made, const std::stop_token& cancel)
      : old_(old), made_(made), cancel_(cancel) {}

  void run() const {
    const Reader& then = old_.reader();
    const Reader& now = made_.reader();
    require(now.metadata_json() == then.metadata_json(), "metadata");
    require(now.header().training_steps == then.header().training_steps, "training_steps");
    require(now.region_count() == then.region_count(), "region_count");
    for (std::uint32_t r = 0; r < then.region_count(); ++r) {
      const auto region = now.find_region(then.region(r).name());
      require(region.has_value(), "region");
      compare(then.region(r), *region);
    }
    require(now.connection_count() == then.connection_count(), "connection_count");
    for (std::uint32_t c = 0; c < then.connection_count(); ++c)
      compare(then.connection(c), now.connection(c));
  }

 private:
  void require(bool holds, std::string_view field) const {
    if (!holds) fail_different(old_.reader().path(), field);
  }

  void compare(const RegionView& then, const RegionView& now) const {
    require(now.config_json() == then.config_json(), "config");
    require(now.metadata_json() == then.metadata_json(), "region metadata");
    require(now.tensor_count() == then.tensor_count(), "tensor_count");
    for (std::uint32_t t = 0; t < then.tensor_count(); ++t) {
      const auto tensor = now.find(then.tensor(t).name());
      require(tensor.has_value(), "tensor");
      compare(then.tensor(t), *tensor);
    }
  }

  void compare(const ConnectionView& then, const ConnectionView& now) const {
    require(now.source == then.source && now.target == then.target, "connection");
    require(now.delays.has_value() == then.delays.has_value(), "delays");
    compare(then.weights, now.weights);
    if (then.delays) compare(*then.delays, *now.delays);
  }

  void compare(const TensorView& then, const TensorView& now) const {
    stop_if_cancelled(cancel_);
    const ChainTensor wanted = old_.describe(then);
    const ChainTensor found = made_.describe(now);
    require(found.content_hash == wanted.content_hash && found.layout == wanted.layout, "tensor");
    static_cast<void>(made_.read(now));
  }

  const ChainReader& old_;
  const ChainReader& made_;
  const std::stop_token& cancel_;
};

// Into a file that has no name yet. What was written is read again, through its base, before the
// file may take the old one's name.
RewrittenFile write_form(const ChainReader& chain, const std::optional<ChainReader>& base, int fd,
                         const SaveOptions& save, bool pack) {
  const fs::path target = chain.reader().path();
  const StateSource state = state_source(chain);
  RewrittenFile written;
  if (base) {
    DeltaOptions options{.save = save, .pack = pack};
    // A difference is compressed as all deltas are.
    options.save.compression = {};
    const DeltaResult delta = write_delta_at(state, *base, fd, target, options);
    written = {delta.file_bytes, delta.depth};
  } else {
    written = {save_state(state, fd, target, save).file_bytes, 0};
  }
  const ChainOptions& reading = files_of(chain).options();
  const auto bytes = io::open_descriptor(io::duplicate(fd, target), target, Access::copied);
  const ChainReader made = ChainReader::open(container::reader_of(bytes, reading.read), reading);
  Comparison(chain, made, save.work.cancel).run();
  return written;
}

}  // namespace

void require_rewritable(const ChainReader& chain) {
  const Reader& reader = chain.reader();
  const auto check = [&](const TensorView& tensor, std::string_view region) {
    if (tensor.encoding() != Encoding::quantized) return;
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "quantized: its codes would be lost where the file becomes another one",
                           {.path = reader.path().string(),
                            .region = printable(region),
                            .tensor = printable(tensor.name())});
  };
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
      check(region.tensor(t), region.name());
  }
  for (std::uint32_t c = 0; c < reader.connection_count(); ++c) {
    const ConnectionView connection = reader.connection(c);
    check(connection.weights, "");
    if (connection.delays) check(*connection.delays, "");
  }
}

void require_whole(const ChainReader& chain, const std::stop_token& cancel) {
  const FileChain& files = files_of(chain);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const detail::OpenFile& file = files.file(i);
    file.named([&] { file.verify_all(cancel); });
  }
}

RewrittenFile rewrite(const ChainReader& chain, const std::optional<ChainReader>& base,
                      const SaveOptions& options, bool pack) {
  const fs::path target = chain.reader().path();
  SaveOptions save = options;
  const bool has_digest = std::exchange(save.sha256, false) || has_sha256(target);
  save.output.replace = true;
  if (!save.timestamp) save.timestamp = chain.reader().header().timestamp;
  RewrittenFile written;
  const auto wrapper = read_wrapper(target);
  if (wrapper && !wrapper->packed) {
    // First as it is, in a file that goes; then in frames, which nothing packed is in.
    const io::TemporaryFile plain(target, save.output.within);
    written = write_form(chain, base, io::open_for_update(plain.path()).get(), save, false);
    if (has_digest) container::remove_sha256_file(target, save.output);
    written.bytes =
        compress_checkpoint(plain.path(), target,
                            {.compression = {.codec = wrapper->codec},
                             .output = save.output,
                             .work = {.threads = save.work.threads, .cancel = save.work.cancel}})
            .output_bytes;
  } else {
    io::AtomicFile file(target, {.output = save.output, .cancel = save.work.cancel});
    written = write_form(chain, base, file.fd(), save, pack);
    if (has_digest) container::remove_sha256_file(target, save.output);
    file.commit();
  }
  if (has_digest) {
    const auto bytes = io::FileBytes::open_whole(target, Access::copied, {});
    container::write_sha256_file(target, integrity::sha256(bytes->bytes()), save.output);
  }
  return written;
}

}  // namespace thalia::state
