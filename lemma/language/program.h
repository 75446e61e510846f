// A program as written: statements over surface expressions, with no name resolved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/scalar/type.h"
#include "lemma/syntax/parse.h"

namespace lemma::language {

using syntax::NodeId;
using syntax::Place;

struct Named {
  std::string name;
  Place place;
};

// dim NAME [= e] [in e .. e], and the attributes `e | NAME`, `like e` that follow it.
struct Dim {
  Named name;
  NodeId value = -1, low = -1, high = -1, divisor = -1, like = -1;
};

struct InputItem {
  Named name;
  std::vector<NodeId> extents;
  Named type;                       // empty: f32
  NodeId low = -1, high = -1;
  bool sorted = false, strided = false;
};

struct Local {
  Named name;
  NodeId value = -1;
};

// One left side: NAME[coordinate, ... : condition] [: type].
struct Target {
  Named name;
  std::vector<NodeId> coords;
  NodeId condition = -1;
  Named type;
  bool final_state = false;
};

struct Equation {
  std::vector<Target> targets;
  bool tuple = false;
  Named combine;                    // of a scatter: a monoid or `injective`; else empty
  std::vector<NodeId> binders;      // of a scatter, where stated: sum(i < N : condition)=
  NodeId condition = -1;
  NodeId value = -1;
  std::vector<Local> locals;        // ... where NAME = e, ...
  NodeId onto = -1;                 // of a scatter
  bool onto_nothing = false;
  bool is_output = false;
  bool is_update = false;
};

struct OutputItem {
  Named name;
  Named type;
  Named value;                      // output NAME = VALUE; else empty
};

// def NAME[params](items : domain) operands = e, or { locals, return e }.
struct Function {
  Named name;
  std::vector<Named> parameters;
  std::vector<Named> items;         // indices if there are operands, values else
  Named domain;
  bool folds = false;               // operands follow: the items are indices
  std::vector<Named> operands;
  std::vector<Local> locals;
  NodeId result = -1;
};

struct StateItem {
  Named name;
  std::vector<Named> axes;
  std::vector<NodeId> extents;
  Named type;
};

struct MonoidClause {
  Named component;
  std::vector<Named> axes;
  NodeId value = -1;
  std::vector<Local> locals;
};

struct MonoidDefinition {
  Named name;
  std::vector<Named> parameters;
  std::vector<Named> operands;
  std::vector<StateItem> state;
  std::vector<MonoidClause> identity, lift, combine;
  std::vector<MonoidClause> finish;
  bool commutative = false, idempotent = false;
};

// The statements in order; `index` points into the vector of the kind.
enum class StatementKind : uint8_t { Dims, Inputs, Outputs, Equation, Function, Monoid };
struct Statement {
  StatementKind kind;
  size_t begin = 0, end = 0;        // a range of that vector
  Place place;
};

struct Program {
  std::vector<Statement> statements;
  std::vector<Dim> dims;
  std::vector<InputItem> inputs;
  std::vector<OutputItem> outputs;
  std::vector<Equation> equations;
  std::vector<Function> functions;
  std::vector<MonoidDefinition> monoids;
};

// Fills `tree` with the program's expressions.
base::Result<Program> parse_program(const syntax::Source& source, syntax::Tree& tree);

}  // namespace lemma::language
