#include "format/foreign_file.h"

#include <algorithm>
#include <iterator>

namespace thalia::format {
namespace {

using namespace std::string_view_literals;

struct Foreign {
  std::string_view magic;
  std::string_view inside;  ///< is somewhere after the magic; empty for no such condition
  std::string_view what;
};

// Formats that conversions read, where a .thalia file is wanted.
#define CONVERT "; make a .thalia file of it with thalia convert"
constexpr std::string_view kPyTorch = "a PyTorch file" CONVERT;
constexpr std::string_view kOldPyTorch =
    "a file of PyTorch before 1.6, which is a row of pickles; load it with "
    "torch.load(weights_only=True) and save it again with torch.save";
// No matter who made it: torch.load() opens none of these.
constexpr std::string_view kPickle =
    "a Python pickle, which can run code when it is loaded and is never opened here; if you trust "
    "where it comes from, load it with the program that wrote it, and save its arrays with "
    "numpy.savez or thalia_checkpoint";
constexpr std::string_view kCoreMl =
    "a Core ML model, which is not read; coremltools gives its weights as arrays";
constexpr std::string_view kOnnx = "an ONNX model" CONVERT;
constexpr std::string_view kSafetensors = "a safetensors file" CONVERT;
constexpr std::string_view kTar =
    "a tar archive; unpack it first, or, if PyTorch before 0.2 wrote it and you trust it, load it "
    "with torch.load and save it again with torch.save";
constexpr std::string_view kWebPage = "a web page; the download of the file failed";

// The first that fits wins. A zip archive names its first member in its first bytes.
constexpr Foreign kForeign[] = {
    {"GGUF"sv, {}, "a GGUF file, as llama.cpp reads" CONVERT},
    {"PK\3\4"sv, ".npy"sv, "a NumPy .npz archive" CONVERT},
    {"PK\3\4"sv, "/data.pkl"sv, kPyTorch},
    {"PK\3\4"sv, "/data/"sv, kPyTorch},  // as torch.jit.save orders its members
    {"PK\3\4"sv, {}, "a zip archive; unpack it first"},
    // PROTO 2, LONG1 with the number that torch.save wrote first.
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv, {}, kOldPyTorch},
    {"\x80\2"sv, {}, kPickle},
    {"\x80\3"sv, {}, kPickle},
    {"\x80\4"sv, {}, kPickle},
    {"\x80\5"sv, {}, kPickle},
    {"(dp0\n"sv, {}, kPickle},  // the oldest kind, of text
    {"\x93NUMPY"sv, {}, "a NumPy .npy file" CONVERT},
    {"\x89HDF\r\n\x1a\n"sv,
     {},
     "an HDF5 file, as Keras writes; read its arrays with h5py and save them with "
     "safetensors.numpy.save_file()"},
    {"\x1f\x8b"sv, {}, "a gzip file; unpack it with gunzip first"},
    {"\xfd"
     "7zXZ\0"sv,
     {},
     "an xz file; unpack it with unxz first"},
    {"BZh"sv, {}, "a bzip2 file; unpack it with bunzip2 first"},
    {"version https://git-lfs"sv,
     {},
     "a Git LFS pointer, which stands for the file; fetch that with git lfs pull"},
    {"{"sv, "\"weight_map\""sv, "a list of the files that a model is in" CONVERT},
    {"GPTRSCHK"sv, {}, "a model of gpt.rs" CONVERT},
    {"GPTRSTEN"sv, {}, "an archive of tensors of gpt.rs" CONVERT},
    {"ENTITY\0\0"sv, {}, "a network of Loom" CONVERT},
    {"MCKP"sv, {}, "an MCKP file" CONVERT},
    {"MST\0"sv, {}, "a mithril .mst file" CONVERT},
    {"\x89PNG\r\n\x1a\n"sv, {}, "a PNG picture, no checkpoint"},
    {"\xff\xd8\xff"sv, {}, "a JPEG picture, no checkpoint"},
    {"GIF8"sv, {}, "a GIF picture, no checkpoint"},
    {"%PDF-"sv, {}, "a PDF document, no checkpoint"},
    {"\x7f"
     "ELF"sv,
     {},
     "a program or a library of Linux, no checkpoint"},
    {"7z\xbc\xaf\x27\x1c"sv, {}, "a 7z archive; unpack it with 7z first"},
    {"Rar!\x1a\x07"sv, {}, "a RAR archive; unpack it first"},
    {"<!DOCTYPE"sv, {}, kWebPage},
    {"<html"sv, {}, kWebPage},
};
#undef CONVERT

std::string_view text_of(ByteSpan start) {
  return {reinterpret_cast<const char*>(start.data()), start.size()};
}

constexpr std::size_t kTarMagicAt = 257;

// Core ML's models begin as ONNX's do, with the version of their language. Their second field is a
// message whose first field describes an input; ONNX has a name there, which is text.
bool begins_as_core_ml(std::string_view text) {
  if (text.size() < 3 || text[0] != '\x08' || text[1] < 1 || text[1] > 32 || text[2] != '\x12')
    return false;
  std::size_t at = 3;
  while (at < text.size() && (text[at] & 0x80) != 0) ++at;  // the length of the message
  return at + 1 < text.size() && text[at + 1] == '\x0a';
}

}  // namespace

bool begins_as_onnx(ByteSpan start) noexcept {
  constexpr char kNewestVersion = 32;
  const std::string_view text = text_of(start);
  return text.size() > 2 && text[0] == '\x08' && text[1] > 2 && text[1] <= kNewestVersion &&
         (text[2] == '\x12' || text[2] == '\x3a' || text[2] == '\x42') && !begins_as_core_ml(text);
}

bool begins_as_safetensors(ByteSpan start) noexcept {
  // The three highest bytes of a length are 0: no header is that long.
  const std::string_view text = text_of(start);
  return text.size() > 9 && text.substr(5, 5) == "\0\0\0{\""sv;
}

bool is_plain_text(ByteSpan start) noexcept {
  return !start.empty() && std::ranges::all_of(text_of(start), [](char c) {
    return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r');
  });
}

std::string_view foreign_file(ByteSpan start) noexcept {
  const std::string_view text = text_of(start);
  const auto found =
      std::find_if(std::begin(kForeign), std::end(kForeign), [&](const Foreign& one) {
        return text.starts_with(one.magic) && text.find(one.inside) != std::string_view::npos;
      });
  if (found != std::end(kForeign)) return found->what;
  if (begins_as_onnx(start)) return kOnnx;
  if (begins_as_core_ml(text)) return kCoreMl;
  if (begins_as_safetensors(start)) return kSafetensors;
  if (text.size() > kTarMagicAt && text.substr(kTarMagicAt).starts_with("ustar")) return kTar;
  return {};
}

}  // namespace thalia::format
