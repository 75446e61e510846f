// Statements to the graph, in order. One equation at a time: bind its left side, expand its right side, find extents,
// build nodes.
#include <algorithm>
#include <memory>
#include <set>

#include "lemma/language/build.h"
#include "lemma/language/language.h"
#include "lemma/language/point_counts.h"
#include "lemma/tensor/print.h"
#include "lemma/tensor/validate.h"
#include "lemma/view/solve.h"

namespace lemma::language {
namespace {

using scalar::DType;
using syntax::NodeKind;
using view::Form;
using view::Formula;

class Elaborator {
 public:
  Elaborator(const Unit& program, const Unit* prelude) : c_(program, prelude), nodes_(c_) {}

  Result<tensor::Graph> run(const std::string& name) {
    c_.graph.name = name;
    if (c_.prelude) LEMMA_TRY_VOID(declare(*c_.prelude));
    LEMMA_TRY_VOID(declare(c_.program));
    note_later();
    const Program& p = c_.program.program;
    for (const Statement& s : p.statements) {
      for (size_t i = s.begin; i < s.end; ++i) {
        switch (s.kind) {
          case StatementKind::Dims: LEMMA_TRY_VOID(dim(p.dims[i])); break;
          case StatementKind::Inputs: LEMMA_TRY_VOID(input(p.inputs[i])); break;
          case StatementKind::Outputs: LEMMA_TRY_VOID(output(p.outputs[i])); break;
          case StatementKind::Equation: LEMMA_TRY_VOID(equation(p.equations[i])); break;
          case StatementKind::Function:
          case StatementKind::Monoid: break;
        }
      }
      c_.clear_equation();
      nodes_.clear_equation();
    }
    // What the steps above do not say is said by the graph's own rules.
    LEMMA_TRY_VOID(tensor::validate(c_.graph));
    LEMMA_TRY_VOID(check_point_counts(c_.graph));
    return std::move(c_.graph);
  }

 private:
  base::Diagnostic fail(Place place, std::string message, std::string suggestion = {}) const {
    return c_.fail_at(0, place, std::move(message), std::move(suggestion));
  }

  // ---- declarations ----

  Result<void> declare(const Unit& unit) {
    std::unordered_map<std::string, Place> here;
    const auto once = [&](const Named& name) -> Result<void> {
      const auto [it, added] = here.emplace(name.name, name.place);
      if (added) return {};
      base::Diagnostic d = unit.source.error(name.place, "`" + name.name + "` is defined twice");
      d.notes.push_back({unit.source.span(it->second), "it was defined here first"});
      return d;
    };
    for (const Function& f : unit.program.functions) {
      LEMMA_TRY_VOID(once(f.name));
      LEMMA_TRY_VOID(distinct(unit, f));
      c_.functions[f.name.name] = {&unit, &f};
    }
    for (const MonoidDefinition& m : unit.program.monoids) {
      LEMMA_TRY_VOID(once(m.name));
      if (is_library_monoid(m.name.name)) return unit.source.error(m.name.place, "`" + m.name.name + "` is a monoid of the library", "choose another name");
      c_.monoids[m.name.name] = {&unit, &m};
      // A program's monoid hides a function of the prelude.
      const auto it = c_.functions.find(m.name.name);
      if (it != c_.functions.end() && it->second.unit != &unit) c_.functions.erase(it);
    }
    if (unit.prelude) {
      for (const Statement& s : unit.program.statements) {
        if (s.kind != StatementKind::Function && s.kind != StatementKind::Monoid) {
          return unit.source.error(s.place, "a prelude holds def and monoid only");
        }
      }
    }
    return {};
  }

