// The span begins at the window; fd() is the whole file, so reads through it add begin(). A
// duplicated descriptor keeps FileBytes the sole owner of its own.
#include "io/file/file_window.h"

#include "io/file/posix_file.h"

namespace thalia::io {

FileWindow::FileWindow(std::shared_ptr<const FileBytes> whole, UniqueFd fd, std::uint64_t begin)
    : FileBytes(whole->access(), whole->path(), std::move(fd)), whole_(std::move(whole)) {
  bytes_ = whole_->bytes().subspan(begin);
  begin_ = begin;
}

std::shared_ptr<const FileWindow> FileWindow::open(std::shared_ptr<const FileBytes> whole,
                                                   std::uint64_t begin) {
  UniqueFd fd = duplicate(whole->fd(), whole->path());
  return std::shared_ptr<FileWindow>(new FileWindow(std::move(whole), std::move(fd), begin));
}

}  // namespace thalia::io
