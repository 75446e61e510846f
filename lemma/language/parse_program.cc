// Statements: which keyword begins which, and what stands in each. Keywords are keywords only where a statement of
// their kind can begin: `input[i] = 1` is an equation.
#include "lemma/language/program.h"

namespace lemma::language {
namespace {

using base::Result;
using syntax::Parser;
using syntax::Token;
using syntax::TokenKind;

class ProgramParser {
 public:
  ProgramParser(const syntax::Source& source, const std::vector<Token>& tokens, syntax::Tree& tree)
      : source_(source), parser_(source, tokens, tree) {}

  Result<Program> run() {
    parser_.skip_separators();
    while (parser_.peek().kind != TokenKind::End) {
      LEMMA_TRY_VOID(statement());
      if (parser_.peek().kind != TokenKind::Separator && parser_.peek().kind != TokenKind::End) {
        return parser_.found("the end of the statement", hint());
      }
      parser_.skip_separators();
    }
    return std::move(program_);
  }

 private:
  // What people write that this language spells otherwise.
  std::string hint() const {
    const Token& t = parser_.peek();
    if (t.symbol(")") || t.symbol("]") || t.symbol("}")) return "remove the bracket, or open it before";
    if (t.symbol("=")) return "a comparison is written ==";
    if (t.symbol("^") || t.symbol("**")) return "powers are written pow(a, b)";
    if (t.symbol("@")) return "a product of matrices is a sum: c[i, j] = sum(k) a[i, k] * b[k, j]";
    if (t.symbol(".")) return "there are no methods: a function stands before what it is of, as in exp(x[i]) or sum(j) x[i, j]";
    if (t.kind == TokenKind::Name) return "a statement begins on a new line or after `;`";
    return "";
  }

  static Named named(const Token& t) { return {t.text, t.place}; }

  Result<void> statement() {
    const Token& first = parser_.peek();
    const Token& second = parser_.peek(1);
    const bool keyword = first.kind == TokenKind::Name && !first.quoted && second.kind == TokenKind::Name;
    const Place place = first.place;
    if (keyword && first.text == "dim") return add(StatementKind::Dims, place, program_.dims, &ProgramParser::dims);
    if (first.word("dim") && second.kind == TokenKind::Integer) {
      return add(StatementKind::Dims, place, program_.dims, &ProgramParser::dims);
    }
    if (keyword && first.text == "input") return add(StatementKind::Inputs, place, program_.inputs, &ProgramParser::inputs);
    if (keyword && first.text == "def") return add(StatementKind::Function, place, program_.functions, &ProgramParser::function);
    if (keyword && first.text == "monoid") return add(StatementKind::Monoid, place, program_.monoids, &ProgramParser::monoid);
    if (first.word("output") && (second.kind == TokenKind::Name || second.symbol("("))) return output();
    if (keyword && first.text == "update") {
      parser_.next();
      return equation(false, true);
    }
    if (keyword && first.text == "grad") {
      return base::unsupported("`grad` is not part of this version of the language", source_.span(place));
    }
    if (first.kind == TokenKind::Name || first.symbol("(")) return equation(false, false);
    return parser_.found("a statement: dim, input, output, def, monoid, update or an equation `name[i] = ...`");
  }

  template <class T>
  Result<void> add(StatementKind kind, Place place, std::vector<T>& into, Result<void> (ProgramParser::*parse)()) {
    const size_t begin = into.size();
    parser_.next();
    LEMMA_TRY_VOID((this->*parse)());
    program_.statements.push_back({kind, begin, into.size(), place});
    return {};
  }

