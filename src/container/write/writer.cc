// The public Writer: a FileSave behind a state machine (Steps). A declaration that is refused
// leaves the writer as it was; an error while bytes are written ends the save and removes the file.
// Declarations end with the first streamed byte, because offsets are settled then.
// docs/format/writing.md, "Writing".
#include "thalia/writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/inside.h"
#include "base/steps.h"
#include "base/stopwatch.h"
#include "container/plan/borrowed_indices.h"
#include "container/plan/sparse_pieces.h"
#include "container/write/file_save.h"
#include "format/quantized.h"

namespace thalia {
class Writer::Impl {
 public:
  template <typename... Target>
  explicit Impl(const SaveOptions& options, Target&&... target)
      : save_(std::forward<Target>(target)..., options),
        steps_("the save", save_.path().string(), [this] { save_.discard(); }) {}

  /// @param call takes the plan, which changes nothing if it throws UsageError.
  template <typename Call>
  auto declare(const char* what, Call call) {
    return steps_.check_and_run([&] {
      if (save_.has_begun()) {
        throw UsageError(ErrorCode::wrong_state,
                         fmt::format("{} after a payload was streamed", what),
                         {.path = save_.path().string()});
      }
      return call(save_.plan());
    });
  }

  // A save that streams begins with the first byte, not with commit().
  void write(std::uint32_t tensor, ByteSpan piece) {
    steps_.run([&] {
      if (!started_) started_.emplace();
      save_.store().write(tensor, piece);
    });
  }

  SaveResult commit() {
    return steps_.finish([&] {
      stop_if_cancelled(save_.options().work.cancel);
      const Stopwatch watch = started_.value_or(Stopwatch());
      save_.store();
      // As late as possible: borrowed arrays are read when they are written, so this is what will
      // be in the file.
      container::check_borrowed_indices(save_.plan(), save_.options().work.threads);
      SaveResult result = save_.commit();
      result.seconds = watch.seconds();
      return result;
    });
  }

  // For a save in the background. What is incomplete may still be given, so that does not end the
  // writer; an error while streamed bytes are brought to an end does.
  container::FileSave& finish_streaming() {
    with_path(save_.path().native(), [&] {
      steps_.check_and_run([&] {
        save_.plan().check_complete();
        // Without a single byte the save has not begun.
        if (save_.has_begun() ||
            std::ranges::any_of(save_.plan().tensors, &container::TensorPlan::streamed))
          save_.store().check_complete();
      });
    });
    if (save_.has_begun()) steps_.run([&] { save_.store().drain(); });
    return save_;
  }
  const container::FileSave& save() const { return save_; }

 private:
  container::FileSave save_;
  std::optional<Stopwatch> started_;  ///< with the first streamed payload
  Steps steps_;
};

Writer::Writer(const std::filesystem::path& path, const SaveOptions& options) {
  impl_ = std::make_unique<Impl>(options, path);
}
Writer::Writer(int descriptor, const std::filesystem::path& name, const SaveOptions& options) {
  impl_ = std::make_unique<Impl>(options, descriptor, name);
}
Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A forked child would wait for threads that it has not.
Writer::~Writer() {
  if (impl_ && impl_->save().has_begun() && impl_->save().is_foreign()) impl_.leave();
}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

void Writer::set_metadata(std::string json) {
  impl_->declare("set_metadata",
                 [&](container::FilePlan& plan) { plan.set_metadata(std::move(json)); });
}

void Writer::set_training_steps(std::uint64_t steps) {
  impl_->declare("set_training_steps",
                 [&](container::FilePlan& plan) { plan.training_steps = steps; });
}

RegionId Writer::add_region(RegionSpec spec) {
  return {impl_->declare(
      "add_region", [&](container::FilePlan& plan) { return plan.add_region(std::move(spec)); })};
}

TensorId Writer::add_tensor(RegionId region, TensorSpec spec) {
  return {impl_->declare("add_tensor", [&](container::FilePlan& plan) {
    return plan.add_tensor(region.value, std::move(spec), {}, true);
  })};
}

TensorId Writer::add_tensor(RegionId region, TensorSpec spec, ByteSpan payload) {
  return {impl_->declare("add_tensor", [&](container::FilePlan& plan) {
    return plan.add_tensor(region.value, std::move(spec), payload, false);
  })};
}

template <typename Index>
TensorId Writer::add_csr(RegionId region, TensorSpec spec, CsrArrays<Index> arrays) {
  std::vector<ByteSpan> pieces = container::sparse_pieces(spec, arrays);
  return {impl_->declare("add_csr", [&](container::FilePlan& plan) {
    return plan.add_tensor(region.value, std::move(spec), std::move(pieces), false);
  })};
}

template <typename Index>
TensorId Writer::add_coo(RegionId region, TensorSpec spec, CooArrays<Index> arrays) {
  std::vector<ByteSpan> pieces = container::sparse_pieces(spec, arrays);
  return {impl_->declare("add_coo", [&](container::FilePlan& plan) {
    return plan.add_tensor(region.value, std::move(spec), std::move(pieces), false);
  })};
}

template TensorId Writer::add_csr(RegionId, TensorSpec, CsrArrays<std::uint32_t>);
template TensorId Writer::add_csr(RegionId, TensorSpec, CsrArrays<std::uint64_t>);
template TensorId Writer::add_coo(RegionId, TensorSpec, CooArrays<std::uint32_t>);
template TensorId Writer::add_coo(RegionId, TensorSpec, CooArrays<std::uint64_t>);

ConnectionId Writer::add_connection(std::string_view source_region,
                                    std::string_view target_region) {
  return {impl_->declare("add_connection", [&](container::FilePlan& plan) {
    return plan.add_connection(source_region, target_region);
  })};
}

TensorId Writer::add_connection_weights(ConnectionId connection, TensorSpec spec,
                                        ByteSpan payload) {
  return {impl_->declare("add_connection_weights", [&](container::FilePlan& plan) {
    return plan.add_connection_weights(connection.value, std::move(spec), payload);
  })};
}

TensorId Writer::add_connection_delays(ConnectionId connection, TensorSpec spec, ByteSpan payload) {
  return {impl_->declare("add_connection_delays", [&](container::FilePlan& plan) {
    return plan.add_connection_delays(connection.value, std::move(spec), payload);
  })};
}

void Writer::write(TensorId tensor, ByteSpan piece) {
  impl_->write(tensor.value, piece);
}

SaveResult Writer::commit() {
  return impl_->commit();
}

Writer container::writer_in_frames(const FramesTarget& target, const SaveOptions& options) {
  return detail::Inside::make_impl<Writer>(options, target);
}

TensorId container::add_quantized(Writer& writer, RegionId region, TensorSpec spec,
                                  const format::QuantizedSideData& side, ByteSpan payload) {
  return {detail::Inside::impl(writer)->declare("add_quantized", [&](FilePlan& plan) {
    return plan.add_quantized(region.value, std::move(spec), side, payload);
  })};
}

container::FileSave& container::finish_streaming(Writer& writer) {
  return detail::Inside::impl(writer)->finish_streaming();
}

const container::FileSave& container::file_save_of(const Writer& writer) {
  return detail::Inside::impl(writer)->save();
}

}  // namespace thalia
