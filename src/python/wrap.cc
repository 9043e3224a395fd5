// Whole files in compressed frames.
#include "thalia/compress.h"

#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>

#include "python/bindings.h"
#include "python/calls.h"
#include "python/objects.h"
#include "python/options.h"
#include "thalia/tensor.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;
using Path = std::filesystem::path;

Members wrap_dict(const WrapResult& result) {
  nb::dict out;
  out["codec"] = codec_name(result.codec);
  out["frames"] = result.frames;
  out["input_bytes"] = result.input_bytes;
  out["output_bytes"] = result.output_bytes;
  out["seconds"] = result.seconds;
  return out;
}

Members run_compress(const Path& path, const Path& target, std::uint64_t frame_bytes,
                     const Members& save) {
  const SaveOptions saved = save_options(save);
  CompressOptions options{.compression = fixed_compression(saved),
                          .frame_bytes = frame_bytes,
                          .output = saved.output,
                          .work = saved.work};
  return wrap_dict(interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return compress_checkpoint(path, target, options);
  }));
}

Members run_decompress(const Path& path, const Path& target, const std::string& access,
                       const Members& save) {
  const SaveOptions saved = save_options(save);
  DecompressOptions options{
      .input = {.access = access_of(access)}, .output = saved.output, .work = saved.work};
  return wrap_dict(interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return decompress_checkpoint(path, target, options);
  }));
}

}  // namespace

void bind_wrap(nb::module_& module) {
  module.def("compress", run_compress, nb::arg("path"), nb::arg("target"), nb::arg("frame_bytes"),
             nb::arg("save"));
  module.def("decompress", run_decompress, nb::arg("path"), nb::arg("target"), nb::arg("access"),
             nb::arg("save"));
}

}  // namespace thalia::python