  // ---- dim ----
  Result<void> dims() {
    while (true) {
      if (parser_.peek().word("like") && !program_.dims.empty() && starts_number(parser_.peek(1))) {
        parser_.next();
        LEMMA_TRY(program_.dims.back().like, size());
      } else if (parser_.peek().kind == TokenKind::Integer) {
        LEMMA_TRY(const NodeId divisor, size());
        LEMMA_TRY_VOID(parser_.expect("|", "between a divisor and its size, as in `16 | N`"));
        LEMMA_TRY(const Token name, parser_.expect_name("the size that it divides"));
        Dim* dim = nullptr;
        for (Dim& d : program_.dims) {
          if (d.name.name == name.text) dim = &d;
        }
        if (!dim || dim->value >= 0) {
          Dim d;
          d.name = named(name);
          d.divisor = divisor;
          if (dim) return source_.error(name.place, "`" + name.text + "` is defined by a value, a divisor cannot be stated");
          program_.dims.push_back(std::move(d));
        } else {
          dim->divisor = divisor;
        }
      } else {
        LEMMA_TRY(const Token name, parser_.expect_name("the name of a size"));
        Dim d;
        d.name = named(name);
        if (parser_.take("=")) {
          LEMMA_TRY(d.value, parser_.expression());
        } else if (parser_.take_word("in")) {
          LEMMA_TRY(d.low, size());
          LEMMA_TRY_VOID(parser_.expect("..", "in a range"));
          if (starts_number(parser_.peek()) || parser_.peek().kind == TokenKind::Name) { LEMMA_TRY(d.high, size()); }
        }
        if (parser_.peek().word("like")) {
          parser_.next();
          LEMMA_TRY(d.like, size());
        }
        program_.dims.push_back(std::move(d));
      }
      if (!parser_.take(",")) return {};
    }
  }

  static bool starts_number(const Token& t) { return t.kind == TokenKind::Integer || t.symbol("-"); }
  Result<NodeId> size() { return parser_.sum(); }

  // ---- input ----
  Result<void> inputs() {
    const size_t begin = program_.inputs.size();
    while (true) {
      LEMMA_TRY(const Token name, parser_.expect_name("the name of an input"));
      InputItem item;
      item.name = named(name);
      if (parser_.peek().symbol("[")) {
        const Token open = parser_.next();
        LEMMA_TRY(Parser::Items items, parser_.list("]", open));
        if (items.condition >= 0) return source_.error(parser_.tree()[items.condition].place, "an input has extents only, found a condition");
        item.extents = std::move(items.items);
      }
      const bool typed = parser_.take(":");
      if (typed) {
        LEMMA_TRY(const Token type, parser_.expect_name("an element type such as f32 or bf16"));
        item.type = named(type);
      }
      if (parser_.take_word("in")) {
        LEMMA_TRY(item.low, size());
        LEMMA_TRY_VOID(parser_.expect("..", "in a range"));
        LEMMA_TRY(item.high, size());
      }
      while (true) {
        if (parser_.take_word("sorted")) item.sorted = true;
        else if (parser_.take_word("strided")) item.strided = true;
        else break;
      }
      program_.inputs.push_back(std::move(item));
      if (typed) {
        // `input q[N], k[N] : bf16`: the type is that of all before it that have none.
        for (size_t i = begin; i < program_.inputs.size(); ++i) {
          if (program_.inputs[i].type.name.empty()) program_.inputs[i].type = program_.inputs.back().type;
        }
      }
      if (!parser_.take(",")) return {};
    }
  }

  // ---- output ----
  Result<void> output() {
    const Place place = parser_.next().place;
    // An equation, or names.
    size_t ahead = 1;
    bool is_equation = parser_.peek().symbol("(") || parser_.peek(1).symbol("[");
    if (!is_equation) {
      if (parser_.peek(1).symbol(":")) ahead = 3;
      is_equation = parser_.peek(ahead).symbol("=");
      const Token& after = parser_.peek(ahead + 2);
      const bool alias = parser_.peek(ahead + 1).kind == TokenKind::Name &&
                         (after.kind == TokenKind::Separator || after.kind == TokenKind::End || after.symbol(","));
      is_equation = is_equation && !alias;
    }
    if (is_equation) return equation(true, false);
    const size_t begin = program_.outputs.size();
    do {
      LEMMA_TRY(const Token name, parser_.expect_name("the name of an output"));
      OutputItem item;
      item.name = named(name);
      if (parser_.take(":")) {
        LEMMA_TRY(const Token type, parser_.expect_name("an element type such as f32 or bf16"));
        item.type = named(type);
        for (size_t i = begin; i < program_.outputs.size(); ++i) {
          if (program_.outputs[i].type.name.empty()) program_.outputs[i].type = item.type;
        }
      }
      if (parser_.take("=")) {
        LEMMA_TRY(const Token value, parser_.expect_name("the name of the value that leaves"));
        item.value = named(value);
      }
      program_.outputs.push_back(std::move(item));
    } while (parser_.take(","));
    program_.statements.push_back({StatementKind::Outputs, begin, program_.outputs.size(), place});
    return {};
  }

