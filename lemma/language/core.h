// The middle form between text and graph: one equation at a time, with functions inlined, names resolved and every
// index a variable of its own, but kinds, extents and domains still open.
//
// Function arguments are closures: an expression with the frame it was written in. An index is a symbol of a frame; an
// environment says which variable (or which expression, under `at`) a symbol stands for *now*, so a fold in a function
// that binds the caller's index sees the caller's expression at its own point, and an index of the function's own never
// catches one of the caller's. Cores are shared: a closure met twice under one environment is one core.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lemma/language/bounds.h"
#include "lemma/language/program.h"
#include "lemma/tensor/graph.h"

namespace lemma::language {

using base::Result;

// One text: the program or the prelude.
struct Unit {
  Unit(std::string_view text, std::string file, bool is_prelude) : source(text, std::move(file)), prelude(is_prelude) {}
  syntax::Source source;
  syntax::Tree tree;
  Program program;
  bool prelude = false;
};

using CoreId = int;

enum class CoreKind : uint8_t {
  Integer,   // magnitude, negative
  Real,
  Truth,     // magnitude 0 or 1
  Var,       // var
  Size,      // form
  Read,      // source; args are the coordinates; guard, maybe
  Chain,     // args joined by ops: arithmetic and bit operations, left to right
  Logic,     // args joined by and (op And) or or (op Or)
  Compare,   // args joined by comparisons
  Apply,     // op over args
  CeilDiv,
  Negate,    // args[0]
  Not,       // logical
  Select,
  Else,
  When,      // args[1] where args[0] holds
  Maybe,     // args[0]; its reads that leave their source are off the domain
  Cast,      // to `type`
  RoundTo,   // to `type`
  Bits,      // to the kind of `type`
  Present,   // args[0] is a Read
  Raw,       // args[0]; its value with no say on where it exists
  Fold,      // fold, result (-1: all of them)
  Tuple,
  Given,     // which: an operand or component of a monoid under definition
  State,     // which component; right; args are its coordinates
};

enum class Comparison : uint8_t { Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual };

struct Core {
  CoreKind kind = CoreKind::Integer;
  scalar::Op op = scalar::Op::Const;
  bool negative = false, maybe = false, right = false;
  int frame = 0;
  NodeId ast = -1;                    // for its place
  uint64_t magnitude = 0;
  double real = 0;
  int var = -1, fold = -1, result = -1, which = -1;
  CoreId guard = -1;
  scalar::DType type = scalar::DType::F32;
  tensor::Value source;
  view::Form form;
  std::vector<CoreId> args;
  std::vector<uint8_t> ops;           // scalar::Op or Comparison, between args
};

struct Use {                          // a plain read of an index
  view::Form extent;
  bool guarded = false;
  int frame = 0;
  NodeId ast = -1;
  std::string source;
  int dimension = 0;
};

struct Var {
  std::string name;
  int frame = 0;
  NodeId ast = -1;
  std::optional<view::Form> extent;   // stated, or found by find_extents
  bool stated = false;
  int shadows = -1;                   // the variable that the symbol stood for outside
  std::vector<Use> uses;
};

// Which monoid: a library name or a definition, with its parameters.
struct MonoidSpec {
  struct Parameter {
    std::optional<view::Form> form;   // a size
    double real = 0;
    std::shared_ptr<MonoidSpec> monoid;
  };
  std::string name;
  const MonoidDefinition* definition = nullptr;
  const Unit* unit = nullptr;
  std::vector<Parameter> parameters;
};

// What is known of a monoid before kinds are.
struct MonoidShape {
  std::vector<std::vector<view::Form>> components;  // axes
  std::vector<std::vector<view::Form>> results;     // axes
  int operands = 1;
};

struct Fold {
  MonoidSpec monoid;
  MonoidShape shape;
  bool scan = false, exclusive = false, reverse = false;
  std::vector<int> vars;              // bound ones; of a scan: the scan's index, bound outside
  CoreId condition = -1;
  std::vector<CoreId> operands;
  std::vector<CoreId> initial;
  int frame = 0;
  NodeId ast = -1;
};

struct Binding {
  enum Kind : uint8_t { Closure, Index, Domain, Ready } kind = Closure;
  NodeId ast = -1;                    // of a closure, a domain (-1: true), or an index's stated bound (-1: none)
  int frame = 0;                      // where that stands
  int symbol = -1;
  CoreId core = -1;                   // of Ready
};

struct Frame {
  const Unit* unit = nullptr;
  int caller = -1;
  NodeId call = -1;
  const Function* function = nullptr;
  int depth = 0;
  std::map<std::string, Binding> names;
  std::map<NodeId, std::vector<NodeId>> locals;  // a local's expression: the locals that it names
  // Of a monoid under definition: its components, as read by x.NAME and y.NAME.
  const MonoidDefinition* monoid = nullptr;
};

struct Global {
  enum Kind : uint8_t { Size, Tensor } kind = Size;
  view::Form form;
  tensor::Value value;
  Place place;
};

// Everything one elaboration holds. Frame 0 is the program's own.
class Context {
 public:
  Context(const Unit& program, const Unit* prelude);

