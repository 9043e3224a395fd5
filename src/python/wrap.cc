// Whole files in compressed frames.
#include "thalia/compress.h"

#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "python/results.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

WrapResult run_compress(const Path& path, const Path& target, std::uint64_t frame_bytes,
                        const Members& save) {
  const SaveOptions saved = save_options(save);
  CompressOptions options{.compression = fixed_compression(saved),
                          .frame_bytes = frame_bytes,
                          .output = saved.output,
                          .work = saved.work};
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return compress_checkpoint(path, target, options);
  });
}

WrapResult run_decompress(const Path& path, const Path& target, const std::string& access,
                          const Members& save) {
  const SaveOptions saved = save_options(save);
  DecompressOptions options{
      .input = {.access = access_of(access)}, .output = saved.output, .work = saved.work};
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return decompress_checkpoint(path, target, options);
  });
}

}  // namespace

void bind_wrap(nb::module_& module) {
  bind_result<WrapResult>(module, "WrapResult", "What compress() or decompress() wrote.",
                          field("codec", &WrapResult::codec, "\"zstd\" or \"lz4\"."),
                          field("frames", &WrapResult::frames, "Frames of the compressed file."),
                          field("input_bytes", &WrapResult::input_bytes),
                          field("output_bytes", &WrapResult::output_bytes),
                          field("seconds", &WrapResult::seconds))
      .def(nb::init<Codec, std::uint64_t, std::uint64_t, std::uint64_t, double>(), nb::arg("codec"),
           nb::arg("frames"), nb::arg("input_bytes"), nb::arg("output_bytes"), nb::arg("seconds"));
  module.def("compress", run_compress, nb::arg("path"), nb::arg("target"), nb::arg("frame_bytes"),
             nb::arg("save"));
  module.def("decompress", run_decompress, nb::arg("path"), nb::arg("target"), nb::arg("access"),
             nb::arg("save"));
}

}  // namespace thalia::python
