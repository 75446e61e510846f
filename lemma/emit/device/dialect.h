// What a device dialect can say and how it spells it, as data. Dialects are leaves: the emitter (kernel.h) writes one
// program, a dialect only names things; none derives from another.
//
// Two families differ in how memory is reached. With pointers (CUDA, OpenCL C, Metal) a buffer is a typed pointer. As
// words (GLSL, WGSL) every buffer is an array of 32-bit words that loads and stores take apart, and a 64-bit integer is
// its low word with a sign: there integers of 64 bits must fit in 32.
#pragma once

#include <string>
#include <string_view>

#include "lemma/scalar/type.h"

namespace lemma::emit::device {

enum class DialectId : uint8_t { Cuda, OpenCl, Metal, Glsl, Wgsl };

struct Dialect {
  DialectId id = DialectId::OpenCl;
  std::string_view name;            // as in --target: "cuda", "opencl", "metal", "glsl", "wgsl"
  std::string_view extension;       // of a file of it: ".cu"
  bool words = false;               // buffers are arrays of 32-bit words
  bool long_integers = true;        // has 64-bit integers
  bool doubles = true;              // has f64
  bool one_text = true;             // one text holds all kernels; else one each
};

const Dialect& dialect(DialectId id);
// By name; nothing for a name that is none.
const Dialect* find_dialect(std::string_view name);

// The type a kind is computed in. Bool is the dialect's own.
std::string_view type_name(const Dialect& dialect, scalar::Kind kind);
// The type of a stored element behind a pointer: bf16 as an unsigned 16-bit integer, and so on.
std::string_view storage_name(const Dialect& dialect, scalar::DType type);

// A constant, bit for bit and whatever the locale; what has no literal (inf, nan) goes through its bits.
std::string literal_text(const Dialect& dialect, scalar::Kind kind, int64_t bits);
std::string index_literal(const Dialect& dialect, int64_t value);


// `type name = value;` for a value that does not change, and for one that does.
std::string fixed(const Dialect& dialect, std::string_view type, const std::string& name, const std::string& value);
std::string variable(const Dialect& dialect, std::string_view type, const std::string& name, const std::string& value);

std::string convert(const Dialect& dialect, std::string_view type, const std::string& value);
std::string choose(const Dialect& dialect, const std::string& test, const std::string& yes, const std::string& no);

// What a compiler of the dialect is given first; the emulator has its own.
std::string preamble(const Dialect& dialect);

// Functions that every emitted text may use; the text they stand in begins with this.
std::string prelude(const Dialect& dialect);

}  // namespace lemma::emit::device
