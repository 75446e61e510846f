#include "lemma/scalar/type.h"

#include <array>

namespace lemma::scalar {
namespace {

struct Row {
  DType type;
  std::string_view name;
  int bits;
  Kind kind;
};

constexpr std::array kRows = {
    Row{DType::F64, "f64", 64, Kind::F64},       Row{DType::F32, "f32", 32, Kind::F32},
    Row{DType::F16, "f16", 16, Kind::F32},       Row{DType::BF16, "bf16", 16, Kind::F32},
    Row{DType::F8E4M3, "f8e4m3", 8, Kind::F32},  Row{DType::F8E5M2, "f8e5m2", 8, Kind::F32},
    Row{DType::I64, "i64", 64, Kind::I64},       Row{DType::I32, "i32", 32, Kind::I32},
    Row{DType::I16, "i16", 16, Kind::I32},       Row{DType::I8, "i8", 8, Kind::I32},
    Row{DType::I4, "i4", 4, Kind::I32},          Row{DType::U64, "u64", 64, Kind::U64},
    Row{DType::U32, "u32", 32, Kind::U32},       Row{DType::U16, "u16", 16, Kind::U32},
    Row{DType::U8, "u8", 8, Kind::U32},          Row{DType::U4, "u4", 4, Kind::U32},
    Row{DType::Bool, "bool", 8, Kind::Bool},
};

const Row& row(DType type) { return kRows[size_t(type)]; }

}  // namespace

std::string_view name(DType type) { return row(type).name; }
std::string_view name(Kind kind) { return row(dtype_of(kind)).name; }
int bits(DType type) { return row(type).bits; }
Kind kind_of(DType type) { return row(type).kind; }
bool is_float(DType type) { return is_float(row(type).kind); }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Row& r : kRows) {
    if (r.name == text) return r.type;
  }
  return std::nullopt;
}

DType dtype_of(Kind kind) {
  switch (kind) {
    case Kind::F64: return DType::F64;
    case Kind::F32: return DType::F32;
    case Kind::I64: return DType::I64;
    case Kind::I32: return DType::I32;
    case Kind::U64: return DType::U64;
    case Kind::U32: return DType::U32;
    case Kind::Bool: return DType::Bool;
  }
  return DType::F32;
}

}  // namespace lemma::scalar
