// The public Appender: the file is locked and opened at construction, changes are collected in a
// plan, and the file is written to for the first time in commit(). The lock is held until commit()
// has returned or failed, so what was opened is what is appended to; readers need no lock. The
// first error that is not a refused argument ends the appender.
#include "thalia/append.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/inside.h"
#include "base/steps.h"
#include "base/stopwatch.h"
#include "container/append/commit.h"
#include "container/append/copied_tensor.h"
#include "container/append/plan.h"
#include "container/file/open_bytes.h"
#include "container/plan/check_options.h"
#include "container/plan/sparse_pieces.h"

namespace thalia {
namespace {

AppendOptions with_codec(AppendOptions options) {
  container::check_options({.compression = options.compression});
  // AppendOptions offers no automatic codec, so none named means none.
  if (!options.compression.codec) options.compression.codec = Codec::none;
  return options;
}

}  // namespace

class Appender::Impl {
 public:
  Impl(const std::filesystem::path& path, const AppendOptions& options)
      : options_(with_codec(options)),
        lock_(std::in_place, path, io::LockedFile::Access::read_write, options.change.wait,
              options.change.work.cancel),
        steps_("the append", path.string(), [this] { close(); }) {
    // Between the lock and the opening, a save or compact() may put another file in the path's
    // place. Then the lock is on a file that nobody sees any more: take it again.
    do {
      file_ = detail::OpenFile::open(path,
                                     {.input = options.change.input, .work = options.change.work});
    } while (!relocked_where_replaced(path));
    container::require_plain(file_->mapping());
    file_->named([&] { container::check_can_be_rewritten(file_->header()); });
    plan_.emplace(file_);
  }

  /// @param call takes the plan, which changes nothing if it throws UsageError.
  template <typename Call>
  auto change(Call call) {
    return steps_.check_and_run([&] { return call(*plan_); });
  }
  RegionId copy(const detail::OpenFile& from, const RegionView& region) {
    steps_.require_open();
    // Reading may fail. Done before the plan is changed, so that the appender can go on.
    std::vector<container::TensorPlan> tensors = container::region_to_copy(from, region);
    RegionSpec spec = container::region_to_write(region);
    return {change([&](container::AppendPlan& plan) {
      return plan.copy_region(std::move(spec), std::move(tensors));
    })};
  }
  TensorId copy_tensor(RegionId region, const detail::OpenFile& from, const RegionView& source,
                       std::uint32_t i, std::string_view name) {
    steps_.require_open();
    source.tensor(i);  // refuses what is no tensor of the region
    const std::uint32_t first = from.directory_region(source.index()).first_tensor;
    container::TensorPlan tensor = container::tensor_to_copy(from, source.index(), first + i);
    if (!name.empty()) tensor.spec.name = name;
    return {change([&](container::AppendPlan& plan) {
      return plan.copy_tensor(region.value, std::move(tensor));
    })};
  }

  AppendResult commit() {
    const Stopwatch watch;
    return steps_.finish([&] {
      AppendResult result = file_->named([&] {
        container::FilePlan plan = plan_->compose();
        return container::write_append(*lock_, *file_, plan, options_);
      });
      close();
      result.seconds = watch.seconds();
      return result;
    });
  }

 private:
  // True if the locked file is still the one at the path.
  bool relocked_where_replaced(const std::filesystem::path& path) {
    if (lock_->is_at_path()) return true;
    lock_.emplace(path, io::LockedFile::Access::read_write, options_.change.wait,
                  options_.change.work.cancel);
    return false;
  }

  // Frees the lock at once, not when the appender is destroyed: others may be waiting for it.
  void close() noexcept {
    plan_.reset();
    lock_.reset();
  }

