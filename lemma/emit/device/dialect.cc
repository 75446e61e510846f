#include "lemma/emit/device/dialect.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace lemma::emit::device {

using scalar::DType;
using scalar::Kind;

namespace {

constexpr std::array<Dialect, 5> kDialects{{
    {DialectId::Cuda, "cuda", ".cu", false, true, true, true},
    {DialectId::OpenCl, "opencl", ".cl", false, true, true, true},
    {DialectId::Metal, "metal", ".metal", false, true, false, true},
    {DialectId::Glsl, "glsl", ".comp", true, false, true, false},
    {DialectId::Wgsl, "wgsl", ".wgsl", true, false, false, true},
}};

std::string hex(uint64_t value) {
  char text[20];
  return "0x" + std::string(text, std::to_chars(text, text + sizeof text, value, 16).ptr);
}

// The shortest decimal that reads back as the value.
template <class F>
std::string decimal(F value) {
  char text[64];
  std::string out(text, std::to_chars(text, text + sizeof text, value).ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

}  // namespace

const Dialect& dialect(DialectId id) { return kDialects[size_t(id)]; }

const Dialect* find_dialect(std::string_view name) {
  const auto it = std::find_if(kDialects.begin(), kDialects.end(), [&](const Dialect& d) { return d.name == name; });
  return it == kDialects.end() ? nullptr : &*it;
}

std::string_view type_name(const Dialect& d, Kind kind) {
  const bool wgsl = d.id == DialectId::Wgsl;
  switch (kind) {
    case Kind::F64: return "double";
    case Kind::F32: return wgsl ? "f32" : "float";
    case Kind::I64: if (d.long_integers) return d.id == DialectId::Cuda ? "long long" : "long"; [[fallthrough]];
    case Kind::I32: return wgsl ? "i32" : "int";
    case Kind::U64: if (d.long_integers) return d.id == DialectId::Cuda ? "unsigned long long" : "ulong"; [[fallthrough]];
    case Kind::U32: return wgsl ? "u32" : d.id == DialectId::Cuda ? "unsigned int" : "uint";
    case Kind::Bool: return "bool";
  }
  return "";
}

std::string_view storage_name(const Dialect& d, DType type) {
  if (d.words) return d.id == DialectId::Wgsl ? "u32" : "uint";
  const bool cuda = d.id == DialectId::Cuda;
  switch (type) {
    case DType::F64: return "double";
    case DType::F32: return "float";
    case DType::I64: return cuda ? "long long" : "long";
    case DType::U64: return cuda ? "unsigned long long" : "ulong";
    case DType::I32: return "int";
    case DType::U32: return cuda ? "unsigned int" : "uint";
    case DType::I16: return "short";
    case DType::F16: case DType::BF16: case DType::U16: return cuda ? "unsigned short" : "ushort";
    case DType::I8: return d.id == DialectId::OpenCl || d.id == DialectId::Metal ? "char" : "signed char";
    case DType::F8E4M3: case DType::F8E5M2: case DType::U8: case DType::I4: case DType::U4: case DType::Bool:
      return cuda ? "unsigned char" : "uchar";
  }
  return "";
}

std::string index_literal(const Dialect& d, int64_t value) {
  if (!d.long_integers) {
    if (value == INT32_MIN) return "(-2147483647 - 1)";
    return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
  }
  const std::string suffix = d.id == DialectId::Cuda ? "ll" : "l";
  if (value == INT64_MIN) return "(-9223372036854775807" + suffix + " - 1" + suffix + ")";
  return value < 0 ? "(" + std::to_string(value) + suffix + ")" : std::to_string(value) + suffix;
}

std::string literal_text(const Dialect& d, Kind kind, int64_t bits) {
  switch (kind) {
    case Kind::F32: {
      const float value = std::bit_cast<float>(uint32_t(bits));
      // A subnormal literal may be flushed by a compiler; its bits are not.
      // The largest floats' shortest decimals lie beyond them, which Tint refuses.
      const bool plain = std::fpclassify(value) == FP_NORMAL && std::fabs(value) < 3.4e38f;
      if (!plain && !(value == 0 && !std::signbit(value))) return "lm_as_float(" + hex(uint32_t(bits)) + "u)";
      const std::string text = decimal(value) + "f";
      return value < 0 ? "(" + text + ")" : text;
    }
    case Kind::F64: {
      const double value = std::bit_cast<double>(bits);
      if (std::fpclassify(value) != FP_NORMAL && !(value == 0 && !std::signbit(value))) {
        const std::string high = hex(uint64_t(bits) >> 32) + "u", low = hex(uint32_t(bits)) + "u";
        return "lm_as_double2(" + high + ", " + low + ")";
      }
      const std::string text = decimal(value) + (d.id == DialectId::Glsl ? "lf" : "");
      return value < 0 ? "(" + text + ")" : text;
    }
    case Kind::I64: return index_literal(d, bits);
    case Kind::I32: {
      const int32_t value = int32_t(bits);
      if (value == INT32_MIN) return "(-2147483647 - 1)";
      return value < 0 ? "(" + std::to_string(value) + ")" : std::to_string(value);
    }
    case Kind::U64: if (d.long_integers) return hex(uint64_t(bits)) + (d.id == DialectId::Cuda ? "ull" : "ul"); [[fallthrough]];
    case Kind::U32: return std::to_string(uint32_t(bits)) + "u";
    case Kind::Bool: return bits ? "true" : "false";
  }
  return "0";
}

std::string fixed(const Dialect& d, std::string_view type, const std::string& name, const std::string& value) {
  if (d.id == DialectId::Wgsl) return "let " + name + ": " + std::string(type) + " = " + value + ";";
  // `precise` keeps a GLSL compiler from rearranging floats.
  const bool exact = d.id == DialectId::Glsl && (type == "float" || type == "double");
  return (exact ? "precise " : d.id == DialectId::Glsl ? "" : "const ") + std::string(type) + " " + name + " = " + value + ";";
}

std::string variable(const Dialect& d, std::string_view type, const std::string& name, const std::string& value) {
  if (d.id == DialectId::Wgsl) return "var " + name + ": " + std::string(type) + " = " + value + ";";
  return std::string(type) + " " + name + " = " + value + ";";
}

std::string convert(const Dialect& d, std::string_view type, const std::string& value) {
  if (d.words) return std::string(type) + "(" + value + ")";
  return "(" + std::string(type) + ")(" + value + ")";
}

std::string choose(const Dialect& d, const std::string& test, const std::string& yes, const std::string& no) {
  if (d.id == DialectId::Wgsl) return "select(" + no + ", " + yes + ", " + test + ")";
  return "(" + test + " ? " + yes + " : " + no + ")";
}


}  // namespace lemma::emit::device
