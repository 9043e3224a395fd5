// What C calls by numbers is what C++ calls by names; and the files that the C program has left are
// what it said, as the Reader reads them.
// usage: agreement FOLDER
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "c/guard.h"
#include "c/sized.h"
#include "thalia/c.h"
#include "thalia/thalia.h"

using namespace thalia;

namespace {

int failures = 0;

void check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  ++failures;
}

// --- Numbers: written out, so that changing one fails here. -----------------------------------

struct Code {
  thalia_status status;
  int number;
  ErrorCode code;
};
constexpr Code kCodes[] = {
    {THALIA_ERROR_IO, 100, ErrorCode::io},
    {THALIA_ERROR_STORAGE, 101, ErrorCode::storage},
    {THALIA_ERROR_BAD_MAGIC, 200, ErrorCode::bad_magic},
    {THALIA_ERROR_TRUNCATED, 201, ErrorCode::truncated},
    {THALIA_ERROR_OUT_OF_BOUNDS, 202, ErrorCode::out_of_bounds},
    {THALIA_ERROR_BAD_VALUE, 203, ErrorCode::bad_value},
    {THALIA_ERROR_LIMIT_EXCEEDED, 204, ErrorCode::limit_exceeded},
    {THALIA_ERROR_BAD_JSON, 205, ErrorCode::bad_json},
    {THALIA_ERROR_BAD_NAME, 206, ErrorCode::bad_name},
    {THALIA_ERROR_INCONSISTENT, 207, ErrorCode::inconsistent},
    {THALIA_ERROR_BAD_COMPRESSION, 208, ErrorCode::bad_compression},
    {THALIA_ERROR_CHECKSUM_MISMATCH, 300, ErrorCode::checksum_mismatch},
    {THALIA_ERROR_UNSUPPORTED_VERSION, 400, ErrorCode::unsupported_version},
    {THALIA_ERROR_UNSUPPORTED_FEATURE, 401, ErrorCode::unsupported_feature},
    {THALIA_ERROR_UNSUPPORTED_DTYPE, 402, ErrorCode::unsupported_dtype},
    {THALIA_ERROR_NOT_FOUND, 500, ErrorCode::not_found},
    {THALIA_ERROR_DUPLICATE, 501, ErrorCode::duplicate},
    {THALIA_ERROR_DTYPE_MISMATCH, 502, ErrorCode::dtype_mismatch},
    {THALIA_ERROR_SIZE_MISMATCH, 503, ErrorCode::size_mismatch},
    {THALIA_ERROR_BAD_ARGUMENT, 504, ErrorCode::bad_argument},
    {THALIA_ERROR_WRONG_STATE, 505, ErrorCode::wrong_state},
    {THALIA_ERROR_SHAPE_MISMATCH, 506, ErrorCode::shape_mismatch},
    {THALIA_ERROR_EXISTS, 507, ErrorCode::exists},
    {THALIA_ERROR_CANCELLED, 600, ErrorCode::cancelled},
};
static_assert(THALIA_OK == 0 && THALIA_END == 1);
static_assert(THALIA_ERROR_NO_MEMORY == 700 && THALIA_ERROR_INTERNAL == 701);

// A code that C lacks is in this range, and has a name.
void check_codes() {
  std::size_t named = 0;
  for (int number = 2; number < 1000; ++number) {
    named += std::strcmp(thalia_status_name(number), "unknown") != 0;
  }
  check(named == std::size(kCodes) + 2, "every ErrorCode has a status, and no others have names");
  for (const Code& code : kCodes) {
    const std::string name(error_code_name(code.code));
    check(code.status == code.number && static_cast<int>(code.code) == code.number, name);
    check(thalia_status_name(code.status) == name, name);
  }
}

constexpr const char* kDTypes[] = {
    "f32",         "f16",         "i8",      "f64",     "bf16",    "i16",     "i32",     "i64",
    "u8",          "u16",         "u32",     "u64",     "bool",    "f8_e4m3", "f8_e5m2", "f8_e8m0",
    "f8_e4m3fnuz", "f8_e5m2fnuz", "f6_e2m3", "f6_e3m2", "f4_e2m1", "i4",      "u4",      "i2",
    "u2",          "ternary",     "binary",  "c64",     "c128"};
