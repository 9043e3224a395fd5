#include "store/save/payload.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "container/write/file_digest.h"
#include "integrity/sha256.h"
#include "io/file/posix_file.h"
#include "io/folder/clone_file.h"
#include "io/output/atomic_file.h"
#include "store/run/sidecar.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

// One file on its way. A step is told before it begins; of steps that overlap, the last.
class PayloadWriter {
 public:
  PayloadWriter(const SaveSession& session, const std::filesystem::path& path,
                const OutputOptions& output)
      : session_(session),
        output_(output),
        beside_(output.beside()),
        file_(path, {.output = output_, .cancel = session.options.cancel}) {
    // One that a crash left is replaced, and anything but a file is refused now.
    beside_.replace = true;
    container::check_sha256_name(path, beside_);
  }

  int fd() const { return file_.fd(); }
  void tell(SaveStep step) const { session_.step(step); }
  void write(ByteSpan piece) {
    stop_if_cancelled(session_.options.cancel);
    io::pwrite_all(file_.fd(), written_.bytes, piece, file_.path());
    written_.bytes += piece.size();
  }
  void digest(ByteSpan piece) { hasher_.update(piece); }
  void set_cloned(std::uint64_t bytes) {
    written_.bytes = bytes;
    written_.is_cloned = true;
  }
  Digest256 finish_digest() { return written_.sha256 = hasher_.finish(); }

  WrittenPayload commit(const std::function<void(const WrittenPayload&)>& announce = {}) {
    tell(SaveStep::sync);
    file_.prepare();
    if (output_.durability != Durability::none)
      written_.sync_seconds =
          io::sync_file(file_.fd(), output_.durability == Durability::full, file_.path());
    const std::filesystem::path path = file_.path();
    if (announce) announce(written_);
    if (output_.replace) container::remove_sha256_file(path, output_);
    tell(SaveStep::rename);
    written_.sync_seconds += file_.commit(true);
    tell(SaveStep::sidecar);
    container::write_sha256_file(path, written_.sha256, beside_);
    return written_;
  }

 private:
  const SaveSession& session_;
  const OutputOptions output_;
  OutputOptions beside_;  ///< of its digest
  io::AtomicFile file_;
  integrity::Sha256 hasher_;
  WrittenPayload written_;
};

constexpr std::uint64_t kCopied = 4 << 20;

}  // namespace

WrittenPayload write_payload(const SaveSession& session, const std::filesystem::path& path,
                             ByteSpan bytes, const OutputOptions& output) {
  session.step(SaveStep::serialize);
  PayloadWriter out(session, path, output);
  out.tell(SaveStep::digest);
  out.digest(bytes);
  out.finish_digest();
  out.tell(SaveStep::write);
  for (std::uint64_t at = 0; at < bytes.size(); at += kCopied)
    out.write(bytes.subspan(at, std::min<std::uint64_t>(kCopied, bytes.size() - at)));
  return out.commit();
}

WrittenPayload write_payload(const SaveSession& session, const std::filesystem::path& path,
                             const ByteProducer& produce, const OutputOptions& output) {
  PayloadWriter out(session, path, output);
  out.tell(SaveStep::write);
  produce([&](ByteSpan piece) {
    out.digest(piece);
    out.write(piece);
  });
  out.finish_digest();
  return out.commit();
}

WrittenPayload copy_payload(const SaveSession& session, const std::filesystem::path& path,
                            const PayloadFile& from, const OutputOptions& output,
                            const std::string& expected,
                            const std::function<void(const WrittenPayload&)>& announce) {
  const std::uint64_t size = io::file_size(from.fd, from.path);
  PayloadWriter out(session, path, output);
  out.tell(SaveStep::write);
  const bool is_cloned = io::clone_file(from.fd, out.fd());
  if (is_cloned) out.set_cloned(size);
  // What is digested is what the copy has: of a clone, the copy itself.
  const int digested = is_cloned ? out.fd() : from.fd;
  std::vector<std::byte> piece(std::min(size, kCopied));
  for (std::uint64_t at = 0; at < size; at += kCopied) {
    const MutableByteSpan part(piece.data(), std::min(kCopied, size - at));
    io::start_readahead(digested, at + kCopied, kCopied);
    io::pread_all(digested, at, part, from.path);
    out.digest(part);
    if (!is_cloned) out.write(part);
  }
  const std::string actual = hex(out.finish_digest().bytes);
  if (!expected.empty() && actual != expected) {
    throw IntegrityError(ErrorCode::checksum_mismatch, "not the bytes that were saved",
                         {.path = from.path.string(), .value = actual, .bound = expected});
  }
  return out.commit(announce);
}

}  // namespace thalia::store