  AppendOptions options_;
  std::optional<io::LockedFile> lock_;
  std::shared_ptr<const detail::OpenFile> file_;
  std::optional<container::AppendPlan> plan_;  ///< while the appender is open
  Steps steps_;
};

Appender::Appender(const std::filesystem::path& path, const AppendOptions& options) {
  impl_ = std::make_unique<Impl>(path, options);
}
Appender::~Appender() = default;
Appender::Appender(Appender&&) noexcept = default;
Appender& Appender::operator=(Appender&&) noexcept = default;

void Appender::set_metadata(std::string json) {
  impl_->change([&](container::AppendPlan& plan) { plan.set_metadata(std::move(json)); });
}

void Appender::set_training_steps(std::uint64_t steps) {
  impl_->change([&](container::AppendPlan& plan) { plan.set_training_steps(steps); });
}

RegionId Appender::add_region(RegionSpec spec) {
  return {impl_->change(
      [&](container::AppendPlan& plan) { return plan.added().add_region(std::move(spec)); })};
}

RegionId Appender::replace_region(RegionSpec spec) {
  return {impl_->change(
      [&](container::AppendPlan& plan) { return plan.replace_region(std::move(spec)); })};
}

void Appender::remove_region(std::string_view name) {
  impl_->change([&](container::AppendPlan& plan) { plan.remove_region(name); });
}

RegionId Appender::copy_region(const RegionView& region) {
  return impl_->copy(*detail::Inside::file(region), region);
}

TensorId Appender::copy_tensor(RegionId region, const RegionView& from, std::uint32_t i,
                               std::string_view name) {
  return impl_->copy_tensor(region, *detail::Inside::file(from), from, i, name);
}

TensorId Appender::add_tensor(RegionId region, TensorSpec spec, ByteSpan payload) {
  return {impl_->change([&](container::AppendPlan& plan) {
    return plan.added().add_tensor(region.value, std::move(spec), {payload}, false);
  })};
}

template <typename Index>
TensorId Appender::add_csr(RegionId region, TensorSpec spec, CsrArrays<Index> arrays) {
  std::vector<ByteSpan> pieces = container::sparse_pieces(spec, arrays);
  return {impl_->change([&](container::AppendPlan& plan) {
    return plan.added().add_tensor(region.value, std::move(spec), std::move(pieces), false);
  })};
}

template <typename Index>
TensorId Appender::add_coo(RegionId region, TensorSpec spec, CooArrays<Index> arrays) {
  std::vector<ByteSpan> pieces = container::sparse_pieces(spec, arrays);
  return {impl_->change([&](container::AppendPlan& plan) {
    return plan.added().add_tensor(region.value, std::move(spec), std::move(pieces), false);
  })};
}

template TensorId Appender::add_csr(RegionId, TensorSpec, CsrArrays<std::uint32_t>);
template TensorId Appender::add_csr(RegionId, TensorSpec, CsrArrays<std::uint64_t>);
template TensorId Appender::add_coo(RegionId, TensorSpec, CooArrays<std::uint32_t>);
template TensorId Appender::add_coo(RegionId, TensorSpec, CooArrays<std::uint64_t>);

ConnectionId Appender::add_connection(std::string_view source_region,
                                      std::string_view target_region) {
  return {impl_->change([&](container::AppendPlan& plan) {
    return plan.added().add_connection(source_region, target_region);
  })};
}

TensorId Appender::add_connection_weights(ConnectionId connection, TensorSpec spec,
                                          ByteSpan payload) {
  return {impl_->change([&](container::AppendPlan& plan) {
    return plan.added().add_connection_weights(connection.value, std::move(spec), payload);
  })};
}

TensorId Appender::add_connection_delays(ConnectionId connection, TensorSpec spec,
                                         ByteSpan payload) {
  return {impl_->change([&](container::AppendPlan& plan) {
    return plan.added().add_connection_delays(connection.value, std::move(spec), payload);
  })};
}

void Appender::remove_connection(std::string_view source_region, std::string_view target_region) {
  impl_->change(
      [&](container::AppendPlan& plan) { plan.remove_connection(source_region, target_region); });
}

AppendResult Appender::commit() {
  return impl_->commit();
}

}  // namespace thalia