  tensor::Graph graph;
  std::unordered_map<std::string, Global> globals;
  std::vector<Core> cores;
  std::vector<Var> vars;
  std::vector<Fold> folds;
  std::vector<Frame> frames;
  const Unit& program;
  const Unit* prelude;
  struct FunctionEntry { const Unit* unit; const Function* function; };
  struct MonoidEntry { const Unit* unit; const MonoidDefinition* definition; };
  std::unordered_map<std::string, FunctionEntry> functions;
  std::unordered_map<std::string, MonoidEntry> monoids;
  std::unordered_map<std::string, Place> later;      // names that statements below define
  std::unordered_set<std::string> taken;             // names of nodes that the elaborator made
  const std::string* defining = nullptr;             // the name of the equation at hand
  int64_t steps = 0;                                  // of elaboration, bounded

  const syntax::Node& ast(int frame, NodeId id) const { return frames[size_t(frame)].unit->tree[id]; }
  base::Diagnostic fail(int frame, NodeId ast, std::string message, std::string suggestion = {}) const;
  base::Diagnostic fail_at(int frame, Place place, std::string message, std::string suggestion = {}) const;
  base::Diagnostic fail(const Core& core, std::string message, std::string suggestion = {}) const {
    return fail(core.frame, core.ast, std::move(message), std::move(suggestion));
  }
  base::Span span(int frame, NodeId ast) const;
  Result<void> step(int frame, NodeId ast);

  CoreId add(Core core) {
    cores.push_back(std::move(core));
    return CoreId(cores.size()) - 1;
  }
  int add_frame(Frame frame) {
    frames.push_back(std::move(frame));
    return int(frames.size()) - 1;
  }
  std::string print(const view::Form& form) const;    // over sizes

  // Environments and symbols, interned.
  int symbol(int frame, const std::string& name);
  std::optional<int> known_symbol(int frame, const std::string& name) const;
  int bind(int environment, int symbol, CoreId core);
  int unbind(int environment, int symbol);
  std::optional<CoreId> bound(int environment, int symbol) const;

  // The locals of a function or an equation, as closures of its frame.
  void add_locals(int frame, const std::vector<Local>& locals);
  // Forgets the equation at hand.
  void clear_equation();

  struct Key {
    int frame, ast, environment;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const;
  };
  std::unordered_map<Key, CoreId, KeyHash> memo;
  std::unordered_map<Key, int, KeyHash> frame_memo;

 private:
  using Environment = std::vector<std::pair<int, CoreId>>;
  int intern(Environment e);
  std::map<std::pair<int, std::string>, int> symbols_;
  std::map<Environment, int> environment_ids_;
  std::vector<Environment> environments_;
};

// The core of a surface expression. An error says where, with the calls that led there.
class Expander {
 public:
  explicit Expander(Context& context) : c_(context) {}
  Result<CoreId> expand(int frame, NodeId ast, int environment);
  // An expression over sizes only.
  Result<view::Form> size(int frame, NodeId ast, int environment);
  // A new variable for `name`, in the environment given; `bound` may be -1.
  Result<int> variable(int frame, const std::string& name, NodeId ast, int symbol, int bound_frame, NodeId bound,
                       int& environment);

 private:
  Result<CoreId> ready(const Context::Key& key);
  Result<CoreId> expand_node(int frame, NodeId ast, int environment);
  Result<CoreId> name(int frame, NodeId ast, int environment);
  Result<CoreId> read(int frame, NodeId ast, int environment);
  Result<CoreId> chain(int frame, NodeId ast, int environment);
  Result<CoreId> compare(int frame, NodeId ast, int environment);
  Result<CoreId> call(int frame, NodeId ast, int environment);
  Result<CoreId> function(int frame, NodeId ast, int environment, const Context::FunctionEntry& entry);
  Result<CoreId> fold(int frame, NodeId ast, int environment);
  Result<CoreId> at(int frame, NodeId ast, int environment);
  Result<CoreId> builtin(int frame, NodeId ast, int environment);
  Result<std::vector<CoreId>> all(int frame, const std::vector<NodeId>& items, int environment);
  Result<void> locals_before(const Binding& binding, int environment);
  Result<CoreId> closure(int frame, NodeId ast, Binding binding, int environment);
  Result<std::optional<tensor::Value>> tensor_of(int frame, const std::string& name, int depth);
  Result<view::Form> size_of(CoreId core, const std::string& what);
  base::Diagnostic unknown(int frame, NodeId ast, const std::string& name, bool called) const;
  Result<MonoidSpec> monoid(int frame, const std::string& name, NodeId ast, const std::vector<NodeId>& params, int environment);
  CoreId make(CoreKind kind, int frame, NodeId ast, std::vector<CoreId> args = {});

  Context& c_;
  int depth_ = 0;
};

bool is_library_monoid(const std::string& name);
// The shape that a spec has, with how many operands it was given.
Result<MonoidShape> shape_of(Context& context, const MonoidSpec& spec, int operands, int frame, NodeId ast);
// The monoid itself, once the operands' kinds are known.
Result<monoid::MonoidRef> instantiate(Context& context, const MonoidSpec& spec, const std::vector<scalar::Kind>& kinds,
                                      int frame, NodeId ast);

// The extents of all variables of the equation, from the reads below `roots`.
Result<void> find_extents(Context& context, const std::vector<CoreId>& roots);

}  // namespace lemma::language
