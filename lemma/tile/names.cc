#include "lemma/tile/names.h"

#include <algorithm>

#include "lemma/scalar/expr.h"

namespace lemma::tile {
namespace {

constexpr std::string_view kReserved[] = {
    "accumulate", "add", "all", "along", "alloc", "and", "any", "argmax", "argmin", "assert", "axes", "axis", "by", "cast",
    "ceildiv", "combine", "const_bits", "component", "commutative", "copy", "def", "descending", "dim", "element", "else", "exclusive", "false", "fill",
    "finish", "floordiv", "fold", "for", "fragment", "gemm", "grad", "grid", "identity", "if", "in", "inf", "inner", "input",
    "interleave", "into", "kernel", "left", "let", "lift", "like", "local", "map", "max", "min", "mod", "monoid", "nan",
    "not", "operand", "or", "otherwise", "output", "over", "pad", "panels", "present", "prod", "program", "read", "reduce",
    "require", "reverse", "right", "scan", "scratch", "select", "shared", "size", "state", "step", "store", "strides",
    "sum", "to", "true", "unused", "unrolled", "update", "where", "with", "wrt"};

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_reserved(std::string_view word) {
  if (std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved)) return true;
  if (scalar::parse_dtype(word)) return true;
  static constexpr std::string_view kOps[] = {
#define LEMMA_OP(enumerator, text, arity, shape) text,
#include "lemma/scalar/ops.def"
#undef LEMMA_OP
  };
  return std::find(std::begin(kOps), std::end(kOps), word) != std::end(kOps);
}

std::string identifier(const std::string& name, const std::string& fallback) {
  std::string out;
  for (char c : name) out += letter(c) || digit(c) ? c : '_';
  if (out.empty()) out = fallback;
  if (digit(out[0])) out = "_" + out;
  if (is_reserved(out)) out += "_";
  return out;
}

std::string message_text(const std::string& message) {
  std::string out = message;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return out;
}

std::string NameSet::take(const std::string& wanted) {
  std::string name = wanted;
  for (int n = 1; !taken_.insert(name).second; ++n) name = wanted + "_" + std::to_string(n);
  return name;
}

GlobalNames global_names(const Program& program) {
  GlobalNames out;
  out.program = program.name.empty() ? "" : identifier(program.name, "program");
  for (const SizeDecl& s : program.sizes) out.sizes.push_back(out.taken.take(identifier(s.name, "n")));
  for (const Buffer& b : program.buffers) out.buffers.push_back(out.taken.take(identifier(b.name, "buffer")));
  NameSet kernels;
  for (const Kernel& k : program.kernels) out.kernels.push_back(kernels.take(identifier(k.name, "kernel")));
  return out;
}

}  // namespace lemma::tile
