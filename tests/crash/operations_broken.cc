// Savers that are wrong, each in one way, and that the harness therefore has to find out. They
// write files that the library has made.
#include <fcntl.h>
#include <liburing.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "crash/content.h"
#include "crash/operation.h"
#include "support/files.h"
#include "thalia/state/edit.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace broken {
namespace {

constexpr const char* kFile = "run.thalia";

void check(bool done) {
  if (!done) throw std::runtime_error("a broken saver fails in another way than it should");
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags, 0644)) {
    check(fd_ >= 0);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void write(const std::string& bytes, std::size_t from, std::size_t to) const {
    check(::pwrite(fd_, bytes.data() + from, to - from, static_cast<off_t>(from)) ==
          static_cast<ssize_t>(to - from));
  }
  void sync() const { check(::fsync(fd_) == 0); }
  int get() const { return fd_; }

 private:
  int fd_;
};

void sync_folder(const fs::path& folder) {
  Descriptor(folder, O_RDONLY | O_DIRECTORY).sync();
}

void prepare_old(const fs::path& folder) {
  test::save(folder / kFile, network(1));
}

std::string observe_old_or_new(const fs::path& folder) {
  return content_of(folder / kFile);
}

std::string observe_recovered(const fs::path& folder) {
  return recovered_content_of(folder / kFile);
}

void go_on_as_ever(const fs::path&) {}

// Writes the new file and renames it, leaving out what the parameters say.
struct Flaws {
  bool sync_file = true;
  bool sync_before_write = false;
  bool sync_folder = true;
};

template <Flaws kFlaws>
void run_flawed(const fs::path& folder, Teller& teller) {
  const std::string bytes = test::saved(network(2));
  teller.attempt("2");
  {
    const Descriptor file(folder / "new", O_CREAT | O_WRONLY);
    const std::size_t half = bytes.size() / 2;
    file.write(bytes, 0, half);
    if (kFlaws.sync_before_write) file.sync();
    file.write(bytes, half, bytes.size());
    if (kFlaws.sync_file) file.sync();
  }
  check(::rename((folder / "new").c_str(), (folder / kFile).c_str()) == 0);
  if (kFlaws.sync_folder) sync_folder(folder);
  teller.promise("2");
}

void run_over_the_old(const fs::path& folder, Teller& teller) {
  const std::string bytes = test::saved(network(2));
  teller.attempt("2");
  const Descriptor file(folder / kFile, O_WRONLY | O_TRUNC);
  file.write(bytes, 0, bytes.size());
  file.sync();
  teller.promise("2");
}

void run_removed_first(const fs::path& folder, Teller& teller) {
  const std::string bytes = test::saved(network(2));
  teller.attempt("2");
  check(::unlink((folder / kFile).c_str()) == 0);
  const Descriptor file(folder / kFile, O_CREAT | O_WRONLY);
  file.write(bytes, 0, bytes.size());
  file.sync();
  sync_folder(folder);
  teller.promise("2");
}

// An append that writes the header with all else, or before it.
template <bool kHeaderFirst>
void run_header_too_early(const fs::path& folder, Teller& teller) {
  const test::TemporaryFolder other;
  fs::copy_file(folder / kFile, other / kFile);
  AppendOptions options{.timestamp = 1'765'000'000};
  set_in_file(other / kFile, {{"author", Value("Ada")}}, {}, options);
  const std::string bytes = test::read_file(other / kFile);
  const std::size_t old = fs::file_size(folder / kFile);
  teller.attempt("2");
  const Descriptor file(folder / kFile, O_WRONLY);
  file.write(bytes, 0, 256);
  if (kHeaderFirst) file.sync();
  file.write(bytes, old, bytes.size());
  file.sync();
  teller.promise("2");
}

// A sync that goes to the ring beside the write, and not linked after it.
void run_ring_without_link(const fs::path& folder, Teller& teller) {
  const std::string bytes = test::saved(network(2));
  teller.attempt("2");
  {
    const Descriptor file(folder / "new", O_CREAT | O_WRONLY);
    io_uring ring;
    check(::io_uring_queue_init(4, &ring, 0) == 0);
    io_uring_sqe* const write = ::io_uring_get_sqe(&ring);
    ::io_uring_prep_write(write, file.get(), bytes.data(), static_cast<unsigned>(bytes.size()), 0);
    io_uring_sqe* const sync = ::io_uring_get_sqe(&ring);
    ::io_uring_prep_fsync(sync, file.get(), 0);
    ::io_uring_sqe_set_data64(write, 1);
    ::io_uring_sqe_set_data64(sync, 2);
    check(::io_uring_submit(&ring) == 2);
    for (int i = 0; i < 2; ++i) {
      io_uring_cqe* entry = nullptr;
      check(::io_uring_wait_cqes(&ring, &entry, 1, nullptr, nullptr) == 0 && entry->res >= 0);
      ::io_uring_cqe_seen(&ring, entry);
    }
    ::io_uring_queue_exit(&ring);
  }
  check(::rename((folder / "new").c_str(), (folder / kFile).c_str()) == 0);
  sync_folder(folder);
  teller.promise("2");
}

constexpr Operation kOperations[] = {
    {"no sync of the file", prepare_old, run_flawed<Flaws{.sync_file = false}>, observe_old_or_new,
     go_on_as_ever},
    {"sync before the last write", prepare_old,
     run_flawed<Flaws{.sync_file = false, .sync_before_write = true}>, observe_old_or_new,
     go_on_as_ever},
    {"no sync of the folder", prepare_old, run_flawed<Flaws{.sync_folder = false}>,
     observe_old_or_new, go_on_as_ever},
    {"over the old file", prepare_old, run_over_the_old, observe_old_or_new, go_on_as_ever},
    {"old file removed first", prepare_old, run_removed_first, observe_old_or_new, go_on_as_ever},
    {"header with the rest", prepare_old, run_header_too_early<false>, observe_recovered,
     go_on_as_ever},
    {"header before the rest", prepare_old, run_header_too_early<true>, observe_recovered,
     go_on_as_ever},
    {"ring without a link", prepare_old, run_ring_without_link, observe_old_or_new, go_on_as_ever},
};

}  // namespace
}  // namespace broken

std::span<const Operation> broken_operations() {
  return broken::kOperations;
}

}  // namespace thalia::crash
