#include "container/sequential_output.h"

#include "io/posix_file.h"

namespace thalia::container {
namespace {

constexpr std::uint64_t kWriteback = 8 << 20;

}  // namespace

SequentialOutput::SequentialOutput(const std::filesystem::path& path, Durability durability)
    : file_(path, {.durability = durability}), durability_(durability) {}

void SequentialOutput::write(ByteSpan bytes) {
  io::pwrite_all(file_.fd(), written_, bytes, file_.path());
  written_ += bytes.size();
  if (durability_ == Durability::none || written_ - handed_over_ < kWriteback) return;
  io::start_writeback(file_.fd(), handed_over_, written_ - handed_over_);
  handed_over_ = written_;
}

void SequentialOutput::commit() {
  file_.commit();
}

}  // namespace thalia::container