constexpr thalia_dtype kDTypeNumbers[] = {
    THALIA_DTYPE_F32,         THALIA_DTYPE_F16,         THALIA_DTYPE_I8,      THALIA_DTYPE_F64,
    THALIA_DTYPE_BF16,        THALIA_DTYPE_I16,         THALIA_DTYPE_I32,     THALIA_DTYPE_I64,
    THALIA_DTYPE_U8,          THALIA_DTYPE_U16,         THALIA_DTYPE_U32,     THALIA_DTYPE_U64,
    THALIA_DTYPE_BOOL,        THALIA_DTYPE_F8_E4M3,     THALIA_DTYPE_F8_E5M2, THALIA_DTYPE_F8_E8M0,
    THALIA_DTYPE_F8_E4M3FNUZ, THALIA_DTYPE_F8_E5M2FNUZ, THALIA_DTYPE_F6_E2M3, THALIA_DTYPE_F6_E3M2,
    THALIA_DTYPE_F4_E2M1,     THALIA_DTYPE_I4,          THALIA_DTYPE_U4,      THALIA_DTYPE_I2,
    THALIA_DTYPE_U2,          THALIA_DTYPE_TERNARY,     THALIA_DTYPE_BINARY,  THALIA_DTYPE_C64,
    THALIA_DTYPE_C128};
static_assert(std::size(kDTypes) == kDTypeCount && std::size(kDTypeNumbers) == kDTypeCount);
static_assert(THALIA_ROLE_EMBEDDING + 1 == kRoleCount && THALIA_ROLE_BUFFER == 7);
static_assert(THALIA_ENCODING_STEP_DELTA + 1 == kEncodingCount && THALIA_ENCODING_COO == 2);
static_assert(THALIA_CODEC_PACKED_EXPONENTS + 1 == kCodecCount && THALIA_CODEC_LZ4 == 2);
static_assert(THALIA_MAX_RANK == Shape::kMaxRank);

void check_dtypes() {
  for (std::uint32_t i = 0; i < kDTypeCount; ++i) {
    thalia_dtype found = kDTypeCount;
    check(kDTypeNumbers[i] == i, kDTypes[i]);
    check(std::strcmp(thalia_dtype_name(i), kDTypes[i]) == 0, kDTypes[i]);
    check(thalia_dtype_from_name(kDTypes[i], &found) == THALIA_OK && found == i, kDTypes[i]);
    check(thalia_dtype_bits(i) == dtype_bits(static_cast<DType>(i)), kDTypes[i]);
  }
}

// What programs were compiled with: members are added at the end, and kFirstSize keeps these then.
static_assert(sizeof(thalia_read_options) == 56);
static_assert(sizeof(thalia_file_info) == 144);
static_assert(sizeof(thalia_region_info) == 88);
static_assert(sizeof(thalia_tensor_info) == 176);
static_assert(sizeof(thalia_stream_options) == 56);
static_assert(sizeof(thalia_streamed) == 32);
static_assert(sizeof(thalia_save_options) == 64);
static_assert(sizeof(thalia_region_spec) == 48);
static_assert(sizeof(thalia_tensor_spec) == 112);
static_assert(sizeof(thalia_save_result) == 120);
static_assert(sizeof(thalia_saver_options) == 40);
static_assert(sizeof(thalia_save_progress) == 32);
static_assert(sizeof(thalia_checkpoint_info) == 56);
static_assert(sizeof(thalia_load_options) == 48);
static_assert(sizeof(thalia_run_writer_options) == 32);
static_assert(sizeof(thalia_checkpoint_options) == 24);
static_assert(sizeof(thalia_stored) == 40);
static_assert(offsetof(thalia_error, offset) == 88 && offsetof(thalia_error, text) == 16);

// --- Structs that have grown ------------------------------------------------------------------

struct Grown {
  std::size_t size;
  std::uint64_t first;
  std::uint64_t added;
};

}  // namespace

template <>
inline constexpr std::size_t thalia::c::kFirstSize<Grown> = 16;

