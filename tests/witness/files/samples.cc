// Writes a varied set of .thalia files, and what is in them, for the witness to read.
#include <tuple>

#include "parts.h"
#include "sample.h"

namespace witness::samples {

namespace {

using namespace thalia;
using std::filesystem::path;

void nothing_at_all(const path& folder) {
  Sample(folder, "nothing").finish();
}

// The worked example of docs/format/examples.md.
void example(const path& folder) {
  Sample sample(folder, "example", example_options());
  sample.metadata(R"({"description":"two neurons"})");
  sample.training_steps(1000);
  const RegionId cortex = sample.region({.name = "cortex",
                                         .config_json = R"({"tau_ms":20})",
                                         .n_neurons = 2,
                                         .n_inputs = 3,
                                         .neuron_type = NeuronType::lif});
  const std::vector<float> w_in{1.0f, 0.5f, -1.0f, 2.0f, 0.0f, 0.25f};
  sample.dense(cortex, {.name = "w_in", .shape = {2, 3}},
               Bytes(as_byte_span(w_in).begin(), as_byte_span(w_in).end()));
  sample.csr(cortex, {.name = "w_rec", .dtype = DType::i8, .shape = {2, 2}}, {{0, 1, 2}, {1, 0}},
             false);
  sample.dense(cortex,
               {.name = "spikes", .dtype = DType::binary, .shape = {2}, .role = Role::region_state},
               Bytes(1, std::byte{0b10}));
  sample.finish();
}

void regions_without_tensors(const path& folder) {
  Sample sample(folder, "no_tensors");
  sample.metadata("{ \"spaces\" : [ 1 ,2], \"größe\":\"\\u00e9\\n\",\n \"tags\":[] }\n");
  sample.training_steps(0xFEDCBA9876543210);
  sample.region({.name = "a", .n_neurons = 7, .n_inputs = 3, .neuron_type = NeuronType::lif});
  sample.region({.name = "b",
                 .config_json = "{\"tau\": 2e-2}",
                 .metadata_json = "{\"note\":\"second\"}",
                 .n_neurons = 0xFFFFFFFF,
                 .neuron_type = NeuronType::conductance_lif});
  sample.finish();
}

void every_dtype(const path& folder) {
  Sample sample(folder, "dtypes");
  const RegionId region = sample.region({.name = "dtypes"});
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DType dtype = static_cast<DType>(code);
    const std::string name(dtype_name(dtype));
    sample.dense(region, {.name = name, .dtype = dtype, .shape = {3, 5}});
    sample.dense(region, {.name = name + ".scalar", .dtype = dtype});
    sample.dense(region, {.name = name + ".empty", .dtype = dtype, .shape = {4, 0}});
  }
  sample.finish();
}

void every_rank(const path& folder) {
  Sample sample(folder, "ranks");
  const RegionId region = sample.region({.name = "ranks"});
  std::vector<std::uint64_t> extents;
  for (unsigned rank = 0; rank <= Shape::kMaxRank; ++rank) {
    const Shape shape{std::span<const std::uint64_t>(extents)};
    for (const DType dtype : {DType::f32, DType::u4}) {
      sample.dense(region, {.name = std::string(dtype_name(dtype)) + "." + std::to_string(rank),
                            .dtype = dtype,
                            .shape = shape});
    }
    extents.push_back(rank % 2 + 2);
  }
  sample.dense(region, {.name = "huge_and_empty", .shape = {1ull << 62, 1ull << 62, 8, 8, 0}});
  sample.finish();
}

void every_sparse_dtype(const path& folder) {
  Sample sample(folder, "sparse");
  const RegionId region = sample.region({.name = "sparse"});
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DType dtype = static_cast<DType>(code);
    if (dtype_is_packed(dtype)) continue;
    for (const bool wide : {false, true}) {
      const std::string name = std::string(dtype_name(dtype)) + (wide ? ".wide" : "");
      sample.csr(region, {.name = name + ".csr", .dtype = dtype, .shape = {7, 5}}, csr_matrix(7, 5),
                 wide);
      sample.coo(region, {.name = name + ".coo", .dtype = dtype, .shape = {3, 4, 5}},
                 {0, 0, 2, 0, 3, 1, 4, 2, 0}, wide);
      sample.csr(region, {.name = name + ".none.csr", .dtype = dtype, .shape = {2, 9}},
                 {{0, 0, 0}, {}}, wide);
      sample.coo(region, {.name = name + ".none.coo", .dtype = dtype, .shape = {6}}, {}, wide);
    }
  }
  sample.csr(region, {.name = "no_rows", .shape = {0, 3}}, csr_matrix(0, 3), false);
  sample.csr(region, {.name = "no_columns", .shape = {3, 0}}, csr_matrix(3, 0), false);
  sample.csr(region, {.name = "one", .shape = {1, 1}}, csr_matrix(1, 1), false);
  sample.coo(region, {.name = "far", .dtype = DType::bf16, .shape = {1ull << 40, 1ull << 20}},
             {0, (1ull << 40) - 1, (1ull << 20) - 1, 0}, true);
  sample.finish();
}

