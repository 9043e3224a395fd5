// .npy and .npz files through the public interface. numpy_test.py holds
// them against NumPy itself; tests/data/formats/npz has files of it.
#include "thalia/formats/npz.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/npz/elements.h"
#include "formats/npz/npz_files.h"
#include "formats/npz/opened.h"
#include "formats/npz/sink.h"
#include "formats/source/npy_header.h"
#include "formats/zip/writer.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/files.h"
#include "thalia/formats/any_file.h"

using namespace thalia;
using namespace thalia::formats;
using test::bytes_of;
using test::npz_sample;
using test::random_numbers;
using test::rewrite_npz;
using test::says;

BOOST_AUTO_TEST_SUITE(npz_files)

namespace {

const OutputOptions kFast{.durability = Durability::none};

std::shared_ptr<const OpenedFile> from_text(const std::string& text, const ReadOptions& read = {}) {
  const auto owner = std::make_shared<const std::string>(text);
  return open_npz_bytes({.bytes = bytes_of(*owner), .owner = owner}, "test.npz",
                        {.chain = {.read = read}});
}

Tensor read(const std::shared_ptr<const OpenedFile>& file, std::string_view name) {
  return file->read(file->at(name));
}

// All arrays of a file, or nullopt if it is refused.
std::optional<std::vector<NpzTensor>> all_arrays(const std::string& text) {
  ReadOptions options;
  options.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const auto file = from_text(text, options);
    std::vector<NpzTensor> tensors;
    for (std::size_t i = 0; i < file->tensor_count(); ++i)
      tensors.push_back({.name = file->facts().tensors[i].name, .tensor = file->read(i)});
    return tensors;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  } catch (const IntegrityError&) {
  }
  return std::nullopt;
}

}  // namespace

// Files of NumPy 2.4.6: an array in Fortran order, one with the most significant byte first, a
// number.
BOOST_AUTO_TEST_CASE(files_of_numpy_are_read) {
  for (const char* const name : {"stored.npz", "deflated.npz"}) {
    const AnyFile file = open_any(npz_sample(name));
    BOOST_TEST(file.tensors().size() == 5u);
    BOOST_TEST(file.losses().empty());
    BOOST_TEST(file.file_bytes() == std::filesystem::file_size(npz_sample(name)));
    BOOST_TEST(file.tensors()[0].name == "layer/weight");
    BOOST_TEST(file.tensors()[0].in_place == (std::string(name) == "stored.npz"));
    const std::vector<float> six{0, 1, 2, 3, 4, 5};
    BOOST_TEST((file.read("layer/weight") == Tensor::copy_of({2, 3}, six)));
    BOOST_TEST(file.metadata_json().find(R"("name":"fortran","fortran_order":true)") !=
               std::string::npos);
    BOOST_TEST((file.read("fortran") == Tensor::copy_of({2, 3}, six)));
    BOOST_TEST(file.metadata_json().find(R"("name":"big","descr":">f4")") != std::string::npos);
    BOOST_TEST((file.read("big") == Tensor::copy_of({6}, six)));
    BOOST_TEST((file.read("number").shape() == Shape{}));
    BOOST_TEST(file.read("number").owned().as<double>()[0] == 0.5);
    BOOST_TEST((file.read("empty").shape() == Shape{0, 4}));
    BOOST_CHECK_EXCEPTION(file.read("bigg"), UsageError, says(ErrorCode::not_found, "big", name));
  }
  const AnyFile file = open_any(npz_sample("array.npy"));
  BOOST_TEST(file.tensors()[0].name == "array");
  BOOST_TEST((file.read(0) == Tensor::copy_of({3}, std::vector<std::int64_t>{0, 1, 2})));
}

BOOST_AUTO_TEST_CASE(stored_arrays_are_views_of_the_file_and_hold_it) {
  Tensor kept;
  {
    const test::TemporaryFolder folder;
    save_npz(folder / "a.npz", {{.name = "w", .tensor = random_numbers(DType::f64, {7})}},
             {.output = kFast});
    const AnyFile file = open_any(folder / "a.npz");
    kept = file.read("w");
    BOOST_TEST(kept.bytes().data() == file.read("w").bytes().data());
  }
  BOOST_TEST((kept == random_numbers(DType::f64, {7})));
}

