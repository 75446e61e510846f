// Reads: coordinates, bounds, guards, and the domains of what is read.
#include <algorithm>

#include "lemma/base/hash.h"
#include "lemma/language/build.h"

namespace lemma::language {

using scalar::Expr;
using scalar::Kind;
using view::Atom;
using view::AtomKind;
using view::Conjunction;
using view::Constraint;
using view::Form;
using view::Formula;

namespace {

size_t hash_of(const Form& f) {
  size_t h = f.terms().size();
  for (const view::Term& t : f.terms()) {
    h = base::mix(h, size_t(t.coefficient));
    for (const Atom& a : t.factors) h = base::mix(h, size_t(a.kind) * 1000003 + size_t(a.id));
  }
  return h;
}

size_t hash_of(const tensor::Read& r) {
  size_t h = base::mix(size_t(r.source.node.index), size_t(r.source.output));
  for (const Form& f : r.coords) h = base::mix(h, hash_of(f));
  return base::mix(h, r.guard.cases().size());
}

}  // namespace

int NodeBuilder::add_read(tensor::Read read, bool stated) {
  const size_t h = hash_of(read);
  const auto [begin, end] = read_index_.equal_range(h);
  for (auto it = begin; it != end; ++it) {
    if (reads_[size_t(it->second)] == read) {
      if (stated) stated_[size_t(it->second)] = true;
      return it->second;
    }
  }
  const int id = int(reads_.size());
  reads_.push_back(std::move(read));
  stated_.push_back(stated);
  read_index_.emplace(h, id);
  return id;
}

Term NodeBuilder::plain_read(tensor::Value value, const std::vector<int>& vars) {
  tensor::Read read;
  read.source = value;
  for (int v : vars) read.coords.push_back(Form::index(local_.at(v)));
  const int id = add_read(std::move(read), false);
  Term t;
  const Kind kind = tensor::kind(c_.graph, value);
  t.expr = scalar::arg(*arena_, kind, id);
  t.read = id;
  if (!scalar::is_float(kind)) t.form = Form::data(id);
  if (kind == Kind::Bool) t.truth = Formula::non_negative(Form::data(id) - Form(1));
  return t;
}

// A value that no form or formula can hold is computed by a map of its own and read.
Result<Term> NodeBuilder::materialise(CoreId core) {
  if (arena_ != c_.graph.arena) return c_.fail(c_.cores[size_t(core)], "a monoid's coordinates are made of its axes, sizes and integers with + - * // %");
  LEMMA_TRY(const Nodes::Made made, nodes_.map(core));
  Term t = plain_read(made.value, made.vars);
  std::vector<Form> coords;
  for (int v : made.vars) coords.push_back(Form::index(local_.at(v)));
  LEMMA_TRY(t.where, source_domain(made.value, coords, Formula(), core));
  if (!t.where.is_always()) {
    tensor::Read guarded = reads_[size_t(t.read)];
    guarded.guard = t.where;
    t.read = add_read(std::move(guarded), false);
    const Kind kind = t.expr.kind();
    t.expr = scalar::arg(*arena_, kind, t.read);
    if (!scalar::is_float(kind)) t.form = Form::data(t.read);
    if (kind == Kind::Bool) t.truth = Formula::non_negative(Form::data(t.read) - Form(1));
  }
  return t;
}

Result<Formula> NodeBuilder::condition(CoreId core, Mode mode) {
  const Core node = c_.cores[size_t(core)];
  // Domain conditions stay formulas; only the comparisons that a formula cannot hold become bool maps.
  if (node.kind == CoreKind::Logic) {
    Formula total = node.op == scalar::Op::And ? Formula::always() : Formula::never();
    bool fits = true;
    for (CoreId arg : node.args) {
      LEMMA_TRY(const Formula one, condition(arg, mode));
      const MaybeFormula next = node.op == scalar::Op::And ? both(total, one) : either(total, one);
      if (!next) {
        fits = false;
        break;
      }
      total = *next;
      if (node.op == scalar::Op::And) mode = under(mode, one);
    }
    if (fits) return total;
  } else {
    LEMMA_TRY(const Term t, term(core, mode));
    if (t.expr.kind() != Kind::Bool) {
      return c_.fail(node, "a condition is a bool, found " + (t.weak ? std::string("a number") : std::string(scalar::name(t.expr.kind()))), "write a comparison, such as x != 0");
    }
    if (t.truth) return together(*t.truth, t.where, core);
  }
  LEMMA_TRY(const Term t, materialise(core));
  return together(*t.truth, t.where, core);
}

Result<Form> NodeBuilder::coordinate(CoreId core, Mode mode, Formula& where) {
  LEMMA_TRY(Term t, term(core, mode));
  const Kind kind = t.expr.kind();
  if (!scalar::is_integer(kind)) {
    const Core& node = c_.cores[size_t(core)];
    return c_.fail(node, "a coordinate is an integer, found " + (kind == Kind::Bool ? std::string("a bool") : t.weak ? std::string("a float") : std::string(scalar::name(kind))), "cast it, as in i32(x)");
  }
  if (t.large && !t.form) {
    return c_.fail(c_.cores[size_t(core)], "this coordinate holds an integer beyond 2^40, which no array reaches",
                   "a key that is meant to wrap is computed from typed integers: i64(...)");
  }
  if (!t.form) {
    LEMMA_TRY(t, materialise(core));
  }
  LEMMA_TRY(where, together(where, t.where, core));
  return *t.form;
}

// The domain of what is read, seen from here. Where it depends on data, the reader reads that data too; `inside` says
// where the coordinates are certain to lie within the producer's indices.
Result<Formula> NodeBuilder::source_domain(tensor::Value source, const std::vector<Form>& coords, const Formula& inside, CoreId core) {
  const auto* node = std::get_if<tensor::Comprehension>(&c_.graph.node(source.node));
  if (!node || node->monoid || node->domain.is_always()) return Formula();
  const tensor::Comprehension& producer = *node;
  std::vector<int> read_here(producer.reads.size(), -1);
  const std::vector<int>& dims = producer.outputs[size_t(source.output)].dims;
  const auto too_large = [&]() {
    return c_.fail(c_.cores[size_t(core)], "the domain of `" + tensor::name(c_.graph, source) + "` is too large to carry over to this read",
                   "give `" + tensor::name(c_.graph, source) + "` a value everywhere with `else`");
  };
  const Form::Substitution here = [&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Index) {
      const auto d = std::find(dims.begin(), dims.end(), a.id) - dims.begin();
      return coords[size_t(d)];
    }
    if (a.kind == AtomKind::Data) return Form::data(read_here[size_t(a.id)]);
    return std::nullopt;
  };
  // The reads that the domain needs, and those they need, in order.
  std::vector<bool> needed(producer.reads.size(), false);
  for (int r : producer.domain.ids(AtomKind::Data)) needed[size_t(r)] = true;
  for (size_t r = producer.reads.size(); r-- > 0;) {
    if (!needed[r]) continue;
    for (int q : producer.reads[r].guard.ids(AtomKind::Data)) needed[size_t(q)] = true;
    for (const Form& f : producer.reads[r].coords) {
      for (int q : f.ids(AtomKind::Data)) needed[size_t(q)] = true;
    }
  }
  for (size_t r = 0; r < producer.reads.size(); ++r) {
    if (!needed[r]) continue;
    tensor::Read moved;
    moved.source = producer.reads[r].source;
    for (const Form& f : producer.reads[r].coords) {
      const MaybeForm g = substitute(f, here);
      if (!g) return too_large();
      moved.coords.push_back(*g);
    }
    const MaybeFormula guard = substitute(producer.reads[r].guard, here);
    const MaybeFormula all = guard ? both(*guard, inside) : std::nullopt;
    if (!all) return too_large();
    moved.guard = *all;
    read_here[r] = add_read(std::move(moved), false);
  }
  const MaybeFormula out = substitute(producer.domain, here);
  if (!out) return too_large();
  return *out;
}

