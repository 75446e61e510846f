// What the parts of the C emitter share while one unit is written: names, the text so far, the buffers that a kernel
// uses, and how forms, formulas and elements are spelled.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lemma/emit/c.h"
#include "lemma/emit/names.h"
#include "lemma/emit/writer.h"

namespace lemma::emit {

// A value in the emitted text: an expression without side effects, and whether lanes differ.
struct Value {
  std::string text;
  bool varying = false;
};

// Where a statement's body is being written: which variable runs across lanes, what stands for a variable, and the
// reads made so far.
struct Frame {
  tile::Var lane_var = -1;
  std::string lane;                          // the text of one lane: scalar text for that lane
  std::map<tile::Var, std::string> vars;     // in place of a variable's own name
  std::vector<Value> reads;                  // Arg(r), Data(r)
  std::vector<scalar::Kind> read_kinds;
  std::vector<Value> present;                // Present(r)
  std::map<uint32_t, Value> known;           // expressions already in a variable
};

// A buffer that a block owns: one of the program's, or one an expansion needs.
struct LocalBuffer {
  std::string name;
  scalar::DType type = scalar::DType::F32;
  view::Form count;                          // elements, over sizes
};

class Unit {
 public:
  Unit(const tile::Program& program, const COptions& options);

  const tile::Program& program;
  const COptions& options;
  int lanes() const { return options.target.lanes(); }

  Writer out;                                // of the kernel being written
  std::vector<std::string> messages;
  std::set<std::string> tiles;               // definitions of register tiles that kernels call
  std::set<int> used_sizes, used_buffers;    // by the kernel being written
  std::vector<LocalBuffer> temporaries;      // of the kernel being written
  std::set<int> combined;                    // buffers that blocks fold into side by side
  bool prints = false;                       // some kernel writes to standard error
  scalar::Arena arena;                       // for expressions made while emitting

  // Buffers and variables made for an expansion stand behind the program's own.
  int buffer_count() const { return int(buffers_.size()); }
  const tile::Buffer& buffer(int b) const { return buffers_[size_t(b)]; }
  int add_buffer(tile::Buffer buffer);
  // The same memory as elements of another type of the same width.
  int add_alias(int buffer, scalar::DType type);
  tile::Var add_variable(const std::string& name);

  std::string fresh(const std::string& stem) { return stem + std::to_string(next_++); }
  void restart_names() { next_ = 0; }
  const std::string& size_name(int s);
  const std::string& buffer_name(int b);
  const std::string& var_name(tile::Var v) const { return var_names_[size_t(v)]; }
  const std::vector<std::string>& size_names() const { return size_names_; }
  const std::string& raw_buffer_name(int b) const { return buffer_names_[size_t(b)]; }

  // Elements from the buffer's start, as a form; panels included.
  view::Form offset(int buffer, const std::vector<view::Form>& coords) const;
  view::Form element_count(int buffer) const;  // with padding
  view::Form simplify(const view::Form& form) const;
  // How far a statement variable reaches, for simplification; set when its loop opens.
  void set_range(tile::Var v, const view::Range& range);
  view::Range range_of(const view::Atom& atom) const;

  std::string form_text(const view::Form& form, const Frame& frame);
  std::string condition(const view::Formula& formula, const Frame& frame);
  std::string load(int buffer, const std::string& offset);  // one element, in its kind
  void store(int buffer, const std::string& offset, const std::string& value);

 private:
  std::string atom_text(const view::Atom& atom, const Frame& frame);
  std::vector<tile::Buffer> buffers_;
  std::map<int, int> alias_of_;
  std::vector<std::string> size_names_, buffer_names_, var_names_;
  std::vector<view::Range> ranges_;
  Names names_;
  int next_ = 0;
};

bool varies(const view::Form& form, const Frame& frame);
bool varies(const view::Formula& formula, const Frame& frame);

std::string c_type(scalar::Kind kind);
std::string c_type(scalar::DType type);       // as stored
std::string vector_type(scalar::Kind kind);   // of a 32-bit class kind
const char* vector_suffix(scalar::Kind kind); // vf vi vu

}  // namespace lemma::emit