BOOST_AUTO_TEST_CASE(every_dtype_is_saved_and_read_back) {
  const test::TemporaryFolder folder;
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    const std::vector<NpzTensor> tensors{{.name = "w", .tensor = random_numbers(dtype, {4, 6})},
                                         {.name = "s", .tensor = random_numbers(dtype, {})},
                                         {.name = "e", .tensor = random_numbers(dtype, {3, 0})}};
    if (dtype_is_packed(dtype)) {
      BOOST_CHECK_EXCEPTION(
          save_npz(folder / "packed.npz", tensors), UnsupportedError,
          says(ErrorCode::unsupported_dtype, "packed", std::string(dtype_name(dtype))));
      continue;
    }
    for (const bool compressed : {false, true}) {
      save_npz(folder / "a.npz", tensors, {.compressed = compressed, .output = kFast});
      const AnyFile file = open_any(folder / "a.npz");
      for (const NpzTensor& one : tensors) {
        const Tensor read = file.read(one.name);
        // NumPy has no floats of 8 bits.
        const bool lost = dtype_bits(dtype) == 8 && npy_descr(dtype) == "<V1";
        BOOST_TEST((read.dtype() == (lost ? DType::u8 : dtype)));
        BOOST_TEST((read.shape() == one.tensor.shape()));
        BOOST_TEST(test::same_bytes(read.bytes(), one.tensor.bytes()));
      }
    }
    save_npy(folder / "a.npy", tensors[0].tensor, kFast);
    BOOST_TEST(
        test::same_bytes(open_any(folder / "a.npy").read(0).bytes(), tensors[0].tensor.bytes()));
  }
  BOOST_TEST(!std::filesystem::exists(folder / "packed.npz"));
}

