// The tables are all that a pickle may name. A row makes an object readable, so it comes with code
// that builds what the object stands for and runs nothing of the file. Types are listed with their
// names in both directions, so that what is read can be written.
#include "formats/pickle/symbols.h"

#include <array>

namespace thalia::formats::pt {
namespace {

struct TorchType {
  DType dtype;
  std::string_view name;
  std::string_view storage;  ///< empty: torch saves it in a storage without a type
};
constexpr std::array kTorchTypes{
    TorchType{DType::f32, "float32", "FloatStorage"},
    TorchType{DType::f64, "float64", "DoubleStorage"},
    TorchType{DType::f16, "float16", "HalfStorage"},
    TorchType{DType::bf16, "bfloat16", "BFloat16Storage"},
    TorchType{DType::i8, "int8", "CharStorage"},
    TorchType{DType::i16, "int16", "ShortStorage"},
    TorchType{DType::i32, "int32", "IntStorage"},
    TorchType{DType::i64, "int64", "LongStorage"},
    TorchType{DType::u8, "uint8", "ByteStorage"},
    TorchType{DType::boolean, "bool", "BoolStorage"},
    TorchType{DType::c64, "complex64", "ComplexFloatStorage"},
    TorchType{DType::c128, "complex128", "ComplexDoubleStorage"},
    TorchType{DType::u16, "uint16", ""},
    TorchType{DType::u32, "uint32", ""},
    TorchType{DType::u64, "uint64", ""},
    TorchType{DType::f8_e4m3, "float8_e4m3fn", ""},
    TorchType{DType::f8_e5m2, "float8_e5m2", ""},
    TorchType{DType::f8_e8m0, "float8_e8m0fnu", ""},
    TorchType{DType::f8_e4m3fnuz, "float8_e4m3fnuz", ""},
    TorchType{DType::f8_e5m2fnuz, "float8_e5m2fnuz", ""},
};

struct Quantized {
  Quantum quantum;
  std::string_view name, storage;
  DType codes;
};
constexpr std::array kQuantized{
    Quantized{Quantum::qint8, "qint8", "QInt8Storage", DType::i8},
    Quantized{Quantum::quint8, "quint8", "QUInt8Storage", DType::u8},
    Quantized{Quantum::qint32, "qint32", "QInt32Storage", DType::i32},
};

struct Name {
  std::string_view module, name;
  Meaning meaning;
};
constexpr std::array kNames{
    Name{"torch._utils", "_rebuild_tensor", Meaning::rebuild_tensor},
    Name{"torch._utils", "_rebuild_tensor_v2", Meaning::rebuild_tensor_v2},
    Name{"torch._utils", "_rebuild_tensor_v3", Meaning::rebuild_tensor_v3},
    Name{"torch._utils", "_rebuild_parameter", Meaning::rebuild_parameter},
    Name{"torch._utils", "_rebuild_parameter_with_state", Meaning::rebuild_parameter_with_state},
    Name{"torch._utils", "_rebuild_sparse_tensor", Meaning::rebuild_sparse_tensor},
    Name{"torch._utils", "_rebuild_qtensor", Meaning::rebuild_qtensor},
    Name{"torch._utils", "_rebuild_meta_tensor_no_storage", Meaning::rebuild_meta_tensor},
    Name{"torch._tensor", "_rebuild_from_type_v2", Meaning::rebuild_from_type},
    Name{"torch.serialization", "_get_layout", Meaning::get_layout},
    Name{"torch", "Size", Meaning::size},
    Name{"torch", "device", Meaning::device},
    Name{"torch", "Tensor", Meaning::plain_tensor_class},
    Name{"torch.nn.parameter", "Parameter", Meaning::parameter_class},
    Name{"torch", "per_tensor_affine", Meaning::scheme_per_tensor},
    Name{"torch", "per_channel_affine", Meaning::scheme_per_channel},
    Name{"torch.torch_version", "TorchVersion", Meaning::version_text},
    Name{"collections", "OrderedDict", Meaning::ordered_dict},
    Name{"collections", "defaultdict", Meaning::default_dict},
    Name{"collections", "Counter", Meaning::counter},
    Name{"_codecs", "encode", Meaning::encode},
    Name{"numpy._core.multiarray", "scalar", Meaning::numpy_scalar},
    Name{"numpy.core.multiarray", "scalar", Meaning::numpy_scalar},
    Name{"numpy._core.multiarray", "_reconstruct", Meaning::numpy_reconstruct},
    Name{"numpy.core.multiarray", "_reconstruct", Meaning::numpy_reconstruct},
    Name{"numpy._core.numeric", "_frombuffer", Meaning::numpy_from_buffer},
    Name{"numpy.core.numeric", "_frombuffer", Meaning::numpy_from_buffer},
    Name{"numpy", "ndarray", Meaning::numpy_array},
    Name{"numpy", "dtype", Meaning::numpy_dtype},
    Name{"torch.jit._pickle", "build_intlist", Meaning::script_list},
    Name{"torch.jit._pickle", "build_doublelist", Meaning::script_list},
    Name{"torch.jit._pickle", "build_boollist", Meaning::script_list},
    Name{"torch.jit._pickle", "build_tensorlist", Meaning::script_list},
    Name{"torch.jit._pickle", "restore_type_tag", Meaning::script_tagged},
};

// A name in the module __builtin__, which Python 3 calls builtins.
struct Builtin {
  std::string_view name;
  Meaning meaning;
};
constexpr std::array kBuiltins{
    Builtin{"set", Meaning::set},
    Builtin{"frozenset", Meaning::frozenset},
    Builtin{"complex", Meaning::complex},
    Builtin{"bytes", Meaning::bytes},
    Builtin{"bytearray", Meaning::bytearray},
    Builtin{"list", Meaning::builtin_type},
    Builtin{"dict", Meaning::builtin_type},
    Builtin{"tuple", Meaning::builtin_type},
    Builtin{"int", Meaning::builtin_type},
    Builtin{"float", Meaning::builtin_type},
    Builtin{"str", Meaning::builtin_type},
    Builtin{"bool", Meaning::builtin_type},
};

std::optional<Symbol> find_torch_type(std::string_view module, std::string_view name) noexcept {
  if ((module == "torch.storage" || module == "torch") && name == "UntypedStorage")
    return Symbol{.meaning = Meaning::storage_type, .untyped = true, .name = name};
  if (module != "torch") return std::nullopt;
  for (const TorchType& type : kTorchTypes) {
    if (name == type.name)
      return Symbol{.meaning = Meaning::dtype, .dtype = type.dtype, .name = type.name};
    if (!type.storage.empty() && name == type.storage)
      return Symbol{.meaning = Meaning::storage_type, .dtype = type.dtype, .name = name};
  }
  for (const Quantized& type : kQuantized) {
    Symbol symbol{.dtype = type.codes, .quantum = type.quantum, .name = name};
    symbol.meaning = name == type.storage ? Meaning::storage_type : Meaning::quantized_dtype;
    if (name == type.storage || name == type.name) return symbol;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Symbol> find_symbol(std::string_view module, std::string_view name) noexcept {
  for (const Name& known : kNames)
    if (module == known.module && name == known.name)
      return Symbol{.meaning = known.meaning, .name = name};
  if (module == "__builtin__" || module == "builtins") {
    for (const Builtin& known : kBuiltins)
      if (name == known.name) return Symbol{.meaning = known.meaning, .name = name};
  }
  if (module == "__torch__" || module.starts_with("__torch__."))
    return Symbol{.meaning = Meaning::script_class, .name = name};
  return find_torch_type(module, name);
}

std::string_view symbol_advice(std::string_view module, std::string_view name) noexcept {
  if (module.starts_with("torch.nn.") || module.starts_with("torchvision.models"))
    return "; save model.state_dict() in place of the model";
  if (module == "torch.storage" && name == "_load_from_bytes")
    return "; save the tensors themselves, not objects that pickle them";
  if (module.starts_with("torch.distributed"))
    return "; gather the tensors first, as full_tensor() does";
  if (module == "argparse" && name == "Namespace") return "; save vars(args) in place of args";
  if (module == "pathlib") return "; save str(path) in place of the path";
  if (module == "torch.optim" || module.starts_with("torch.optim."))
    return "; save its state_dict() in its place";
  return "";
}

std::string_view torch_dtype_name(DType dtype) noexcept {
  for (const TorchType& type : kTorchTypes)
    if (type.dtype == dtype) return type.name;
  return "";
}

std::optional<DType> torch_dtype_from_name(std::string_view name) noexcept {
  for (const TorchType& type : kTorchTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

std::string_view torch_storage_name(DType dtype) noexcept {
  for (const TorchType& type : kTorchTypes)
    if (type.dtype == dtype) return type.storage;
  return "";
}

std::string_view quantum_name(Quantum quantum) noexcept {
  for (const Quantized& type : kQuantized)
    if (type.quantum == quantum) return type.name;
  return "";
}

std::optional<Quantum> quantum_from_name(std::string_view name) noexcept {
  for (const Quantized& type : kQuantized)
    if (type.name == name) return type.quantum;
  return std::nullopt;
}

std::string_view quantum_storage_name(Quantum quantum) noexcept {
  for (const Quantized& type : kQuantized)
    if (type.quantum == quantum) return type.storage;
  return "";
}

DType quantum_dtype(Quantum quantum) noexcept {
  for (const Quantized& type : kQuantized)
    if (type.quantum == quantum) return type.codes;
  return DType::u8;
}

}  // namespace thalia::formats::pt