void every_role(const path& folder) {
  Sample sample(folder, "roles");
  for (const char* name : {"full", "second"}) {
    const RegionId region = sample.region({.name = name,
                                           .config_json = R"({"kind":"lif"})",
                                           .metadata_json = R"({"grown":true})",
                                           .n_neurons = 5,
                                           .n_inputs = 2,
                                           .neuron_type = NeuronType::lif,
                                           .homeostatic_updated = 1'700'000'000});
    // Declared against the order in which they lie.
    for (int code = kRoleCount - 1; code >= 0; --code) {
      const Role role = static_cast<Role>(code);
      for (const char* number : {"2", "1"}) {
        sample.dense(
            region, {.name = std::string(role_name(role)) + number, .shape = {5, 2}, .role = role});
      }
    }
  }
  for (std::uint8_t code = 0; code < kRoleCount; ++code) {
    const Role role = static_cast<Role>(code);
    const RegionId region = sample.region({.name = "only " + std::string(role_name(role))});
    sample.dense(region, {.name = "t", .shape = {3}, .role = role});
  }
  const RegionId sparse_first = sample.region({.name = "sparse first"});
  sample.csr(sparse_first, {.name = "z", .shape = {4, 4}}, csr_matrix(4, 4), false);
  sample.dense(sparse_first, {.name = "a", .shape = {4}});
  sample.finish();
}

void large_payloads(const path& folder, LeafAlgorithm leaves) {
  SaveOptions options = plain_options();
  options.leaves = leaves;
  options.block_log2 = 12;
  Sample sample(folder, leaves == LeafAlgorithm::sha256 ? "large_sha256" : "large_xxh3", options);
  const RegionId region = sample.region({.name = "large"});
  for (const std::uint64_t bytes : {65535u, 65536u, 65537u, 1u << 20, (5u << 20) / 2}) {
    sample.dense(region, {.name = std::to_string(bytes), .dtype = DType::u8, .shape = {bytes}});
    sample.dense(region, {.name = "h" + std::to_string(bytes),
                          .dtype = DType::u8,
                          .shape = {bytes},
                          .role = Role::homeostatic});
  }
  sample.dense(region, {.name = "small", .shape = {2}, .role = Role::buffer});
  sample.csr(region, {.name = "csr", .dtype = DType::f64, .shape = {9000, 500}},
             csr_matrix(9000, 500), true);
  sample.finish();
}

void every_name(const path& folder) {
  Sample sample(folder, "names");
  std::string snowmen;
  for (int i = 0; i < 20; ++i) snowmen += "\u2603";
  const std::vector<std::string> names{
      std::string(31, 'a'),
      std::string(32, 'a'),
      std::string(65535, 'r'),
      "x" + snowmen,
      "xy" + snowmen,
      "a.b/c \"quoted\" \\ \n\t\x7F",
      "\U0001F9E0 \u00E9\u00DF",
      "~",
  };
  for (const std::string& name : names) {
    const RegionId region = sample.region({.name = name});
    for (const std::string& tensor :
         {std::string(), std::string("\0nul\0", 5), std::string(65535, 't'), snowmen,
          std::string("weight"), std::string("weight.0"), std::string("\x7F \xC3\xBF")}) {
      sample.dense(region, {.name = tensor, .dtype = DType::i8, .shape = {2}});
    }
  }
  sample.finish();
}

void connections(const path& folder) {
  Sample sample(folder, "connections");
  const std::string longest(300, 'q');
  std::vector<std::string> names{"in", "mid", "out", longest};
  for (const std::string& name : names) sample.region({.name = name, .n_neurons = 3});
  for (const std::string& source : names) {
    for (const std::string& target : names) {
      const std::uint32_t connection = sample.connection(source, target);
      sample.weights(connection, {.dtype = DType::f16, .shape = {3, 3}});
      if (connection % 2 == 1) {
        sample.delays(connection, {.dtype = DType::u8, .shape = {3, 3}});
      }
    }
  }
  sample.finish();
}

void checksum_types(const path& folder) {
  for (const auto& [name, type] : {std::pair("checksum_none", ChecksumType::none),
                                   std::pair("checksum_sha256", ChecksumType::sha256),
                                   std::pair("checksum_crc32", ChecksumType::crc32)}) {
    SaveOptions options = plain_options();
    options.checksum = type;
    Sample sample(folder, name, options);
    sample.dense(sample.region({.name = "r"}), {.name = "w", .shape = {10, 10}});
    sample.finish();
  }
  for (const unsigned log2 : {12u, 13u, 30u}) {
    SaveOptions options = plain_options();
    options.leaves = LeafAlgorithm::xxh3_128;
    options.block_log2 = log2;
    Sample sample(folder, "tree_" + std::to_string(log2), options);
    sample.dense(sample.region({.name = "r"}), {.name = "w", .shape = {100, 100}});
    sample.finish();
  }
}

// Elements whose highest byte hardly varies and whose lowest is noise; of an integer type they
// ascend.
Bytes skewed_elements(DType dtype, std::size_t count) {
  const std::size_t width = dtype_bits(dtype) / 8;
  Bytes bytes;
  std::uint64_t noise = 1;
  for (std::size_t i = 0; i < count; ++i) {
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    std::uint64_t element = noise >> (64 - 8 * (width - 1)) | std::uint64_t{0x3C}
                                                                  << (8 * width - 8);
    if (dtype == DType::i32) element = 3 * i + (noise >> 63);
    for (std::size_t k = 0; k < width; ++k)
      bytes.push_back(static_cast<std::byte>(element >> (8 * k)));
  }
  return bytes;
}

void compressed(const path& folder, Codec codec, const std::string& name) {
  SaveOptions options = plain_options();
  options.compression.codec = codec;
  options.compression.chunk_bytes = 4096;
  Sample sample(folder, name, options);
  const RegionId region = sample.region({.name = "r"});
  sample.dense(region, {.name = "zeros", .shape = {100, 1000}}, Bytes(400'000));
  sample.dense(region, {.name = "noise", .dtype = DType::u8, .shape = {10'000}});
  sample.dense(region, {.name = "one_byte", .dtype = DType::u8, .shape = {1}});
  sample.dense(region, {.name = "empty", .shape = {0}});
  sample.dense(region, {.name = "one_chunk", .shape = {1024}}, Bytes(4096));
  sample.dense(region, {.name = "membrane", .shape = {2000}, .role = Role::region_state},
               Bytes(8000, std::byte{0x3F}));
  sample.csr(region, {.name = "csr", .shape = {3000, 40}}, csr_matrix(3000, 40), false);
  sample.csr(region, {.name = "wide", .shape = {2000, 40}}, csr_matrix(2000, 40), true);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32})
    sample.dense(region, {.name = std::string(dtype_name(dtype)), .dtype = dtype, .shape = {3003}},
                 skewed_elements(dtype, 3003));
  sample.weights(sample.connection("r", "r"), {.dtype = DType::binary, .shape = {300, 300}});
  sample.finish();
}

void streamed(const path& folder) {
  for (const bool compress : {false, true}) {
    SaveOptions options = plain_options();
    if (compress) options.compression.codec = Codec::zstd;
    options.compression.chunk_bytes = 8192;
    Sample sample(folder, compress ? "streamed_zstd" : "streamed", options);
    const RegionId first = sample.region({.name = "first"});
    const RegionId second = sample.region({.name = "second"});
    sample.streamed(first, {.name = "a", .shape = {30'000}});
    sample.streamed(first, {.name = "s", .shape = {77}, .role = Role::region_state});
    sample.dense(first, {.name = "given", .shape = {10}});
    sample.streamed(second, {.name = "b", .dtype = DType::i4, .shape = {333}});
    sample.streamed(second, {.name = "none", .shape = {0}});
    sample.stream(999, !compress);
    sample.finish();
  }
}

void appended(const path& folder) {
  for (const auto& [name, type, codec] :
       {std::tuple("appended", ChecksumType::block_tree, Codec::none),
        std::tuple("appended_none", ChecksumType::none, Codec::none),
        std::tuple("appended_sha256", ChecksumType::sha256, Codec::none),
        std::tuple("appended_crc32", ChecksumType::crc32, Codec::none),
        std::tuple("appended_zstd", ChecksumType::block_tree, Codec::zstd)}) {
    SaveOptions options = plain_options();
    options.checksum = type;
    options.compression.codec = codec;
    options.compression.chunk_bytes = 4096;
    options.block_log2 = 12;
    Sample sample(folder, name, options);
    sample.metadata(R"({"appended":true})");
    sample.training_steps(12);
    const RegionId first = sample.region({.name = "first", .n_neurons = 9});
    sample.dense(first, {.name = "w", .shape = {60, 50}});
    sample.dense(first,
                 {.name = "s", .dtype = DType::f16, .shape = {9}, .role = Role::homeostatic});
    const RegionId second = sample.region({.name = "second", .metadata_json = R"({"of":"two"})"});
    sample.dense(second, {.name = "ones", .shape = {4000}}, Bytes(16'000, std::byte{1}));
    sample.csr(second, {.name = "csr", .shape = {30, 40}}, csr_matrix(30, 40), true);
    sample.weights(sample.connection("first", "second"), {.dtype = DType::f16, .shape = {3, 3}});
    const std::uint32_t back = sample.connection("second", "first");
    sample.weights(back, {.dtype = DType::f32, .shape = {9}});
    sample.delays(back, {.dtype = DType::u8, .shape = {9}});
    sample.finish_by_appends();
  }
}

void write_all(const path& folder) {
  nothing_at_all(folder);
  example(folder);
  regions_without_tensors(folder);
  every_dtype(folder);
  every_rank(folder);
  every_sparse_dtype(folder);
  every_role(folder);
  large_payloads(folder, LeafAlgorithm::sha256);
  large_payloads(folder, LeafAlgorithm::xxh3_128);
  every_name(folder);
  connections(folder);
  checksum_types(folder);
  compressed(folder, Codec::zstd, "zstd");
  compressed(folder, Codec::lz4, "lz4");
  compressed(folder, Codec::plane_entropy, "plane_entropy");
  compressed(folder, Codec::packed_exponents, "packed_exponents");
  streamed(folder);
  appended(folder);
}

}  // namespace

void run(const std::filesystem::path& folder) {
  write_all(folder);
}

}  // namespace witness::samples