  // The names of a function's arguments and locals differ.
  static Result<void> distinct(const Unit& unit, const Function& f) {
    std::vector<Named> names = f.parameters;
    names.insert(names.end(), f.items.begin(), f.items.end());
    if (!f.domain.name.empty()) names.push_back(f.domain);
    names.insert(names.end(), f.operands.begin(), f.operands.end());
    for (const Local& local : f.locals) names.push_back(local.name);
    std::sort(names.begin(), names.end(), [](const Named& a, const Named& b) {
      return a.name != b.name ? a.name < b.name : std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    for (size_t i = 1; i < names.size(); ++i) {
      if (names[i].name == names[i - 1].name) {
        return unit.source.error(names[i].place, "`" + names[i].name + "` stands for two things in the function `" + f.name.name + "`", "rename one of them");
      }
    }
    return {};
  }

  void note_later() {
    const Program& p = c_.program.program;
    for (const Dim& d : p.dims) c_.later.emplace(d.name.name, d.name.place);
    for (const InputItem& i : p.inputs) c_.later.emplace(i.name.name, i.name.place);
    for (const Equation& e : p.equations) {
      for (const Target& t : e.targets) c_.later.emplace(t.name.name, t.name.place);
    }
  }

  Result<void> define(const Named& name, Global global) {
    global.place = name.place;
    const auto [it, added] = c_.globals.emplace(name.name, global);
    if (added) return {};
    base::Diagnostic d = fail(name.place, "`" + name.name + "` is defined twice", "rename one of them: a name has one value");
    d.notes.push_back({c_.program.source.span(it->second.place), "it was defined here first"});
    return d;
  }

  Result<DType> type_of(const Named& type) {
    if (const auto t = scalar::parse_dtype(type.name)) return *t;
    static const std::vector<std::string> names = {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "i4", "u64", "u32", "u16", "u8", "u4", "bool"};
    const std::string near = syntax::nearest(type.name, names);
    return fail(type.place, "there is no element type `" + type.name + "`", near.empty() ? "the types are f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 i4 u64 u32 u16 u8 u4 bool" : "did you mean `" + near + "`?");
  }

  // An integer that stands in a declaration.
  Result<int64_t> integer(NodeId ast, const std::string& what) {
    LEMMA_TRY(const Form f, Expander(c_).size(0, ast, 0));
    const auto k = f.constant();
    if (!k) return c_.fail(0, ast, what + " is an integer, found something that depends on a size");
    if (*k > largest_literal || *k < -largest_literal) return c_.fail(0, ast, what + " stays within 2^40, found " + std::to_string(*k));
    return *k;
  }

  Result<void> dim(const Dim& d) {
    if (d.value >= 0) {
      LEMMA_TRY(const Form f, Expander(c_).size(0, d.value, 0));
      if (const auto k = f.constant(); k && *k < 0) return c_.fail(0, d.value, "the size `" + d.name.name + "` is negative: " + std::to_string(*k), "sizes are 0 or more");
      if (const auto k = f.constant(); k && *k > largest_literal) return c_.fail(0, d.value, "the size `" + d.name.name + "` is above 2^40");
      if (const auto k = f.constant()) {
        tensor::Size size;
        size.name = d.name.name;
        size.value = *k;
        size.span = c_.program.source.span(d.name.place);
        c_.graph.sizes.push_back(std::move(size));
      }
      if (d.like >= 0) return c_.fail(0, d.like, "`" + d.name.name + "` has a value, a typical value says nothing");
      return define(d.name, {Global::Size, f, {}, {}});
    }
    tensor::Size size;
    size.name = d.name.name;
    size.span = c_.program.source.span(d.name.place);
    if (d.low >= 0) {
      LEMMA_TRY(size.low, integer(d.low, "the least value of a size"));
      if (size.low < 0) return c_.fail(0, d.low, "sizes are 0 or more, found " + std::to_string(size.low));
    }
    if (d.high >= 0) {
      LEMMA_TRY(const int64_t high, integer(d.high, "the largest value of a size"));
      if (high < size.low) return c_.fail(0, d.high, "the range " + std::to_string(size.low) + ".." + std::to_string(high) + " is empty", "a range says the least and the largest value");
      size.high = high;
    }
    if (d.divisor >= 0) {
      LEMMA_TRY(size.divisor, integer(d.divisor, "a divisor"));
      if (size.divisor < 1) return c_.fail(0, d.divisor, "a divisor is 1 or more, found " + std::to_string(size.divisor));
    }
    if (d.like >= 0) {
      LEMMA_TRY(const int64_t like, integer(d.like, "a typical value"));
      if (like < size.low || (size.high && like > *size.high) || like % size.divisor != 0) {
        return c_.fail(0, d.like, "the typical value " + std::to_string(like) + " of `" + d.name.name + "` is outside its range or not a multiple of its divisor");
      }
      size.typical = like;
    }
    LEMMA_TRY_VOID(define(d.name, {Global::Size, Form::size(int(c_.graph.sizes.size())), {}, {}}));
    c_.graph.sizes.push_back(std::move(size));
    return {};
  }

  Result<void> input(const InputItem& item) {
    tensor::Input in;
    in.name = item.name.name;
    in.span = c_.program.source.span(item.name.place);
    for (NodeId extent : item.extents) {
      LEMMA_TRY(const Form f, Expander(c_).size(0, extent, 0));
      if (const auto k = f.constant(); k && *k < 0) return c_.fail(0, extent, "the extent " + std::to_string(*k) + " is negative", "extents are 0 or more");
      in.extents.push_back(f);
    }
    if (!item.type.name.empty()) {
      LEMMA_TRY(in.type, type_of(item.type));
    }
    if (item.low >= 0) {
      if (!scalar::is_integer(scalar::kind_of(in.type))) return c_.fail(0, item.low, "a range is stated for integers, `" + in.name + "` is " + std::string(scalar::name(in.type)), "give it an integer type, such as : i32");
      LEMMA_TRY(in.low, Expander(c_).size(0, item.low, 0));
      LEMMA_TRY(in.high, Expander(c_).size(0, item.high, 0));
    }
    if (item.sorted && in.extents.empty()) return fail(item.name.place, "`" + in.name + "` has no dimension to be sorted along");
    in.sorted = item.sorted;
    in.strided = item.strided;
    const tensor::Tensor t = c_.graph.add(std::move(in));
    return define(item.name, {Global::Tensor, {}, {t, 0}, {}});
  }

  // ---- outputs ----

  Result<void> output(const OutputItem& written) {
    OutputItem item = written;
    if (!item.value.name.empty()) item.name = item.value;
    const auto it = c_.globals.find(item.name.name);
    if (it == c_.globals.end() || it->second.kind != Global::Tensor) {
      std::vector<std::string> names;
      for (const auto& [name, global] : c_.globals) {
        if (global.kind == Global::Tensor) names.push_back(name);
      }
      std::sort(names.begin(), names.end());
      const std::string near = syntax::nearest(item.name.name, names);
      if (it != c_.globals.end()) return fail(item.name.place, "`" + item.name.name + "` is a size, an output is a tensor");
      return fail(item.name.place, "`" + item.name.name + "` is not defined", near.empty() ? "define it above its output" : "did you mean `" + syntax::quote(near) + "`?");
    }
    std::optional<DType> type;
    if (!item.type.name.empty()) {
      LEMMA_TRY(type, type_of(item.type));
    }
    return add_output(written.name, it->second.value, type, std::nullopt);
  }

  Result<void> add_output(const Named& name, tensor::Value value, std::optional<DType> type, std::optional<tensor::Tensor> updates) {
    for (const tensor::GraphOutput& o : c_.graph.outputs) {
      if (o.name == name.name) return fail(name.place, "the output `" + name.name + "` is stated twice");
    }
    LEMMA_TRY_VOID(total(name, value));
    const DType has = tensor::type(c_.graph, value);
    if (type && *type != has) {
      LEMMA_TRY(value, stored_as(name, value, *type));
    }
    c_.graph.outputs.push_back({name.name, value, type.value_or(has), updates});
    return {};
  }

  // The value in another storage type: where nothing else reads it, the node stores it so; else a copy does.
  Result<tensor::Value> stored_as(const Named& name, tensor::Value value, DType type) {
    const scalar::Kind from = tensor::kind(c_.graph, value), to = scalar::kind_of(type);
    if (from != to && !(scalar::is_float(to) && from != scalar::Kind::Bool)) {
      return fail(name.place, "`" + name.name + "` is " + std::string(scalar::name(tensor::type(c_.graph, value))) + ", it cannot leave as " + std::string(scalar::name(type)), "cast it in an equation of its own");
    }
    auto* node = std::get_if<tensor::Comprehension>(&c_.graph.node(value.node));
    const bool max = node && node->monoid && tensor::library_name(*node->monoid) == "max";
    const bool min = node && node->monoid && tensor::library_name(*node->monoid) == "min";
    const bool limit = node && !node->scan && needs_limit(max, min, type);
    if (node && from == to && !limit && !read_.count(value) && !typed_.count(value)) {
      node->outputs[size_t(value.output)].type = type;
      return value;
    }
    tensor::Comprehension copy;
    copy.name = nodes_.fresh(name.name + ".stored");
    copy.span = c_.program.source.span(name.place);
    tensor::Read r;
    r.source = value;
    tensor::Output out;
    out.name = copy.name;
    out.type = type;
    const std::vector<Form> extents = tensor::extents(c_.graph, value);
    for (size_t d = 0; d < extents.size(); ++d) {
      copy.indices.push_back({"i" + std::to_string(d), extents[d], tensor::Role::Point});
      r.coords.push_back(Form::index(int(d)));
      out.dims.push_back(int(d));
    }
    copy.reads.push_back(std::move(r));
    copy.body.push_back(scalar::cast(scalar::arg(*c_.graph.arena, from, 0), to));
    copy.outputs.push_back(std::move(out));
    if (limit) keep_limit(copy, max, type);
    return tensor::Value{c_.graph.add(std::move(copy)), 0};
  }

  Result<void> total(const Named& name, tensor::Value value) {
    if (const auto* scatter = std::get_if<tensor::Scatter>(&c_.graph.node(value.node))) {
      if (scatter->monoid || scatter->base) return {};
      return fail(name.place, "the output `" + name.name + "` has no value where its scatter does not write", "state what it goes onto: ... onto 0");
    }
    const auto* node = std::get_if<tensor::Comprehension>(&c_.graph.node(value.node));
    if (!node || node->monoid || node->domain.is_always()) return {};
    Box box;
    box.extent = [&](int i) { return node->indices[size_t(i)].extent; };
    box.size_low = [&](int s) { return c_.graph.sizes[size_t(s)].low; };
    box.data = [&](int r) -> std::optional<std::pair<Form, Form>> {
      const auto* in = std::get_if<tensor::Input>(&c_.graph.node(node->reads[size_t(r)].source.node));
      if (in && in->low && in->high) return std::pair(*in->low, *in->high);
      return std::nullopt;
    };
    if (always(node->domain, Formula(), box) || solved(*node)) return {};
    view::Names names;
    names.index = [&](int i) { return node->indices[size_t(i)].name; };
    names.size = [&](int s) { return c_.graph.sizes[size_t(s)].name; };
    names.data = [&](int r) { return tensor::name(c_.graph, node->reads[size_t(r)].source) + "[...]"; };
    const bool never = node->domain.is_never();
    std::string shown = view::print(node->domain, names);
    if (shown.size() > 120) shown = shown.substr(0, 117) + "...";
    return fail(name.place, "the output `" + name.name + "` must have a value everywhere, " + (never ? "it has none anywhere" : "it has one only where " + shown),
                "give it one elsewhere: (" + syntax::quote(name.name) + "[...]) else 0");
  }

  // The solver's word that the domain is the whole box of a map's indices.
  bool solved(const tensor::Comprehension& node) const {
    Formula box;
    for (size_t i = 0; i < node.indices.size(); ++i) {
      if (!node.domain.uses(view::AtomKind::Index, int(i))) continue;
      const MaybeFormula next = both(box, Formula::within(Form::index(int(i)), node.indices[i].extent));
      if (!next) return false;
      box = *next;
    }
    const auto ranges = [&](const view::Atom& a) -> view::Range {
      if (a.kind == view::AtomKind::Index) return {0, std::nullopt};
      if (a.kind == view::AtomKind::Size) return {c_.graph.sizes[size_t(a.id)].low, c_.graph.sizes[size_t(a.id)].high};
      const auto* in = std::get_if<tensor::Input>(&c_.graph.node(node.reads[size_t(a.id)].source.node));
      if (!in || !in->low || !in->high || !in->low->constant() || !in->high->constant()) return {};
      return {*in->low->constant(), *in->high->constant() - 1};
    };
    const auto divisors = [&](int s) { return c_.graph.sizes[size_t(s)].divisor; };
    return view::implies(box, node.domain, ranges, divisors) == view::Answer::Yes;
  }

  // ---- equations ----

  Result<void> equation(const Equation& e) {
    const Named& first = e.targets[0].name;
    c_.defining = &first.name;
    for (size_t i = 0; i < e.targets.size(); ++i) {
      const Named& name = e.targets[i].name;
      if (name.name == "_" && e.tuple) continue;
      if (e.is_update) continue;
      if (const auto it = c_.globals.find(name.name); it != c_.globals.end()) {
        Global again = it->second;
        return define(name, again);
      }
      for (size_t k = 0; k < i; ++k) {
        if (e.targets[k].name.name == name.name) return fail(name.place, "`" + name.name + "` is defined twice by this equation");
      }
    }
    std::vector<tensor::Value> values;
    if (e.is_update && e.targets[0].coords.empty() && c_.program.tree[e.value].kind == NodeKind::Name) {
      // update cache = o: the value is there already.
      const auto it = c_.globals.find(c_.program.tree[e.value].text);
      if (it != c_.globals.end() && it->second.kind == Global::Tensor) {
        c_.defining = nullptr;
        return update(e.targets[0], it->second.value);
      }
    }
    for (size_t i = 0; i < e.locals.size(); ++i) {
      for (size_t k = 0; k < i && e.locals.size() < 1000; ++k) {
        if (e.locals[k].name.name == e.locals[i].name.name) return fail(e.locals[i].name.place, "`" + e.locals[i].name.name + "` is defined twice by this equation");
      }
    }
    c_.add_locals(0, e.locals);
    bool scatter = !e.combine.name.empty();
    for (const Target& t : e.targets) {
      for (NodeId coord : t.coords) scatter = scatter || !index_of(coord);
    }
    LEMMA_TRY_VOID(scatter ? scatter_equation(e, values) : plain_equation(e, values));
    for (size_t i = 0; i < e.targets.size(); ++i) {
      if (!values[i].node.valid()) continue;
      note_reads(values[i].node);
    }
    c_.defining = nullptr;
    for (size_t i = 0; i < e.targets.size(); ++i) {
      const Target& t = e.targets[i];
      if (!values[i].node.valid()) continue;
      if (!t.type.name.empty()) typed_.insert(values[i]);
      if (e.is_update) {
        LEMMA_TRY_VOID(update(t, values[i]));
        continue;
      }
      LEMMA_TRY_VOID(define(t.name, {Global::Tensor, {}, values[i], {}}));
      if (e.is_output) LEMMA_TRY_VOID(add_output(t.name, values[i], std::nullopt, std::nullopt));
    }
    return {};
  }

  void note_reads(tensor::Tensor upto) {
    for (; noted_ <= upto.index; ++noted_) {
      for (tensor::Value v : tensor::sources(c_.graph.nodes[size_t(noted_)])) read_.insert(v);
    }
  }

  // update NAME[...] = e: the new value of an input, in its storage.
  Result<void> update(const Target& t, tensor::Value value) {
    const auto it = c_.globals.find(t.name.name);
    const tensor::Input* in = it == c_.globals.end() || it->second.kind != Global::Tensor ? nullptr : std::get_if<tensor::Input>(&c_.graph.node(it->second.value.node));
    if (!in) return fail(t.name.place, "`" + t.name.name + "` is not an input, only an input's storage can be updated", "write an equation for a new name, or declare the input");
    if (tensor::extents(c_.graph, value) != in->extents) {
      return fail(t.name.place, "the new value of `" + t.name.name + "` has other extents than the input");
    }
    const DType want = in->type;
    const tensor::Tensor node = it->second.value.node;
    for (const tensor::GraphOutput& o : c_.graph.outputs) {
      if (o.updates == node) return fail(t.name.place, "`" + t.name.name + "` is updated twice");
    }
    if (tensor::type(c_.graph, value) != want) {
      LEMMA_TRY(value, stored_as(t.name, value, want));
    }
    return add_output(t.name, value, std::nullopt, node);
  }

  // The name of a plain coordinate of a left side, with its stated bound.
  struct Coordinate { std::string name; NodeId ast; NodeId bound; };
  std::optional<Coordinate> index_of(NodeId id) const {
    const syntax::Node* n = &c_.program.tree[id];
    NodeId bound = -1;
    if (n->kind == NodeKind::Compare && n->operators.size() == 1 && n->operators[0] == "<") {
      bound = n->items[1];
      id = n->items[0];
      n = &c_.program.tree[id];
    }
    if (n->kind != NodeKind::Name) return std::nullopt;
    return Coordinate{n->text, id, bound};
  }

  Result<void> plain_equation(const Equation& e, std::vector<tensor::Value>& values) {
    int environment = 0;
    std::unordered_map<std::string, int> vars;
    std::vector<Wanted> wanted;
    for (size_t i = 0; i < e.targets.size(); ++i) {
      const Target& t = e.targets[i];
      Wanted w;
      w.name = e.is_update ? nodes_.fresh(t.name.name + ".new") : t.name.name;
      w.result = int(i);
      w.final_state = t.final_state;
      w.dropped = e.tuple && t.name.name == "_";
      if (!t.type.name.empty()) {
        LEMMA_TRY(w.type, type_of(t.type));
      }
      std::vector<std::string> own;
      for (NodeId coord : t.coords) {
        const Coordinate index = *index_of(coord);
        if (std::find(own.begin(), own.end(), index.name) != own.end()) {
          return c_.fail(0, index.ast, "the index `" + index.name + "` stands twice on the left side", "give the second dimension an index of its own and a condition, as in d[i, j] = select(i == j, x[i], 0)");
        }
        own.push_back(index.name);
        auto it = vars.find(index.name);
        if (it == vars.end()) {
          Expander expander(c_);
          LEMMA_TRY(const int v, expander.variable(0, index.name, index.ast, c_.symbol(0, index.name), 0, index.bound, environment));
          it = vars.emplace(index.name, v).first;
        } else if (index.bound >= 0) {
          LEMMA_TRY(const Form bound, Expander(c_).size(0, index.bound, 0));
          Var& v = c_.vars[size_t(it->second)];
          if (v.extent && *v.extent != bound) return c_.fail(0, index.ast, "the index `" + index.name + "` is bound below " + c_.print(*v.extent) + " and below " + c_.print(bound));
          v.extent = bound;
          v.stated = true;
        }
        w.vars.push_back(it->second);
      }
      wanted.push_back(std::move(w));
    }
    LEMMA_TRY(const CoreId root, Expander(c_).expand(0, e.value, environment));
    std::vector<CoreId> roots = {root};
    std::vector<CoreId> conditions;
    for (const Target& t : e.targets) {
      CoreId condition = -1;
      if (t.condition >= 0) {
        LEMMA_TRY(condition, Expander(c_).expand(0, t.condition, environment));
        roots.push_back(condition);
      }
      conditions.push_back(condition);
    }
    const Core core = c_.cores[size_t(root)];
    values.assign(e.targets.size(), tensor::Value{});
    if (core.kind == CoreKind::Fold) {
      const Fold fold = c_.folds[size_t(core.fold)];
      const bool plain = fold.shape.results.size() == 1 && fold.shape.results[0].empty();
      if (!plain || e.tuple) LEMMA_TRY_VOID(bind_axes(e, fold, wanted));
      LEMMA_TRY_VOID(find_extents(c_, roots));
      if (!plain || e.tuple || (direct(fold, wanted[0], conditions[0]) && !limited(fold, wanted[0]))) {
        for (CoreId condition : conditions) {
          if (condition >= 0) return c_.fail(c_.cores[size_t(condition)], "a fold has a value everywhere, its results take no condition", "state the condition of the terms: " + fold.monoid.name + "(j : ...) e");
        }
        LEMMA_TRY(const tensor::Tensor t, nodes_.fold_equation(core.fold, wanted));
        int output = 0;
        for (size_t i = 0; i < wanted.size(); ++i) {
          if (!wanted[i].dropped) values[i] = {t, output++};
        }
        return {};
      }
    } else {
      LEMMA_TRY_VOID(find_extents(c_, roots));
    }
    std::vector<CoreId> parts = {root};
    if (core.kind == CoreKind::Tuple) parts = core.args;
    if (parts.size() != e.targets.size()) {
      return c_.fail(core, "the right side gives " + std::to_string(parts.size()) + (parts.size() == 1 ? " value" : " values") + ", the left side names " + std::to_string(e.targets.size()),
                     e.tuple ? "" : "define them by a tuple equation: (a, b)[i] = ...");
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (wanted[i].dropped) continue;
      if (wanted[i].final_state) return c_.fail(c_.cores[size_t(parts[i])], "`final` is the state after the last step of a scan, this is no scan");
      LEMMA_TRY(values[i], single(parts[i], conditions[i], wanted[i]));
    }
    return {};
  }

  // A fold that varies with every index of the left side, and with no condition beside it, is the equation's own node.
  bool direct(const Fold& fold, const Wanted& w, CoreId condition) const {
    if (condition >= 0) return false;
    std::vector<CoreId> roots = fold.operands;
    if (fold.condition >= 0) roots.push_back(fold.condition);
    roots.insert(roots.end(), fold.initial.begin(), fold.initial.end());
    std::vector<int> free = nodes_.free_vars(roots);
    if (fold.scan) free.push_back(fold.vars[0]);
    return std::all_of(w.vars.begin(), w.vars.end(), [&](int v) { return std::find(free.begin(), free.end(), v) != free.end(); });
  }

  // What max and min of nothing give in a narrow signed type is that type's own end, not the wide one cut to its bits.
  static bool needs_limit(bool max, bool min, DType type) {
    const scalar::Kind kind = scalar::kind_of(type);
    return (max || min) && scalar::is_integer(kind) && scalar::is_signed(kind) && scalar::bits(type) < scalar::bits(scalar::dtype_of(kind));
  }

  static bool limited(const Fold& fold, const Wanted& w) {
    if (!w.type || fold.scan || fold.monoid.definition) return false;
    return needs_limit(fold.monoid.name == "max", fold.monoid.name == "min", *w.type);
  }

  void keep_limit(tensor::Comprehension& map, bool max, DType type) const {
    scalar::Expr& value = map.body[0];
    const auto end = [&](DType of) {
      const int64_t high = int64_t((uint64_t(1) << (scalar::bits(of) - 1)) - 1);
      return scalar::constant_int(*c_.graph.arena, value.kind(), max ? -high - 1 : high);
    };
    value = scalar::select(scalar::binary(scalar::Op::Eq, value, end(scalar::dtype_of(value.kind()))), end(type), value);
  }

  Result<tensor::Value> single(CoreId part, CoreId condition, Wanted w) {
    w.result = 0;
    const Core core = c_.cores[size_t(part)];
    if (core.kind == CoreKind::Fold) {
      const Fold fold = c_.folds[size_t(core.fold)];
      const bool plain = fold.shape.results.size() == 1 && fold.shape.results[0].empty();
      if (plain && limited(fold, w)) {
        LEMMA_TRY(const tensor::Tensor t, nodes_.map_equation(part, condition, w));
        keep_limit(std::get<tensor::Comprehension>(c_.graph.node(t)), fold.monoid.name == "max", *w.type);
        return tensor::Value{t, 0};
      }
      if (plain && direct(fold, w, condition)) {
        LEMMA_TRY(const tensor::Tensor t, nodes_.fold_equation(core.fold, {w}));
        return tensor::Value{t, 0};
      }
    }
    LEMMA_TRY(const tensor::Tensor t, nodes_.map_equation(part, condition, w));
    return tensor::Value{t, 0};
  }

  // Results beside each other: `final` ones follow the others; the last indices of each are the axes of its state.
  Result<void> bind_axes(const Equation& e, const Fold& fold, std::vector<Wanted>& wanted) {
    const size_t results = fold.shape.results.size();
    size_t finals = 0;
    for (const Wanted& w : wanted) finals += w.final_state ? 1 : 0;
    if (finals > 0 && !fold.scan) return c_.fail(fold.frame, fold.ast, "`final` is the state after the last step of a scan, this is no scan");
    const size_t shown = wanted.size() - finals;
    if ((shown != results && !(shown == 0 && finals == results)) || (finals != 0 && finals != results)) {
      return c_.fail(fold.frame, fold.ast, "`" + fold.monoid.name + "` gives " + std::to_string(results) + (results == 1 ? " result" : " results") + ", the left side names " + std::to_string(shown) +
                                               (finals ? " and " + std::to_string(finals) + " final ones" : ""),
                     finals ? "name all of them, `_` for those that are not kept" : "write _ for a result that is not kept");
    }
    size_t next = 0, next_final = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      Wanted& w = wanted[i];
      w.result = int(w.final_state ? next_final++ : next++);
      const std::vector<Form>& axes = fold.shape.results[size_t(w.result)];
      if (w.vars.size() < axes.size() && !w.dropped) {
        return fail(e.targets[i].name.place, "`" + w.name + "` has " + std::to_string(axes.size()) + (axes.size() == 1 ? " axis" : " axes") + " of its own, found " + std::to_string(w.vars.size()) + " indices",
                    "the last indices on the left side name them");
      }
      if (w.dropped && w.vars.size() < axes.size()) continue;
      for (size_t a = 0; a < axes.size(); ++a) {
        Var& v = c_.vars[size_t(w.vars[w.vars.size() - axes.size() + a])];
        if (v.extent && *v.extent != axes[a]) {
          return c_.fail(v.frame, v.ast, "the index `" + v.name + "` is bound below " + c_.print(*v.extent) + ", the axis has extent " + c_.print(axes[a]));
        }
        v.extent = axes[a];
        v.stated = true;
      }
    }
    return {};
  }

  // ---- scatters ----

  // The names in a coordinate that stand for no size, tensor or constant: its indices.
  void indices_in(NodeId root, std::vector<std::pair<std::string, NodeId>>& out) const {
    std::vector<NodeId> stack = {root};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      const syntax::Node& n = c_.program.tree[id];
      if (n.kind == NodeKind::Name) {
        if (c_.globals.count(n.text)) continue;
        const auto same = [&](const auto& p) { return p.first == n.text; };
        if (std::none_of(out.begin(), out.end(), same)) out.emplace_back(n.text, id);
        continue;
      }
      const size_t skip = n.kind == NodeKind::Read ? 1 : 0;
      stack.insert(stack.end(), n.items.rbegin(), n.items.rend() - std::ptrdiff_t(skip));
      if (n.condition >= 0) stack.push_back(n.condition);
    }
  }

