// The public side of a chain: a checkpoint that reads as if it were one full file, tensor by
// tensor. A tensor that lies raw in one of the files is handed out where it lies, and then keeps
// the chain open; any other is made piece by piece from what the links store. The state of a chain
// (state_source) holds no bytes, only ways to get them.

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/inside.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/append/copied_tensor.h"
#include "container/file/short_name.h"
#include "container/read/reader_of.h"
#include "container/read/tensor_reading.h"
#include "format/extent.h"
#include "io/memory/allocation_limit.h"
#include "state/delta/chain_stream.h"
#include "state/delta/file_chain.h"
#include "state/delta/replaced_top.h"
#include "state/delta/tensor_chain.h"
#include "thalia/state/delta.h"

namespace thalia {
namespace {

// The alignment of a made tensor's first byte: that of a payload in a file.
constexpr std::align_val_t kAlignment{64};

struct Memory {
  explicit Memory(std::size_t length)
      : data(
            static_cast<std::byte*>(::operator new(std::max<std::size_t>(length, 1), kAlignment))) {
  }
  ~Memory() { ::operator delete(data, kAlignment); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data;
};

// Runs `action`; an error gets the names of the tensor, and of the checkpoint if it has no file.
template <typename Action>
auto named(const state::FileChain& files, const TensorView& view, Action action) {
  return container::with_names(files.file(0), Reader::region_name(view), view.name(), action);
}

void check_part(const state::TensorChain& chain, std::uint64_t begin, std::uint64_t length) {
  if (begin <= chain.size() && length <= chain.size() - begin) return;
  fail_argument(ErrorCode::bad_argument, "begin", fmt::format("{} bytes at {}", length, begin),
                fmt::format("a part of {} bytes", chain.size()));
}

// Reads any part of a tensor. A chain gives parts that begin and end at multiples of 16 bytes, so
// that every element type has whole elements there; what is asked beyond that goes through a
// buffer.
void read_any(const state::TensorChain& chain, std::uint64_t begin, MutableByteSpan out,
              unsigned threads) {
  // A thread's share: fits into a cache. Shares begin at multiples of it, so that only the ends of
  // the part need the buffer.
  constexpr std::uint64_t kPiece = 1 << 20;
  const std::uint64_t end = begin + out.size();
  const std::uint64_t first = begin / kPiece;
  parallel_for(out.empty() ? 0 : (end - 1) / kPiece + 1 - first, threads, [&](std::size_t i) {
    const std::uint64_t from = std::max(begin, (first + i) * kPiece);
    const std::uint64_t to = std::min(end, (first + i + 1) * kPiece);
    const std::uint64_t aligned = from / 16 * 16;
    const std::uint64_t aligned_end = std::min(format::align_up(to, 16), chain.size());
    if (aligned == from && aligned_end == to)
      return chain.read(from, out.subspan(from - begin, to - from));
    std::vector<std::byte> buffer;
    const ByteSpan found = chain.part(aligned, aligned_end - aligned, buffer);
    std::memcpy(out.data() + (from - begin), found.data() + (from - aligned), to - from);
  });
}

// The tensors of a region as they were declared, which is the order of their places in the file.
void add_tensors(const RegionView& region, std::vector<TensorView>& views) {
  const auto first = static_cast<std::ptrdiff_t>(views.size());
  for (std::uint32_t t = 0; t < region.tensor_count(); ++t) views.push_back(region.tensor(t));
  std::sort(views.begin() + first, views.end(), [](const TensorView& a, const TensorView& b) {
    return a.stored_offset() < b.stored_offset();
  });
}

bool checks(const state::FileChain& files) {
  return files.options().read.verification != Verification::off;
}

Tensor read_whole(std::shared_ptr<const state::FileChain> files, const state::TensorChain& chain) {
  const ChainTensor& result = chain.result();
  // No copy: the tensor owns the chain instead, which maps the file.
  if (chain.is_in_place()) return Tensor::adopt(result.layout, chain.view(), std::move(files));
  chain.budget().take("payload", result.logical_bytes);
  const auto memory = std::make_shared<Memory>(result.logical_bytes);
  const MutableByteSpan bytes(memory->data, result.logical_bytes);
  chain.read_all(bytes, files->options().read.work.threads, checks(*files));
  return Tensor::adopt(result.layout, bytes, memory);
}

}  // namespace

ChainReader::ChainReader(std::shared_ptr<const state::FileChain> chain, Reader reader)
    : chain_(std::move(chain)), reader_(std::move(reader)) {}

ChainReader ChainReader::open(const std::filesystem::path& path, const ChainOptions& options) {
  return state::open_unreplaced(
      path, [&] { return Reader::open(path, options.read); },
      [](const Reader& top) -> const io::FileBytes& {
        return container::shared_file_of(top)->mapping();
      },
      [&](const Reader& top) { return open(top, options); });
}

ChainReader ChainReader::open(const Reader& top, const ChainOptions& options) {
  return {std::make_shared<const state::FileChain>(container::shared_file_of(top), options), top};
}

unsigned ChainReader::depth() const noexcept {
  return static_cast<unsigned>(chain_->size() - 1);
}

std::vector<std::filesystem::path> ChainReader::paths() const {
  std::vector<std::filesystem::path> paths;
  for (std::size_t i = 0; i < chain_->size(); ++i)
    paths.push_back(chain_->file(i).mapping().path());
  return paths;
}

std::uint64_t ChainReader::disk_bytes() const {
  return chain_->disk_bytes();
}

ChainTensor ChainReader::describe(const TensorView& tensor) const {
  return named(*chain_, tensor, [&] { return state::find_tensor(*chain_, tensor).result(); });
}

Tensor ChainReader::read(const TensorView& tensor) const {
  return named(*chain_, tensor,
               [&] { return read_whole(chain_.pointer(), state::find_tensor(*chain_, tensor)); });
}

Tensor state::read_tensor(const ChainReader& reader, const TensorView& tensor,
                          std::shared_ptr<io::MemoryBudget> budget) {
  const auto& files = detail::Inside::chain(reader);
  return named(*files, tensor, [&] {
    return read_whole(files.pointer(), find_tensor(*files, tensor, std::move(budget)));
  });
}

void ChainReader::read(const TensorView& tensor, MutableByteSpan out) const {
  named(*chain_, tensor, [&] {
    const state::TensorChain chain = state::find_tensor(*chain_, tensor);
    if (out.size() != chain.size()) {
      fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", out.size()),
                    std::to_string(chain.size()));
    }
    chain.read_all(out, chain_->options().read.work.threads, checks(*chain_));
  });
}

void ChainReader::read_part(const TensorView& tensor, std::uint64_t begin,
                            MutableByteSpan out) const {
  named(*chain_, tensor, [&] {
    const state::TensorChain chain = state::find_tensor(*chain_, tensor);
    check_part(chain, begin, out.size());
    read_any(chain, begin, out, chain_->options().read.work.threads);
  });
}

StreamReader ChainReader::stream(const StreamOptions& options) const {
  if (depth() == 0) return StreamReader(reader_, options);
  std::vector<TensorView> tensors;
  for (std::uint32_t r = 0; r < reader_.region_count(); ++r)
    add_tensors(reader_.region(r), tensors);
  for (std::uint32_t c = 0; c < reader_.connection_count(); ++c) {
    const ConnectionView connection = reader_.connection(c);
    tensors.push_back(connection.weights);
    if (connection.delays) tensors.push_back(*connection.delays);
  }
  return state::stream_chain(*this, tensors, options);
}

StreamReader ChainReader::stream(std::span<const RegionView> regions,
                                 const StreamOptions& options) const {
  if (depth() == 0) return StreamReader(reader_, regions, options);
  std::vector<TensorView> tensors;
  for (const RegionView& region : regions) add_tensors(region, tensors);
  return state::stream_chain(*this, tensors, options);
}

StreamReader ChainReader::stream(std::span<const TensorView> tensors,
                                 const StreamOptions& options) const {
  if (depth() == 0) return StreamReader(reader_, tensors, options);
  return state::stream_chain(*this, {tensors.begin(), tensors.end()}, options);
}

const state::FileChain& state::files_of(const ChainReader& reader) noexcept {
  return *detail::Inside::chain(reader);
}

StateSource state_source(const ChainReader& chain) {
  const Reader& reader = chain.reader();
  const auto source = [&](const TensorView& view) {
    const state::FileChain& files = state::files_of(chain);
    const std::string name = named(files, view, [&] { return container::name_to_write(view); });
    const auto [tensor, in_place] = named(files, view, [&] {
      const state::TensorChain found = state::find_tensor(files, view);
      return std::pair(found.result(), found.is_in_place());
    });
    // A tensor that lies raw in one file is loaded, which copies nothing; any other is given in
    // parts.
    const auto open = [chain, view]() -> PartReader {
      const state::FileChain& own = state::files_of(chain);
      // Found once and shared by all parts; it borrows the files, which the copy of `chain` keeps.
      const auto found = named(own, view, [&] {
        return std::make_shared<state::TensorChain>(state::find_tensor(own, view));
      });
      return [chain, view, found](std::uint64_t begin, MutableByteSpan out) {
        named(state::files_of(chain), view, [&] {
          check_part(*found, begin, out.size());
          read_any(*found, begin, out, 1);
        });
      };
    };
    return TensorSource{.spec = TensorSpec::of(name, tensor.layout, view.role()),
                        .load = [chain, view] { return chain.read(view); },
                        .content_hash = tensor.content_hash,
                        .open = in_place ? std::function<PartReader()>() : open};
  };
  std::map<std::string, std::string> full_names;  // connections know regions by short ones
  StateSource state;
  const std::string_view metadata = reader.metadata_json();
  if (!metadata.empty()) state.metadata_json = metadata;
  state.training_steps = reader.header().training_steps;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    RegionSource& out = state.regions.emplace_back();
    out.spec =
        with_path(reader.path().native(), [&] { return container::region_to_write(region); });
    full_names.emplace(container::short_name_string(out.spec.name), out.spec.name);
    std::vector<TensorView> views;
    add_tensors(region, views);
    for (const TensorView& view : views) out.tensors.push_back(source(view));
  }
  for (std::uint32_t c = 0; c < reader.connection_count(); ++c) {
    const ConnectionView connection = reader.connection(c);
    const auto full = [&](const std::string& name) {
      const auto found = full_names.find(name);
      return found == full_names.end() ? name : found->second;
    };
    state.connections.push_back(
        {.source = full(connection.source),
         .target = full(connection.target),
         .weights = source(connection.weights),
         .delays = connection.delays ? std::optional(source(*connection.delays)) : std::nullopt});
  }
  return state;
}

}  // namespace thalia