  // ---- equations ----
  Result<Target> target() {
    Target t;
    if (parser_.peek().word("final") && parser_.peek(1).kind == TokenKind::Name) {
      parser_.next();
      t.final_state = true;
    }
    LEMMA_TRY(const Token name, parser_.expect_name("the name that the equation defines"));
    t.name = named(name);
    if (parser_.peek().symbol("[")) LEMMA_TRY_VOID(coordinates(t.coords, t.condition));
    if (parser_.take(":")) {
      LEMMA_TRY(const Token type, parser_.expect_name("an element type such as f32 or bf16"));
      t.type = named(type);
    }
    return t;
  }

  Result<void> coordinates(std::vector<NodeId>& coords, NodeId& condition) {
    const Token open = parser_.next();
    LEMMA_TRY(Parser::Items items, parser_.list("]", open));
    coords = std::move(items.items);
    condition = items.condition;
    return {};
  }

  Result<void> equation(bool is_output, bool is_update) {
    Equation e;
    e.is_output = is_output;
    e.is_update = is_update;
    const Place place = parser_.peek().place;
    if (parser_.take("(")) {
      e.tuple = true;
      do {
        LEMMA_TRY(Target t, target());
        e.targets.push_back(std::move(t));
      } while (parser_.take(","));
      LEMMA_TRY_VOID(parser_.expect(")", "after the names that the equation defines"));
      if (parser_.peek().symbol("[")) {
        std::vector<NodeId> coords;
        NodeId condition = -1;
        LEMMA_TRY_VOID(coordinates(coords, condition));
        for (Target& t : e.targets) {
          if (!t.coords.empty()) return source_.error(t.name.place, "indices stand at `" + t.name.name + "` and after the parenthesis", "keep one of the two");
          t.coords = coords;
          t.condition = condition;
        }
      }
      if (parser_.take(":")) {
        LEMMA_TRY(const Token type, parser_.expect_name("an element type such as f32 or bf16"));
        for (Target& t : e.targets) t.type = named(type);
      }
    } else {
      LEMMA_TRY(Target t, target());
      e.targets.push_back(std::move(t));
    }
    if (parser_.peek().kind == TokenKind::Name && (parser_.peek(1).symbol("=") || parser_.peek(1).symbol("("))) {
      e.combine = named(parser_.next());
      if (parser_.peek().symbol("(")) {
        const Token open = parser_.next();
        LEMMA_TRY(Parser::Items items, parser_.list(")", open));
        e.binders = std::move(items.items);
        e.condition = items.condition;
      }
    }
    if (!parser_.take("=")) {
      std::string suggestion;
      if (parser_.peek().symbol("+=")) suggestion = "a scatter that adds is written y[k[i] < N] sum= e";
      else if (e.targets.size() == 1 && parser_.peek().kind == TokenKind::Name) {
        suggestion = syntax::nearest(e.targets[0].name.name, {"dim", "input", "output", "def", "monoid", "update"});
        if (!suggestion.empty()) suggestion = "did you mean `" + suggestion + "`?";
      }
      return parser_.found("`=` after the left side of an equation", suggestion);
    }
    LEMMA_TRY(e.value, parser_.expression());
    LEMMA_TRY_VOID(where(e.locals));
    if (parser_.take_word("onto")) {
      if (parser_.take_word("nothing")) {
        e.onto_nothing = true;
      } else {
        LEMMA_TRY(e.onto, parser_.expression());
      }
    }
    program_.equations.push_back(std::move(e));
    program_.statements.push_back({StatementKind::Equation, program_.equations.size() - 1, program_.equations.size(), place});
    return {};
  }