  Result<void> scatter_equation(const Equation& e, std::vector<tensor::Value>& values) {
    const Target& t = e.targets[0];
    if (e.tuple) return fail(t.name.place, "a scatter defines one tensor", "write one equation for each");
    if (e.combine.name.empty()) {
      for (NodeId coord : t.coords) {
        if (!index_of(coord)) {
          return c_.fail(0, coord, "a left side holds the names of indices, found a computed coordinate",
                         "to write at computed places say how they meet: y[k[i] < N] sum= e, or injective= e onto 0");
        }
      }
    }
    Nodes::ScatterParts parts;
    parts.ast = e.value;
    parts.wanted.name = e.is_update ? nodes_.fresh(t.name.name + ".new") : t.name.name;
    if (!t.type.name.empty()) {
      LEMMA_TRY(parts.wanted.type, type_of(t.type));
    }
    int environment = 0;
    Expander expander(c_);
    const auto bind = [&](const std::string& name, NodeId ast, NodeId bound) -> Result<int> {
      LEMMA_TRY(const int v, expander.variable(0, name, ast, c_.symbol(0, name), 0, bound, environment));
      parts.vars.push_back(v);
      return v;
    };
    std::unordered_map<std::string, int> vars;
    for (NodeId item : e.binders) {
      const auto index = index_of(item);
      if (!index) return c_.fail(0, item, "a scatter binds indices here, found an expression", "write sum(i < N, j < M)=");
      LEMMA_TRY(const int v, bind(index->name, index->ast, index->bound));
      vars[index->name] = v;
    }
    struct Part { NodeId place; NodeId bound; int plain; };
    std::vector<Part> places;
    for (NodeId coord : t.coords) {
      Part part{coord, -1, -1};
      const syntax::Node& n = c_.program.tree[coord];
      if (n.kind == NodeKind::Compare && n.operators.size() == 1 && n.operators[0] == "<") {
        part.place = n.items[0];
        part.bound = n.items[1];
      }
      const bool plain = c_.program.tree[part.place].kind == NodeKind::Name && !c_.globals.count(c_.program.tree[part.place].text);
      std::vector<std::pair<std::string, NodeId>> names;
      indices_in(part.place, names);
      for (const auto& [name, ast] : names) {
        if (!vars.count(name)) {
          LEMMA_TRY(const int v, bind(name, ast, plain ? part.bound : -1));
          vars[name] = v;
        }
        if (plain) part.plain = vars[name];
      }
      places.push_back(part);
    }
    std::vector<CoreId> roots;
    LEMMA_TRY(parts.value, expander.expand(0, e.value, environment));
    roots.push_back(parts.value);
    const NodeId condition = e.condition >= 0 ? e.condition : t.condition;
    if (e.condition >= 0 && t.condition >= 0) return c_.fail(0, t.condition, "the condition of a scatter is stated twice");
    if (condition >= 0) {
      LEMMA_TRY(parts.condition, expander.expand(0, condition, environment));
      roots.push_back(parts.condition);
    }
    for (const Part& part : places) {
      LEMMA_TRY(const CoreId place, expander.expand(0, part.place, environment));
      parts.coords.push_back(place);
      roots.push_back(place);
    }
    LEMMA_TRY_VOID(find_extents(c_, roots));
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].bound >= 0) {
        LEMMA_TRY(Form extent, expander.size(0, places[i].bound, 0));
        if (const auto k = extent.constant(); k && *k < 0) return c_.fail(0, places[i].bound, "the extent " + std::to_string(*k) + " is negative");
        parts.extents.push_back(std::move(extent));
      } else if (places[i].plain >= 0) {
        parts.extents.push_back(*c_.vars[size_t(places[i].plain)].extent);
      } else {
        return c_.fail(0, places[i].place, "nothing says how large `" + t.name.name + "` is along this computed coordinate", "state it: k[i] < N");
      }
    }
    if (e.combine.name != "injective") {
      MonoidSpec spec;
      spec.name = e.combine.name;
      if (const auto it = c_.monoids.find(spec.name); it != c_.monoids.end()) {
        spec.definition = it->second.definition;
        spec.unit = it->second.unit;
      } else if (!is_library_monoid(spec.name)) {
        const std::string near = syntax::nearest(spec.name, {"sum", "prod", "max", "min", "any", "all", "injective"});
        return fail(e.combine.place, "a scatter combines by a monoid or is `injective`, found `" + spec.name + "`", near.empty() ? "write sum=, max=, injective= ..." : "did you mean `" + near + "=`?");
      }
      LEMMA_TRY(const MonoidShape shape, shape_of(c_, spec, 1, 0, e.value));
      if (shape.components.size() != 1 || spec.name == "count") return fail(e.combine.place, "a scatter combines by a monoid of one component, `" + spec.name + "` has more", "use sum, prod, max, min, any or all");
      parts.monoid = spec;
    }
    LEMMA_TRY_VOID(scatter_base(e, parts));
    if (!parts.monoid && !parts.base && !e.onto_nothing) {
      return fail(e.combine.place, "an injective scatter leaves the elements it does not reach without a value", "state what it goes onto: ... onto 0, or onto the tensor that it changes");
    }
    LEMMA_TRY(const tensor::Tensor made, nodes_.scatter_equation(parts));
    values = {{made, 0}};
    return {};
  }

  Result<void> scatter_base(const Equation& e, Nodes::ScatterParts& parts) {
    if (e.onto < 0) return {};
    const syntax::Node& n = c_.program.tree[e.onto];
    const auto it = c_.globals.find(n.text);
    if (n.kind == NodeKind::Name && it != c_.globals.end() && it->second.kind == Global::Tensor && !tensor::extents(c_.graph, it->second.value).empty()) {
      const tensor::Value base = it->second.value;
      if (tensor::extents(c_.graph, base) != parts.extents) return c_.fail(0, e.onto, "`" + n.text + "` has other extents than what is scattered onto it");
      if (const auto* node = std::get_if<tensor::Comprehension>(&c_.graph.node(base.node)); node && !node->monoid && !node->domain.is_always()) {
        return c_.fail(0, e.onto, "`" + n.text + "` does not exist everywhere, a scatter goes onto a total value", "give it a value with `else`");
      }
      parts.base = base;
      return {};
    }
    Expander expander(c_);
    LEMMA_TRY(const CoreId value, expander.expand(0, e.onto, 0));
    LEMMA_TRY_VOID(find_extents(c_, {value}));
    Wanted w;
    w.name = nodes_.fresh(parts.wanted.name + ".base");
    for (size_t d = 0; d < parts.extents.size(); ++d) {
      Var v;
      v.name = "i" + std::to_string(d);
      v.extent = parts.extents[d];
      w.vars.push_back(int(c_.vars.size()));
      c_.vars.push_back(std::move(v));
    }
    // The constant takes the kind of what is scattered.
    if (parts.wanted.type) {
      w.type = parts.wanted.type;
    } else {
      NodeBuilder probe(c_, nodes_, parts.vars, c_.graph.arena);
      LEMMA_TRY(const Term t, probe.term(parts.value));
      w.type = scalar::dtype_of(probe.settled(t));
    }
    LEMMA_TRY(const tensor::Tensor base, nodes_.map_equation(value, -1, w));
    parts.base = tensor::Value{base, 0};
    return {};
  }

  Context c_;
  Nodes nodes_;
  std::set<tensor::Value> read_, typed_;
  int32_t noted_ = 0;
};

}  // namespace

Result<tensor::Graph> parse(std::string_view text, const std::string& file, const Options& options) {
  Unit program(text, file, false);
  LEMMA_TRY(program.program, parse_program(program.source, program.tree));
  std::unique_ptr<Unit> prelude;
  if (!options.prelude_text.empty()) {
    prelude = std::make_unique<Unit>(options.prelude_text, options.prelude_file, true);
    LEMMA_TRY(prelude->program, parse_program(prelude->source, prelude->tree));
  }
  return Elaborator(program, prelude.get()).run(options.name);
}

}  // namespace lemma::language
