// Where a statement's text is being written: what variables are called, the reads made so far, known expressions.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lemma/emit/device/device.h"
#include "lemma/emit/names.h"
#include "lemma/emit/writer.h"
#include "lemma/layout/layout.h"
#include "lemma/view/formula.h"

namespace lemma::emit::device {

// A statement's points over the registers of a thread (registers.h), one at a time.
struct Round {
  layout::Layout points;                                // their distribution
  std::vector<tile::Var> vars;                          // a dimension each
  std::string reg;                                      // the register's number, as text
};

struct Scope {
  std::map<tile::Var, std::string> vars;
  std::shared_ptr<const Round> round;
  std::vector<std::string> reads, present;              // texts of Arg(r), Data(r) and Present(r)
  std::vector<scalar::Kind> kinds;                      // of the reads
  std::unordered_map<uint32_t, std::string> known;      // expressions already in a variable
};

// How a block-local buffer is held.
enum class Held : uint8_t { Global, Shared, Slice, Registers };

// One kernel's text under way.
class Text {
 public:
  Text(const tile::Program& program, const DeviceOptions& options)
      : program(program), options(options), dialect(device::dialect(options.dialect)), threads(options.threads), buffers(program.buffers) {}

  const tile::Program& program;
  const DeviceOptions& options;
  const Dialect& dialect;
  int threads;                                          // of this kernel's workgroups
  bool synchronised = false;                            // its barriers stand in the program
  std::vector<std::string> prologue;                    // lines at the kernel's beginning
  std::vector<tile::Buffer> buffers;                    // the program's, then those of expansions
  scalar::Arena arena;                                  // for expressions made here
  Writer out;
  std::string prefix;                                   // of names that stand outside the kernel
  std::map<int, std::string> buffer_names;              // of this kernel
  std::map<int, Held> held;
  std::map<int, view::Form> slice_offset;               // in words
  std::map<int, std::string> size_names;                // those used so far
  std::set<int> atomic_buffers;                         // whose words are exchanged between threads
  int next = 0;

  std::string fresh(const std::string& stem) { return stem + std::to_string(next++); }
  const tile::Buffer& buffer(int b) const { return buffers[size_t(b)]; }
  int add_shared(const std::string& name, scalar::DType type, int64_t count);  // workgroup memory of an expansion
  std::string_view type(scalar::Kind kind) const { return type_name(dialect, kind); }
  std::string_view index_type() const { return type(scalar::Kind::I64); }

  std::string form(const view::Form& form, const Scope& scope);
  std::string condition(const view::Formula& formula, const Scope& scope);
  // Where an element lies in its buffer, in elements.
  view::Form offset(int buffer, const std::vector<view::Form>& coords) const;
  view::Form count(int buffer) const;                   // elements of a block-local buffer
  // The same as text: the place in memory, or in an array of registers.
  std::string place(const tile::Access& access, const Scope& scope);
  std::string register_place(const tile::Access& access, const Scope& scope) const;
  // Which coordinates a thread's first register has, a variable for each dimension.
  std::vector<std::string> thread_places(const layout::Layout& layout);

  // Writes what is needed for the roots; their texts. Functions are expanded.
  std::vector<std::string> values(std::span<const scalar::Expr> roots, Scope& scope);
  std::string value(scalar::Expr root, Scope& scope) { return values({&root, 1}, scope)[0]; }

  // Makes the accesses; a read whose guard fails gives zero bits. `under`: only where this text holds.
  void reads(const std::vector<tile::Access>& accesses, Scope& scope, const std::vector<bool>& which);
  void made_read(Scope& scope, size_t read, int buffer, const std::string& element);
  std::string stored_value(int buffer, const std::string& value, scalar::Kind kind);
  void store(const tile::Access& to, const std::string& value, scalar::Kind kind, Scope& scope);
  void combine(const tile::Access& to, const std::string& value, scalar::Kind kind, scalar::Op op, Scope& scope, bool alone);
  std::string load(int buffer, const std::string& at);  // as the buffer's kind

  void define(std::string_view type, const std::string& name, const std::string& value) { out.line(fixed(dialect, type, name, value)); }
  void declare(std::string_view type, const std::string& name, const std::string& value) { out.line(variable(dialect, type, name, value)); }
  void loop(const std::string& var, const std::string& begin, const std::string& end, const std::string& step);
  void test(const std::string& condition) { out.open("if (" + condition + ")"); }
  void barrier();
  void at_statement();                                  // the emulator's findings name it
  std::string refusal;                                  // why the kernel cannot be said, once known
  int statements = 0;                                   // counted for the emulator's findings

 private:
  std::string decoded(scalar::DType type, const std::string& raw);
  std::optional<std::string> narrow_form(const view::Form& form, const Scope& scope);
  std::map<std::string, std::vector<std::string>> places_;  // by the layout's text
  std::string operation(scalar::Expr e, const std::vector<std::string>& args);
  std::string product(const std::vector<std::string>& factors) const;
  void put(int buffer, const std::string& at, const std::string& value);
  bool by_words(int buffer) const;
  std::string element(int buffer, const std::string& i) const;
  std::string to_word(scalar::Kind from, const std::string& value) const;
  std::string infix_sign(const std::string& word) const;
};

}  // namespace lemma::emit::device
