// Element types. A DType is how a value is stored; a Kind is how it is computed. Narrow types are storage only.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lemma::scalar {

enum class DType : uint8_t { F64, F32, F16, BF16, F8E4M3, F8E5M2, I64, I32, I16, I8, I4, U64, U32, U16, U8, U4, Bool };

// Arithmetic happens in these. Integers wrap; Bool is 0 or 1.
enum class Kind : uint8_t { F64, F32, I64, I32, U64, U32, Bool };

std::string_view name(DType type);  // "f32", "bf16", "f8e4m3", "i4", "bool" ...
std::string_view name(Kind kind);
std::optional<DType> parse_dtype(std::string_view text);

int bits(DType type);                 // stored bits: 4 for i4 and u4 (two to a byte, low nibble first), 8 for bool
inline int64_t bytes(DType type, int64_t count) { return (int64_t(bits(type)) * count + 7) / 8; }
Kind kind_of(DType type);             // the kind a stored value is computed in: bf16 -> F32, i8 -> I32, u16 -> U32
DType dtype_of(Kind kind);            // the storage that holds a kind exactly

inline bool is_float(Kind kind) { return kind == Kind::F64 || kind == Kind::F32; }
inline bool is_integer(Kind kind) { return !is_float(kind) && kind != Kind::Bool; }
inline bool is_signed(Kind kind) { return kind == Kind::I64 || kind == Kind::I32; }
inline bool is_wide(Kind kind) { return kind == Kind::F64 || kind == Kind::I64 || kind == Kind::U64; }
bool is_float(DType type);

}  // namespace lemma::scalar
