// An AtomicFile with a buffer before it. Bytes [0, written) are in the file, `gathered` holds
// what comes after them; anybody who reads or changes earlier bytes flushes first. All calls go
// through `steps`: once one has thrown, or found that a stop was requested, the temporary is
// removed and commit() refuses, so a file with a hole is never put in place.
//
// Impl stays at one address when the OutputFile is moved, because `steps` holds a pointer to it.
#include "thalia/files.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "base/stop_question.h"
#include "io/file/posix_file.h"
#include "io/output/atomic_file.h"

namespace thalia {
namespace {

// Small pieces are gathered up to here; larger ones go to the file as they are, uncopied.
constexpr std::size_t kGathered = 1 << 20;
// The kernel is told to write back every 8 MiB, so that the sync in commit() has less to wait for,
// and a stop is looked for: a tensor may be one piece of many GiB.
constexpr std::uint64_t kWriteback = 8 << 20;

}  // namespace

struct OutputFile::Impl {
  Impl(const std::filesystem::path& path, const OutputOptions& wanted, const std::stop_token& stop)
      : file(path, {.output = wanted, .cancel = stop}),
        output(wanted),
        cancel(stop),
        steps("the output", file.path().string(), [this] { file.discard(); }) {}

  // A call of the caller's, unless a stop was requested.
  template <typename Call>
  void step(const Call& call) {
    steps.run([&] {
      stop_if_wanted(cancel);
      call();
    });
  }
  void flush() {
    if (!gathered.empty()) put(gathered);
    gathered.clear();
  }
  void put(ByteSpan bytes) {
    file.require_own();
    while (!bytes.empty()) {
      stop_if_wanted(cancel);
      const ByteSpan part = bytes.first(std::min<std::uint64_t>(bytes.size(), kWriteback));
      bytes = bytes.subspan(part.size());
      io::pwrite_all(file.fd(), written, part, file.path());
      written += part.size();
      if (output.durability == Durability::none || written - handed_over < kWriteback) continue;
      io::start_writeback(file.fd(), handed_over, written - handed_over);
      handed_over = written;
    }
  }

  io::AtomicFile file;
  OutputOptions output;
  std::stop_token cancel;
  std::uint64_t written = 0;      ///< where the gathered bytes go
  std::uint64_t handed_over = 0;  ///< to the kernel, to be written back
  std::vector<std::byte> gathered;
  Steps steps;
};

OutputFile::OutputFile(const std::filesystem::path& path, const OutputOptions& output,
                       const std::stop_token& cancel)
    : impl_(std::make_unique<Impl>(path, output, cancel)) {}
OutputFile::~OutputFile() = default;
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;

void OutputFile::write(ByteSpan bytes) {
  impl_->step([&] {
    // First what was gathered, then the piece: the order in the file is that of the calls.
    if (impl_->gathered.size() + bytes.size() > kGathered) impl_->flush();
    if (bytes.size() >= kGathered) return impl_->put(bytes);
    impl_->gathered.insert(impl_->gathered.end(), bytes.begin(), bytes.end());
  });
}

void OutputFile::overwrite(std::uint64_t offset, ByteSpan bytes) {
  assert(offset <= size() && bytes.size() <= size() - offset);
  impl_->step([&] {
    impl_->flush();
    impl_->file.require_own();
    io::pwrite_all(impl_->file.fd(), offset, bytes, path());
  });
}

void OutputFile::read(std::uint64_t offset, MutableByteSpan out) {
  impl_->step([&] {
    impl_->flush();
    io::pread_all(impl_->file.fd(), offset, out, path());
  });
}

std::uint64_t OutputFile::size() const {
  return impl_->written + impl_->gathered.size();
}

double OutputFile::commit() {
  return impl_->steps.finish([&] {
    impl_->flush();
    return impl_->file.commit();
  });
}

const std::filesystem::path& OutputFile::path() const {
  return impl_->file.path();
}

}  // namespace thalia