namespace {

void check_older_callers() {
  Grown theirs{.size = 16, .first = 7, .added = 9};
  const Grown ours = c::taken(&theirs, "older");
  check(ours.first == 7 && ours.added == 0, "an older struct has nothing after its end");
  c::give(theirs, {.size = 0, .first = 1, .added = 2}, "older");
  check(theirs.size == 16 && theirs.first == 1 && theirs.added == 9, "nor is written there");
  theirs.size = 15;
  check(c::guarded([&] { c::taken(&theirs, "older"); }) == THALIA_ERROR_BAD_ARGUMENT,
        "less than the first size");
}

// --- What leaves a guard ----------------------------------------------------------------------

void check_guard() {
  const auto thrown = [](auto exception) { return c::guarded([&] { throw exception; }); };
  check(thrown(CancelledError(ErrorCode::cancelled, "x")) == THALIA_ERROR_CANCELLED, "an Error");
  check(thrown(std::bad_alloc()) == THALIA_ERROR_NO_MEMORY, "bad_alloc");
  check(std::strcmp(thalia_last_error()->text, "out of memory") == 0, "text of bad_alloc");
  check(thrown(std::logic_error("surprise")) == THALIA_ERROR_INTERNAL, "another exception");
  check(std::strcmp(thalia_last_error()->text, "unexpected: surprise") == 0, "text of another");
  check(thrown(5) == THALIA_ERROR_INTERNAL, "no exception at all");
  check(thrown(IoError("pwrite", 28, {.path = "p", .offset = 9})) == THALIA_ERROR_IO, "an IoError");
  const thalia_error* error = thalia_last_error();
  check(error->errno_value == 28 && error->offset == 9, "errno and offset");
  check(std::strcmp(error->path, "p") == 0 && error->region[0] == 0, "path");
}

// --- Files ------------------------------------------------------------------------------------

constexpr std::size_t kRows = 96, kColumns = 128, kSteps = 7;

template <typename T>
std::vector<T> read(const Reader& reader, const char* name) {
  const TensorView tensor = reader.tensor(name);
  check(tensor.dtype() == DTypeOf<T>::value, name);
  std::vector<T> values(tensor.element_count());
  tensor.read(std::as_writable_bytes(std::span(values)));
  return values;
}

void check_file(const std::filesystem::path& path) {
  check(verify(path).ok(), path.string() + " verifies");
  const Reader reader = Reader::open(path);
  check(reader.tensor("weights").shape() == Shape({kRows, kColumns}), "shape");
  const auto weights = read<float>(reader, "weights");
  const auto steps = read<std::int64_t>(reader, "cortex/steps");
  check(weights.size() == kRows * kColumns && steps.size() == kSteps, "elements");
  bool same = true;
  for (std::size_t i = 0; i < weights.size(); ++i)
    same = same && weights[i] == 0.25F * static_cast<float>(i);
  for (std::size_t i = 0; i < steps.size(); ++i)
    same = same && steps[i] == static_cast<std::int64_t>(i * i) - 10;
  check(same, path.string() + " has the values that were saved");
}

void check_whole_sample(const std::filesystem::path& path) {
  const Reader reader = Reader::open(path);
  check(reader.metadata_json() == R"({"made":"in C"})", "metadata");
  check(reader.header().training_steps == 1234, "training steps");
  const RegionView cortex = reader.region("cortex");
  check(cortex.n_neurons() == kRows && cortex.n_inputs() == kColumns, "neurons and inputs");
  check(cortex.neuron_type() == NeuronType::conductance_lif, "neuron type");
  check(cortex.config_json() == R"({"tau":20})", "config");
  check(cortex.at("steps").role() == Role::region_state, "role");
  std::array<std::int32_t, 32> dense{};
  cortex.at("sparse").read_dense(std::as_writable_bytes(std::span(dense)));
  check(dense[2] == 10 && dense[16] == 20 && dense[23] == 30, "sparse elements");
  check(read<float>(reader, "thalamus/gain") == std::vector{-2.0F}, "a scalar");
}

void check_files(const std::filesystem::path& folder) {
  for (const char* name : {"raw.thalia", "zstd.thalia", "pieces.thalia", "newer.thalia",
                           "async.thalia", "borrowed.thalia"})
    check_file(folder / name);
  for (const char* name : {"raw.thalia", "zstd.thalia", "async.thalia"})
    check_whole_sample(folder / name);
  const Reader zstd = Reader::open(folder / "zstd.thalia");
  check(zstd.tensor("weights").codecs() == std::vector{Codec::zstd}, "the codec asked for");
  check(zstd.header().checksum == ChecksumType::sha256, "the checksum asked for");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  check_codes();
  check_dtypes();
  check_older_callers();
  check_guard();
  try {
    check_files(argv[1]);
  } catch (const Error& error) {
    check(false, error.what());
  }
  return failures == 0 ? 0 : 1;
}