Result<Term> NodeBuilder::read(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  if (arena_ != c_.graph.arena) return c_.fail(core, "a monoid reads no tensors, only its operands and states");
  const bool guarded = mode.guarded || core.maybe;
  tensor::Read r;
  r.source = core.source;
  Formula keys;
  for (CoreId arg : core.args) {
    LEMMA_TRY(Form f, coordinate(arg, mode, keys));
    r.coords.push_back(std::move(f));
  }
  Formula stated;
  if (core.guard >= 0) {
    LEMMA_TRY(stated, condition(core.guard, mode));
    LEMMA_TRY(stated, together(stated, keys, id));
  }
  const bool is_stated = core.guard >= 0;

  const std::vector<Form> extents = tensor::extents(c_.graph, core.source);
  const Box b = box();
  const Formula& branch = branches_[size_t(mode.branch)];
  Formula inside;            // constraints that are not proved
  bool uses_branch = false;
  for (size_t d = 0; d < extents.size(); ++d) {
    const Form& f = r.coords[d];
    if (const auto i = f.as_index(); i && b.extent(*i) == extents[d]) continue;
    const MaybeForm room = subtract(extents[d], f);
    const MaybeForm upper = room ? subtract(*room, Form(1)) : std::nullopt;
    if (!upper) return c_.fail(core, "this coordinate is too large");
    const bool gathered = f.uses(AtomKind::Data);
    for (const Form* bound : {&f, &*upper}) {
      MaybeFormula given = both(assumed_, is_stated ? stated : Formula());
      if (!given) given = assumed_;
      if (always_non_negative(*bound, *given, b)) continue;
      const bool in_branch = !branch.is_always() && always_non_negative(*bound, branch, b);
      if (in_branch) {
        uses_branch = true;
        continue;
      }
      if (guarded || (gathered && !is_stated)) {
        LEMMA_TRY(inside, together(inside, Formula::non_negative(*bound), id));
        continue;
      }
      if (given->is_always() && branch.is_always() && !gathered && sometimes_negative(*bound, b)) {
        const std::string source = syntax::quote(tensor::name(c_.graph, core.source));
        base::Diagnostic e = c_.fail(c_.cores[size_t(core.args[d])],
                                     "this coordinate of `" + source + "` " + (bound == &f ? "falls below 0" : "passes the extent " + c_.print(extents[d])),
                                     "guard the read: " + source + "[...] else 0 gives a value there, " + source + "[...]? leaves it out");
        return e;
      }
      uses_branch = uses_branch || !branch.is_always();
    }
  }
  LEMMA_TRY(const Formula present, together(keys, inside, id));
  LEMMA_TRY(const Formula domain, source_domain(core.source, r.coords, present, id));
  LEMMA_TRY(Formula where, together(present, domain, id));
  if (is_stated) where = stated;
  r.guard = where;
  if (uses_branch && !is_stated) {
    LEMMA_TRY(r.guard, together(where, branch, id));
  }
  const int read_id = add_read(std::move(r), is_stated);
  Term t;
  const Kind kind = tensor::kind(c_.graph, core.source);
  t.expr = scalar::arg(*arena_, kind, read_id);
  t.read = read_id;
  t.where = where;
  if (!scalar::is_float(kind)) t.form = Form::data(read_id);
  if (kind == Kind::Bool) t.truth = Formula::non_negative(Form::data(read_id) - Form(1));
  return t;
}