  // where NAME = e, NAME = e
  Result<void> where(std::vector<Local>& into) {
    if (!parser_.take_word("where")) return {};
    do {
      LEMMA_TRY(const Token name, parser_.expect_name("the name of a local value"));
      LEMMA_TRY_VOID(parser_.expect("=", "after a local name"));
      Local local;
      local.name = named(name);
      LEMMA_TRY(local.value, parser_.expression());
      into.push_back(std::move(local));
    } while (parser_.take(","));
    return {};
  }

  // ---- def ----
  Result<std::vector<Named>> names(const char* close, const std::string& what) {
    std::vector<Named> out;
    if (parser_.take(close)) return out;
    do {
      LEMMA_TRY(const Token name, parser_.expect_name(what));
      out.push_back(named(name));
    } while (parser_.take(","));
    LEMMA_TRY_VOID(parser_.expect(close, "after " + what));
    return out;
  }

  Result<void> function() {
    Function f;
    LEMMA_TRY(const Token name, parser_.expect_name("the name of a function"));
    f.name = named(name);
    if (parser_.take("[")) {
      LEMMA_TRY(f.parameters, names("]", "the name of a parameter"));
    }
    LEMMA_TRY_VOID(parser_.expect("(", "before the function's arguments"));
    if (!parser_.take(")")) {
      while (true) {
        LEMMA_TRY(const Token item, parser_.expect_name("the name of an argument"));
        f.items.push_back(named(item));
        if (!parser_.take(",")) break;
      }
      if (parser_.take(":")) {
        LEMMA_TRY(const Token domain, parser_.expect_name("the name of a domain"));
        f.domain = named(domain);
      }
      LEMMA_TRY_VOID(parser_.expect(")", "after the function's arguments"));
    }
    if (parser_.peek().symbol("(")) {
      parser_.next();
      f.folds = true;
      LEMMA_TRY(f.operands, names(")", "the name of a value"));
    } else if (parser_.peek().kind == TokenKind::Name) {
      f.folds = true;
      f.operands.push_back(named(parser_.next()));
    }
    if (!f.domain.name.empty() && !f.folds) {
      return source_.error(f.domain.place, "a domain is taken by a function with an index and a body, as in def f(j : where) x = ...");
    }
    if (parser_.take("=")) {
      LEMMA_TRY(f.result, parser_.expression());
    } else {
      LEMMA_TRY_VOID(parser_.expect("{", "or `=` before the function's body"));
      LEMMA_TRY_VOID(block(f));
    }
    program_.functions.push_back(std::move(f));
    return {};
  }

  Result<void> block(Function& f) {
    parser_.skip_separators();
    while (!parser_.peek().word("return") || parser_.peek(1).symbol("=")) {
      LEMMA_TRY(const Token name, parser_.expect_name("`name = ...` or `return ...`"));
      LEMMA_TRY_VOID(parser_.expect("=", "after a local name"));
      Local local;
      local.name = named(name);
      LEMMA_TRY(local.value, parser_.expression());
      f.locals.push_back(std::move(local));
      if (parser_.peek().kind != TokenKind::Separator) return parser_.found("the end of the line");
      parser_.skip_separators();
    }
    parser_.next();
    LEMMA_TRY(f.result, parser_.expression());
    parser_.skip_separators();
    return parser_.expect("}", "after the function's result");
  }

