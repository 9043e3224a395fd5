// The public class: checks options, collects what is asked for, and leaves the rest to a session.
// All errors of tables and options come from the constructor; from then on the file is met by reads
// only, and every error comes from next().
#include <algorithm>
#include <memory>

#include "base/busy.h"
#include "base/fail.h"
#include "base/inside.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/file/open_file.h"
#include "container/read/reader_of.h"
#include "container/stream/plan.h"
#include "container/stream/session.h"
#include "format/directory.h"
#include "format/header.h"
#include "format/tensor.h"
#include "io/file/posix_file.h"
#include "io/system/process.h"
#include "thalia/stream.h"

namespace thalia {
namespace {

// Half of the memory is for buffers: two extents of 1 MiB here. If not even one could be afforded,
// there would be no worker.
constexpr std::uint64_t kLeastMemory = 4 << 20;

// The plan reads the tables in the mapping. If the file was cut since it was opened, that would
// raise a signal; so its length is asked for once more.
void check_length(const detail::OpenFile& file) {
  const io::FileBytes& mapping = file.mapping();
  if (mapping.begin() != 0) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        "a delta has its tensors in several files; ChainReader::stream() streams them",
        {.path = mapping.path().string()});
  }
  const std::uint64_t size = io::file_size(mapping.fd(), mapping.path());
  if (size >= file.header().file_length) return;
  file.named([&] {
    fail_field(ErrorCode::truncated, "header", "file_length", offsetof(format::Header, file_length),
               std::to_string(std::uint64_t{file.header().file_length}),
               fmt::format("{} bytes that the file has now", size));
  });
}

[[noreturn]] void fail_foreign(const detail::OpenFile& file, std::string_view region,
                               std::string_view tensor) {
  throw UsageError(ErrorCode::bad_argument, "it belongs to another Reader",
                   {.path = file.mapping().path().string(),
                    .region = printable(region),
                    .tensor = printable(tensor)});
}

}  // namespace

class StreamReader::Impl {
 public:
  using Requests = std::vector<container::StreamRequest>;

  template <typename Collect>
  Impl(const Reader& reader, const StreamOptions& options, Collect collect) {
    container::check_options(options);
    check_length(container::file_of(reader));
    Requests sources;
    collect(container::file_of(reader), sources);
    container::StreamPlan plan =
        container::plan_stream(container::file_of(reader), sources, options);
    decode_units(container::file_of(reader), plan);
    session_ = std::make_unique<container::StreamSession>(container::shared_file_of(reader),
                                                          std::move(plan), options);
  }
  explicit Impl(std::unique_ptr<container::StreamSession> session) : session_(std::move(session)) {}

  // The tensors of a region of the directory, as they lie in the file.
  static void add_region(const detail::OpenFile& file, std::uint32_t region, Requests& sources) {
    const std::size_t first = sources.size();
    const format::DirectoryRegion& record = file.directory_region(region);
    for (std::uint32_t i = 0; i < record.tensor_count; ++i)
      add(file, file.tensor_view(region, record.first_tensor + i), sources);
    std::sort(sources.begin() + static_cast<std::ptrdiff_t>(first), sources.end(),
              [](const container::StreamRequest& a, const container::StreamRequest& b) {
                return a.view.stored_offset() < b.view.stored_offset();
              });
  }
  static void add(const detail::OpenFile& file, TensorView view, Requests& sources) {
    if (detail::Inside::file(view).get() != &file)
      fail_foreign(file, detail::Inside::region(view), view.name());
    const format::TensorEntry* const entry = detail::Inside::entry(view);
    sources.push_back({std::move(view), entry});
  }
  static std::uint32_t number_of(const detail::OpenFile& file, const RegionView& region) {
    if (detail::Inside::file(region).get() != &file) fail_foreign(file, region.name(), {});
    return region.index();
  }

  // A wrapped file is decoded as it is asked for. What the units need is decoded here, on all
  // threads, so that workers find it in memory.
  static void decode_units(const detail::OpenFile& file, const container::StreamPlan& plan) {
    if (file.mapping().backing() == io::Backing::file) return;
    file.named([&] {
      parallel_for(plan.units.size(), file.options().work.threads, [&](std::size_t i) {
        const container::StreamUnit& unit = plan.units[i];
        file.mapping().fill_descriptor(unit.begin, unit.end - unit.begin);
      });
    });
  }

  // Runs a call that may wait for the stream's threads.
  template <typename Call>
  auto run(Call call) {
    process_.require("the stream");
    const Busy::Call alone(busy_, "the stream", {});
    return call(*session_);
  }
  const container::StreamSession& session() const { return *session_; }
  const io::OwnProcess& process() const { return process_; }

 private:
  io::OwnProcess process_;
  Busy busy_;
  std::unique_ptr<container::StreamSession> session_;
};

StreamReader::StreamReader(const Reader& reader, const StreamOptions& options)
    : impl_(std::make_unique<Impl>(
          reader, options, [](const detail::OpenFile& file, Impl::Requests& sources) {
            for (std::uint32_t region = 0; region < file.directory().region_count; ++region)
              Impl::add_region(file, region, sources);
          })) {}

StreamReader::StreamReader(const Reader& reader, std::span<const RegionView> regions,
                           const StreamOptions& options)
    : impl_(std::make_unique<Impl>(
          reader, options, [&](const detail::OpenFile& file, Impl::Requests& sources) {
            for (const RegionView& region : regions)
              Impl::add_region(file, Impl::number_of(file, region), sources);
          })) {}

StreamReader::StreamReader(const Reader& reader, std::span<const TensorView> tensors,
                           const StreamOptions& options)
    : impl_(std::make_unique<Impl>(reader, options,
                                   [&](const detail::OpenFile& file, Impl::Requests& sources) {
                                     for (const TensorView& tensor : tensors)
                                       Impl::add(file, tensor, sources);
                                   })) {}

StreamReader::StreamReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

void container::check_options(const StreamOptions& options) {
  check_option("io", static_cast<std::uint64_t>(options.io), 0, 2);
  check_option("order", static_cast<std::uint64_t>(options.order), 0, 2);
  check_option("quantized", static_cast<std::uint64_t>(options.quantized), 0, 1);
  check_option("memory_bytes", options.work.memory_bytes.value_or(kDefaultMemoryBytes),
               kLeastMemory, UINT64_MAX);
  check_option("queue_depth", options.queue_depth, 1, 1024);
}

StreamReader container::stream_of(std::unique_ptr<StreamSession> session) {
  return detail::Inside::make_impl<StreamReader>(std::move(session));
}

// A forked child has none of the threads, and would wait for them.
StreamReader::~StreamReader() {
  if (impl_ && !impl_->process().is_this()) impl_.leave();
}
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

std::optional<StreamedTensor> StreamReader::next() {
  return impl_->run([](container::StreamSession& session) { return session.next(); });
}

void StreamReader::for_each(const std::function<void(StreamedTensor)>& callback) {
  try {
    while (auto tensor = next()) callback(*std::move(tensor));
    // The callback may have thrown while reads into the caller's memory are in flight.
  } catch (...) {
    impl_->run([](container::StreamSession& session) { session.stop(); });
    throw;
  }
}

StreamResult StreamReader::result() const {
  return impl_->session().result();
}

}  // namespace thalia