BOOST_AUTO_TEST_CASE(each_order_of_elements_is_turned_into_the_other) {
  for (const Shape& shape : {Shape{3, 2}, Shape{1, 4, 1}, Shape{70, 33}, Shape{2, 3, 4, 5},
                             Shape{2, 1, 3, 1, 2, 1, 2, 2}, Shape{40, 1, 40}}) {
    for (const std::size_t width : {1u, 2u, 3u, 4u, 8u, 16u}) {
      const std::size_t count = *shape.element_count();
      const std::vector<std::byte> rows = test::random_bytes(count * width);
      std::vector<std::byte> columns(rows.size()), expected(rows.size()), again(rows.size());
      // One element after the other, by its indices.
      for (std::size_t place = 0; place < count; ++place) {
        std::size_t rest = place, to = 0, step = 1;
        std::vector<std::size_t> index(shape.rank());
        for (unsigned k = shape.rank(); k-- > 0; rest /= shape[k]) index[k] = rest % shape[k];
        for (unsigned k = 0; k < shape.rank(); step *= shape[k++]) to += index[k] * step;
        std::copy_n(rows.begin() + place * width, width, expected.begin() + to * width);
      }
      npz::to_column_major(rows, shape, width, columns);
      BOOST_TEST(test::same_bytes(columns, expected));
      npz::to_row_major(columns, shape, width, again);
      BOOST_TEST(test::same_bytes(again, rows));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_checksum_is_found_unless_nobody_looks) {
  std::string text = test::read_file(npz_sample("stored.npz"));
  const std::uint64_t at = from_text(text)->facts().tensors[0].offset.value();
  text[at] = 'x';
  BOOST_CHECK_EXCEPTION(read(from_text(text), "layer/weight"), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "test.npz", "crc32", "layer/weight"));
  BOOST_TEST((read(from_text(text), "big").shape() == Shape{6}));
  const auto unseen = from_text(text, {.verification = Verification::off});
  BOOST_TEST((read(unseen, "layer/weight").shape() == Shape{2, 3}));

  const test::TemporaryFolder folder;
  test::write_file(folder / "a.npz", text);
  OpenOptions options;
  options.chain.read.verification = Verification::off;
  const auto source = open_npz_file(folder / "a.npz", options);
  BOOST_CHECK_THROW(source->check(0), IntegrityError);
  source->check(1);
  BOOST_CHECK_THROW(source->visit(0, [](ByteSpan) {}), IntegrityError);
}

BOOST_AUTO_TEST_CASE(pieces_are_whole_elements_behind_a_header_of_any_length) {
  const test::TemporaryFolder folder;
  const Tensor numbers = random_numbers(DType::f32, {100'000});
  const ByteSpan elements = numbers.bytes();
  const std::string head = make_npy_header("<f4", false, numbers.shape(), 81);
  BOOST_TEST(head.size() == 81u);
  for (const bool deflated : {false, true}) {
    const std::filesystem::path path = folder / (deflated ? "deflated.npz" : "stored.npz");
    OutputFile out(path, kFast);
    ZipWriter zip(out, kPythonZip);
    zip.begin("a.npy", head.size() + elements.size(), {.deflated = deflated});
    zip.write(as_byte_span(head));
    zip.write(elements);
    zip.end();
    zip.finish();
    out.commit();
    std::string visited;
    open_npz_file(path, {})->visit(0, [&](ByteSpan piece) {
      BOOST_TEST(piece.size() % sizeof(float) == 0u);
      visited.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    BOOST_TEST(
        (visited == std::string(reinterpret_cast<const char*>(elements.data()), elements.size())));
  }
}

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read) {
  for (const char* const name : {"stored.npz", "deflated.npz"}) {
    const std::string text = test::read_file(npz_sample(name));
    BOOST_TEST(all_arrays(text).has_value());
    for (std::size_t length = 0; length < text.size(); ++length)
      BOOST_TEST(!all_arrays(text.substr(0, length)), length);
  }
  const std::string array = test::read_file(npz_sample("array.npy"));
  for (std::size_t length = 0; length < array.size(); ++length)
    BOOST_CHECK_THROW(
        open_npy_bytes({.bytes = bytes_of(array).first(length), .owner = nullptr}, "test.npy", {}),
        FormatError);
}

BOOST_AUTO_TEST_CASE(every_flipped_byte_is_found_or_changes_nothing) {
  for (const char* const name : {"stored.npz", "deflated.npz"}) {
    const std::string text = test::read_file(npz_sample(name));
    const auto expected = all_arrays(text);
    BOOST_REQUIRE(expected.has_value());
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
      const auto read = all_arrays(damaged);
      // Nothing depends on versions, dates and attributes.
      if (!read) continue;
      BOOST_REQUIRE(read->size() == expected->size());
      for (std::size_t k = 0; k < read->size(); ++k) {
        BOOST_TEST((*read)[k].name == (*expected)[k].name);
        BOOST_TEST(((*read)[k].tensor == (*expected)[k].tensor));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_conversion_holds_at_once_is_limited) {
  const test::TemporaryFolder folder;
  const std::string fortran =
      R"({"format":"npz","npz":{"arrays":[{"name":"w","fortran_order":true}]}})";
  save_npz(folder / "a.npz", {{.name = "w", .tensor = random_numbers(DType::f32, {100, 100})}},
           {.output = kFast});
  rewrite_npz(folder / "a.npz", folder / "f.npz", fortran);
  const auto limited = [&](const char* name, std::uint64_t bytes) {
    OpenOptions options;
    options.chain.read.input.limits.max_allocation_bytes = bytes;
    return open_any(folder / name, options).read("w");
  };
  BOOST_TEST((limited("a.npz", 1'000).shape() == Shape{100, 100}));  // a view
  BOOST_TEST((limited("f.npz", 40'000) == random_numbers(DType::f32, {100, 100})));
  BOOST_CHECK_EXCEPTION(limited("f.npz", 39'999), FormatError,
                        test::has_code(ErrorCode::limit_exceeded));
}

BOOST_AUTO_TEST_CASE(a_name_may_begin_as_a_path_does) {
  const test::TemporaryFolder folder;
  const Tensor one = random_numbers(DType::f32, {2}), two = random_numbers(DType::f32, {3});
  save_npz(folder / "a.npz", {{.name = "/a", .tensor = one}, {.name = "\\b/../c", .tensor = two}});
  const AnyFile file = open_any(folder / "a.npz");
  BOOST_TEST((file.read("/a") == one && file.read("\\b/../c") == two));
}

BOOST_AUTO_TEST_CASE(what_an_archive_cannot_hold_is_refused_before_it_is_written) {
  const test::TemporaryFolder folder;
  const auto refused = [&](const std::vector<NpzTensor>& tensors, const char* what) {
    BOOST_CHECK_EXCEPTION(save_npz(folder / "a.npz", tensors), UnsupportedError,
                          says(ErrorCode::unsupported_feature, what, "a.npz"));
  };
  const Tensor one = random_numbers(DType::f32, {2});
  refused({{.name = std::string("a\0b", 3), .tensor = one}}, "zero byte");
  refused({{.name = std::string(70'000, 'a'), .tensor = one}}, "65535");
  refused({{.name = "a", .tensor = one}, {.name = "a.npy", .tensor = one}}, "another array");
  refused({{.name = "a", .tensor = Tensor::zeros(DType::f32, {3, 3}).to_coo()}}, "sparse");
  BOOST_CHECK_EXCEPTION(
      save_npz(folder / "a.npz", {{.name = "a", .tensor = one}, {.name = "a", .tensor = one}}),
      UsageError, test::has_code(ErrorCode::duplicate));
  BOOST_CHECK_EXCEPTION(write_npy(folder / "a.npy", {}, {}, [](std::size_t, const PieceSink&) {}),
                        UnsupportedError,
                        says(ErrorCode::unsupported_feature, "one array", "got 0"));
  BOOST_TEST(test::list_folder(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(a_stop_leaves_the_old_file) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.npz", "old");
  std::stop_source stop;
  NpzSaveOptions options{.output = kFast};
  options.work.cancel = stop.get_token();
  options.work.progress = [&](std::uint64_t, std::uint64_t) { stop.request_stop(); };
  const Tensor large = random_numbers(DType::f32, {1'000'000});
  BOOST_CHECK_THROW(
      save_npz(folder / "a.npz", {{.name = "a", .tensor = large}, {.name = "b", .tensor = large}},
               options),
      CancelledError);
  BOOST_TEST(test::read_file(folder / "a.npz") == "old");
}

BOOST_AUTO_TEST_SUITE_END()