  // ---- monoid ----
  Result<void> monoid() {
    MonoidDefinition m;
    LEMMA_TRY(const Token name, parser_.expect_name("the name of a monoid"));
    m.name = named(name);
    if (parser_.take("[")) {
      LEMMA_TRY(m.parameters, names("]", "the name of a parameter"));
    }
    LEMMA_TRY_VOID(parser_.expect("(", "before the monoid's operands"));
    LEMMA_TRY(m.operands, names(")", "the name of an operand"));
    LEMMA_TRY_VOID(parser_.expect("{", "before the monoid's clauses"));
    parser_.skip_separators();
    while (!parser_.take("}")) {
      LEMMA_TRY(const Token clause, parser_.expect_name("state, identity, lift, combine, finish, commutative, idempotent or `}`"));
      if (clause.text == "commutative") m.commutative = true;
      else if (clause.text == "idempotent") m.idempotent = true;
      else if (clause.text == "state") { LEMMA_TRY_VOID(state(m)); }
      else if (clause.text == "identity") { LEMMA_TRY_VOID(clauses(m.identity)); }
      else if (clause.text == "lift") { LEMMA_TRY_VOID(clauses(m.lift)); }
      else if (clause.text == "combine") { LEMMA_TRY_VOID(clauses(m.combine)); }
      else if (clause.text == "finish") {
        do {
          MonoidClause finish;
          finish.component = named(clause);
          LEMMA_TRY(finish.value, parser_.expression());
          LEMMA_TRY_VOID(where(finish.locals));
          m.finish.push_back(std::move(finish));
        } while (parser_.take(","));
      } else {
        const std::string near = syntax::nearest(clause.text, {"state", "identity", "lift", "combine", "finish", "commutative", "idempotent"});
        return source_.error(clause.place, "found `" + clause.text + "`, expected state, identity, lift, combine, finish, commutative or idempotent",
                             near.empty() ? "" : "did you mean `" + near + "`?");
      }
      if (!parser_.peek().symbol("}") && parser_.peek().kind != TokenKind::Separator) return parser_.found("the end of the clause");
      parser_.skip_separators();
    }
    program_.monoids.push_back(std::move(m));
    return {};
  }

  Result<void> state(MonoidDefinition& m) {
    do {
      StateItem item;
      LEMMA_TRY(const Token name, parser_.expect_name("the name of a component"));
      item.name = named(name);
      if (parser_.take("[")) {
        do {
          LEMMA_TRY(const Token axis, parser_.expect_name("the name of an axis"));
          item.axes.push_back(named(axis));
          LEMMA_TRY_VOID(parser_.expect("<", "and the extent of the axis, as in A[i < 4]"));
          LEMMA_TRY(const NodeId extent, parser_.sum());
          item.extents.push_back(extent);
        } while (parser_.take(","));
        LEMMA_TRY_VOID(parser_.expect("]", "after the axes"));
      }
      if (parser_.take(":")) {
        LEMMA_TRY(const Token type, parser_.expect_name("f32, f64, i32, i64, u32, u64 or bool"));
        item.type = named(type);
      }
      m.state.push_back(std::move(item));
    } while (parser_.take(","));
    return {};
  }

  Result<void> clauses(std::vector<MonoidClause>& into) {
    do {
      MonoidClause clause;
      LEMMA_TRY(const Token name, parser_.expect_name("the name of a component"));
      clause.component = named(name);
      if (parser_.take("[")) {
        LEMMA_TRY(clause.axes, names("]", "the name of an axis"));
      }
      LEMMA_TRY_VOID(parser_.expect("=", "after a component"));
      LEMMA_TRY(clause.value, parser_.expression());
      LEMMA_TRY_VOID(where(clause.locals));
      into.push_back(std::move(clause));
    } while (parser_.take(","));
    return {};
  }

  const syntax::Source& source_;
  Parser parser_;
  Program program_;
};

}  // namespace

Result<Program> parse_program(const syntax::Source& source, syntax::Tree& tree) {
  LEMMA_TRY(const std::vector<Token> tokens, syntax::tokenize(source));
  return ProgramParser(source, tokens, tree).run();
}

}  // namespace lemma::language
