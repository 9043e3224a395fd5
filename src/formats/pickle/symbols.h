// The Python objects that a pickle may name. All others are refused; none is ever imported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "thalia/types.h"

namespace thalia::formats::pt {

/// What a name stands for here.
enum class Meaning : std::uint8_t {
  // Functions that give tensors, all of torch._utils but rebuild_from_type.
  rebuild_tensor,
  rebuild_tensor_v2,
  rebuild_tensor_v3,
  rebuild_parameter,
  rebuild_parameter_with_state,
  rebuild_sparse_tensor,
  rebuild_qtensor,
  rebuild_from_type,  ///< torch._tensor._rebuild_from_type_v2
  rebuild_meta_tensor,
  // That give arrays of numpy.
  numpy_scalar,
  numpy_reconstruct,
  numpy_from_buffer,
  numpy_dtype,
  // That give plain values.
  get_layout,
  size,
  device,
  version_text,  ///< torch.torch_version.TorchVersion: a text
  ordered_dict,
  default_dict,
  counter,
  set,
  frozenset,
  complex,
  bytes,
  bytearray,
  encode,       ///< _codecs.encode: how protocol 2 writes bytes
  script_list,  ///< torch.jit._pickle.build_intlist and its like
  script_tagged,
  // What nothing calls.
  storage_type,
  dtype,
  quantized_dtype,
  scheme_per_tensor,
  scheme_per_channel,
  plain_tensor_class,
  parameter_class,
  builtin_type,  ///< list, int, …: what defaultdict may be given
  numpy_array,
  script_class,  ///< a class of a TorchScript program
};

/// Element types of quantized tensors: their codes are plain integers.
enum class Quantum : std::uint8_t { none, qint8, quint8, qint32 };

struct Symbol {
  Meaning meaning{};
  DType dtype = DType::u8;  ///< storage_type, dtype
  Quantum quantum = Quantum::none;
  bool untyped = false;     ///< torch.storage.UntypedStorage
  std::string_view name{};  ///< as the pickle spells it, without its module
};

/// nullopt for what is not known. `name` must outlive the symbol.
std::optional<Symbol> find_symbol(std::string_view module, std::string_view name) noexcept;

/// What to do about a file that needs an object of that name; empty if nothing better is known
/// than not to trust it.
std::string_view symbol_advice(std::string_view module, std::string_view name) noexcept;

/// "float32": torch's name. Empty where torch lacks the type.
std::string_view torch_dtype_name(DType dtype) noexcept;
std::optional<DType> torch_dtype_from_name(std::string_view name) noexcept;
/// "FloatStorage"; empty for types that torch saves in storages without a type.
std::string_view torch_storage_name(DType dtype) noexcept;
/// "qint8"; empty for none.
std::string_view quantum_name(Quantum quantum) noexcept;
std::optional<Quantum> quantum_from_name(std::string_view name) noexcept;
/// "QInt8Storage".
std::string_view quantum_storage_name(Quantum quantum) noexcept;
/// The type of the codes.
DType quantum_dtype(Quantum quantum) noexcept;

}  // namespace thalia::formats::pt
