// Cores to nodes of the graph: kinds, presence, guards.
//
// A Term is what a core is at one point of a node: its expression, the formula under which it exists, and, where it is
// an integer that forms can hold or a condition that a formula can hold, that as well.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "lemma/language/core.h"

namespace lemma::language {

struct Term {
  scalar::Expr expr;
  bool weak = false;                 // made of literals, sizes and indices: takes the kind of what it meets
  bool large = false;                // made with an integer that no coordinate may hold
  std::optional<int64_t> literal;    // an integer literal
  view::Formula where;               // where it exists
  MaybeForm form;                    // an integer (or a bool as 0 or 1) as a form
  MaybeFormula truth;                // a bool as a formula
  int read = -1;                     // the value is that of this read
};

class Nodes;

// Builds the reads, the domain and the expressions of one node over the variables given, or of a monoid's clause.
class NodeBuilder {
 public:
  NodeBuilder(Context& context, Nodes& nodes, std::vector<int> vars, scalar::ArenaRef arena);

  struct Mode {
    bool guarded = false;            // a read that leaves its source is off the domain
    int branch = 0;                  // of branches_: what is known where the value is used; not part of the domain
    auto operator<=>(const Mode&) const = default;
  };

  Result<Term> term(CoreId core);
  // Where a condition holds and exists.
  Result<view::Formula> condition(CoreId core) { return condition(core, Mode{}); }
  // What is known at every point that the rest is asked for; part of the node's domain.
  void assume(const view::Formula& formula) { assumed_ = formula; }

  // An integer as a form, for a coordinate.
  Result<view::Form> place(CoreId core, view::Formula& where) { return coordinate(core, Mode{}, where); }
  Result<scalar::Expr> convert(const Term& term, scalar::Kind kind, CoreId core);
  // The kind it has by itself: weak integers are i64, weak floats f32.
  scalar::Kind settled(const Term& term) const;
  struct Common { scalar::Kind kind; bool weak; };
  Result<Common> common(const std::vector<const Term*>& terms, CoreId core, const std::string& what);

  const std::vector<int>& vars() const { return vars_; }
  int local(int var) const { return local_.at(var); }
  // The reads of the finished node: guards that the domain implies leave, unless the domain itself needs the read.
  std::vector<tensor::Read> finish(const view::Formula& domain);
  Box box() const;

  // Of a monoid's clause.
  std::vector<scalar::Kind> givens;
  const std::vector<monoid::Component>* components = nullptr;
  std::vector<monoid::StateRead> states;

 private:
  Result<Term> term(CoreId core, Mode mode);
  Result<view::Formula> condition(CoreId core, Mode mode);
  Result<Term> run(CoreId core, Mode mode);
  Result<Term> build(CoreId core, Mode mode);
  Result<Term> literal(const Core& core);
  Result<Term> read(CoreId core, Mode mode);
  Result<Term> chain(CoreId core, Mode mode);
  Result<Term> logic(CoreId core, Mode mode);
  Result<Term> compare(CoreId core, Mode mode);
  Result<Term> compare_two(const Term& a, const Term& b, Comparison how, CoreId core);
  Result<Term> apply(CoreId core, Mode mode);
  Result<Term> apply_op(scalar::Op op, const std::vector<Term>& args, CoreId core);
  Result<Term> choose(CoreId core, Mode mode);
  Result<Term> fallback(CoreId core, Mode mode);
  Result<Term> cast(CoreId core, Mode mode);
  Result<Term> fold_value(CoreId core);
  Result<Term> state(CoreId core, Mode mode);
  Result<Term> binary(scalar::Op op, const Term& a, const Term& b, CoreId core);
  Result<view::Formula> together(const view::Formula& a, const view::Formula& b, CoreId core);
  Result<Term> materialise(CoreId core);
  Result<view::Form> coordinate(CoreId core, Mode mode, view::Formula& where);
  Result<view::Formula> source_domain(tensor::Value source, const std::vector<view::Form>& coords,
                                      const view::Formula& inside, CoreId core);
  int add_read(tensor::Read read, bool stated);
  Term plain_read(tensor::Value value, const std::vector<int>& vars);
  Mode under(Mode mode, const view::Formula& condition);
  scalar::Expr expression(const view::Form& form);
  scalar::Expr expression(const view::Formula& formula);
  scalar::Expr numbers(scalar::Expr e, scalar::Kind kind, int depth);
  scalar::Expr rekind(scalar::Expr weak, scalar::Kind kind);

  Context& c_;
  Nodes& nodes_;
  std::vector<int> vars_;
  std::unordered_map<int, int> local_;
  scalar::ArenaRef arena_;
  std::vector<tensor::Read> reads_;
  std::vector<bool> stated_;
  std::unordered_multimap<size_t, int> read_index_;
  view::Formula assumed_;
  std::vector<view::Formula> branches_{view::Formula()};
  std::map<std::pair<CoreId, Mode>, Term> memo_;
  // Depth of the recursion under way, and what it asked for where it was cut off; see run.
  int nesting_ = 0;
  std::optional<std::pair<CoreId, Mode>> pending_;
};

// One result of a fold or one map, as the left side wants it.
struct Wanted {
  std::string name;
  std::optional<scalar::DType> type;
  std::vector<int> vars;             // its dimensions, in storage order
  int result = 0;
  bool final_state = false;
  bool dropped = false;              // `_`
};

// The nodes made for the equation at hand and those before it.
class Nodes {
 public:
  explicit Nodes(Context& context) : c_(context) {}

  struct Made {
    tensor::Value value;
    std::vector<int> vars;           // its dimensions
  };
  // The node of a fold inside an expression, made once.
  Result<Made> fold(int fold);
  // The map of an expression inside a condition or a coordinate.
  Result<Made> map(CoreId core);

  // Whole equations.
  Result<tensor::Tensor> fold_equation(int fold, const std::vector<Wanted>& wanted);
  Result<tensor::Tensor> map_equation(CoreId core, CoreId condition, const Wanted& wanted);
  struct ScatterParts {
    std::vector<int> vars;
    CoreId condition = -1, value = -1;
    std::vector<CoreId> coords;
    std::vector<view::Form> extents;
    std::optional<MonoidSpec> monoid;
    std::optional<tensor::Value> base;
    Wanted wanted;
    int frame = 0;
    NodeId ast = -1;
  };
  Result<tensor::Tensor> scatter_equation(const ScatterParts& parts);

  // The variables below a core, in the order they are met, less those that folds below it bind.
  std::vector<int> free_vars(const std::vector<CoreId>& roots) const;
  std::string fresh(const std::string& stem);
  void clear_equation();
  tensor::Tensor intern(tensor::Comprehension node);

 private:
  Result<tensor::Tensor> fold_node(int id, const Fold& fold, const std::vector<Wanted>& wanted);
  Result<tensor::Tensor> map_node(CoreId core, CoreId condition, const Wanted& wanted);
  struct Operands { std::vector<scalar::Expr> exprs; view::Formula domain; monoid::MonoidRef monoid; };
  Result<Operands> operands(NodeBuilder& builder, const Fold& fold, CoreId core);
  Result<scalar::DType> storage(const Wanted& wanted, scalar::Kind kind, bool weak, CoreId core) const;

  Context& c_;
  int nesting_ = 0;                  // of folds within folds
  std::unordered_map<int, Made> folds_;
  std::unordered_map<CoreId, Made> maps_;
  std::unordered_multimap<size_t, tensor::Tensor> interned_;
};

Result<scalar::Kind> component_kind(Context& context, const Named& type);

}  // namespace lemma::language