Result<Term> NodeBuilder::fold_value(CoreId id) {
  const int fold = c_.cores[size_t(id)].fold;
  if (arena_ != c_.graph.arena) {
    return c_.fail(c_.cores[size_t(id)], "a monoid folds only as the whole of a combine, as in sum(l) y.A[i, l] * x.A[l, k]");
  }
  const Fold& f = c_.folds[size_t(fold)];
  if (f.shape.results.size() != 1 || !f.shape.results[0].empty()) {
    const bool axes = f.shape.results.size() == 1;
    return c_.fail(c_.cores[size_t(id)], "`" + f.monoid.name + "` gives " + (axes ? "a result with axes of its own" : std::to_string(f.shape.results.size()) + " results") + ", one plain value is expected here",
                   "define its results in an equation of their own: (a, b)[i] = " + f.monoid.name + " ...");
  }
  LEMMA_TRY(const Nodes::Made made, nodes_.fold(fold));
  return plain_read(made.value, made.vars);
}

Result<Term> NodeBuilder::state(CoreId id, Mode mode) {
  const Core core = c_.cores[size_t(id)];
  monoid::StateRead r;
  r.right = core.right;
  r.component = core.which;
  Formula where;
  for (CoreId arg : core.args) {
    LEMMA_TRY(Form f, coordinate(arg, mode, where));
    r.coords.push_back(std::move(f));
  }
  if (r.coords.size() != (*components)[size_t(core.which)].axes.size()) {
    return c_.fail(core, "`" + (*components)[size_t(core.which)].name + "` has " + std::to_string((*components)[size_t(core.which)].axes.size()) + " axes, it is read here with " + std::to_string(r.coords.size()) + " indices");
  }
  size_t at = std::find(states.begin(), states.end(), r) - states.begin();
  if (at == states.size()) states.push_back(std::move(r));
  Term t;
  t.expr = scalar::arg(*arena_, (*components)[size_t(core.which)].kind, int(at));
  return t;
}

std::vector<tensor::Read> NodeBuilder::finish(const Formula& domain) {
  std::vector<bool> needed(reads_.size(), false);
  for (int r : domain.ids(AtomKind::Data)) needed[size_t(r)] = true;
  for (const tensor::Read& r : reads_) {
    for (int q : r.guard.ids(AtomKind::Data)) needed[size_t(q)] = true;
  }
  for (size_t r = reads_.size(); r-- > 0;) {
    if (!needed[r]) continue;
    for (const Form& f : reads_[r].coords) {
      for (int q : f.ids(AtomKind::Data)) needed[size_t(q)] = true;
    }
  }
  std::vector<tensor::Read> out = reads_;
  for (size_t r = 0; r < out.size(); ++r) {
    if (!needed[r] && !stated_[r] && implies(domain, out[r].guard)) out[r].guard = Formula();
  }
  return out;
}

}  // namespace lemma::language
