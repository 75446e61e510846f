#include "lemma/lower/context.h"

#include <set>

#include "lemma/base/check.h"

namespace lemma::lower {

using scalar::Op;
using tensor::Value;
using view::Atom;
using view::AtomKind;

Context::Context(const tensor::Graph& g, const tile::Target& t) : graph(g), target(t) {
  program.name = g.name;
  for (const tensor::Size& s : g.sizes) {
    tile::SizeDecl decl{s.name, {}};
    if (s.value) decl.definition = constant(*s.value);
    program.sizes.push_back(decl);
  }
  threads_ = int(program.sizes.size());
  program.sizes.push_back({"threads", {}});
}

tile::Var Context::variable(const std::string& name) {
  program.variables.push_back(name);
  return int(program.variables.size()) - 1;
}

Form Context::define_size(const std::string& name, Expr definition) {
  const std::string key = name + "#" + std::to_string(definition.index());
  if (definition.is_const()) return Form(definition.as_int());
  auto [it, added] = defined_.emplace(key, int(program.sizes.size()));
  if (added) program.sizes.push_back({name, definition});
  return Form::size(it->second);
}

int Context::add_buffer(tile::Buffer buffer) {
  int& count = buffer_names_[buffer.name];
  if (count++ > 0) buffer.name += "." + std::to_string(count);
  program.buffers.push_back(std::move(buffer));
  return int(program.buffers.size()) - 1;
}

Expr Context::expr(const Form& form) {
  scalar::Arena& a = *program.arena;
  Expr sum;
  for (const view::Term& t : form.terms()) {
    Expr product;
    if (t.coefficient != 1 || t.factors.empty()) product = scalar::i64(a, t.coefficient);
    for (const Atom& f : t.factors) {
      Expr e;
      switch (f.kind) {
        case AtomKind::Index: e = scalar::index(a, f.id); break;
        case AtomKind::Size: e = scalar::size(a, f.id); break;
        case AtomKind::Data: {
          // A read of the statement; its kind is the buffer's.
          LEMMA_CHECK(false, "a data form has no expression without its statement");
          break;
        }
        case AtomKind::Floor:
          e = scalar::binary(Op::FloorDiv, expr(f.floor->numerator), expr(f.floor->denominator));
          break;
      }
      product = product.valid() ? product * e : e;
    }
    sum = sum.valid() ? sum + product : product;
  }
  return sum.valid() ? sum : constant(0);
}

std::optional<Home> Context::global_home(Value value) const {
  const auto it = homes.find(value);
  if (it == homes.end()) return std::nullopt;
  for (const Home& h : it->second) {
    if (!h.local) return h;
  }
  return std::nullopt;
}

Home Context::home(Value value) const {
  const auto it = homes.find(value);
  LEMMA_CHECK(it != homes.end() && !it->second.empty(), "a value is read before it has a home");
  for (const Home& h : it->second) {
    if (h.local) return h;
  }
  return it->second.front();
}

std::vector<tile::Range> Variables::ranges(const std::vector<int>& loops, const std::vector<LoopPlace>& places) const {
  std::vector<tile::Range> out;
  for (int l : loops) {
    if (auto it = of_loop.find(l); it != of_loop.end()) out.push_back({it->second, places[size_t(l)].count});
  }
  return out;
}

Translator::Translator(Context& context, const tensor::Comprehension& node, std::vector<Form> index_forms,
                       std::map<int, Form> local_forms)
    : context_(context), node_(node), index_forms_(std::move(index_forms)), local_forms_(std::move(local_forms)) {}

int Translator::read(int which) {
  if (auto it = read_of_.find(which); it != read_of_.end()) return it->second;
  const tensor::Read& r = node_.reads[size_t(which)];
  tile::Access access;
  const Home home = context_.home(r.source);
  access.buffer = home.buffer;
  if (home.local) {
    for (int loop : home.axes) access.coords.push_back(local_forms_.at(loop));
  } else {
    for (const Form& c : r.coords) access.coords.push_back(translate(c));
  }
  access.guard = translate(r.guard);
  reads.push_back(std::move(access));
  read_of_[which] = int(reads.size()) - 1;
  return int(reads.size()) - 1;
}

Form Translator::translate(const Form& form) {
  return form.substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Index) return index_forms_[size_t(a.id)];
    if (a.kind == AtomKind::Data) return Form::data(read(a.id));
    return std::nullopt;
  });
}

view::Formula Translator::translate(const view::Formula& formula) {
  return formula.substitute([&](const Atom& a) -> std::optional<Form> {
    if (a.kind == AtomKind::Index) return index_forms_[size_t(a.id)];
    if (a.kind == AtomKind::Data) return Form::data(read(a.id));
    return std::nullopt;
  });
}

Expr Translator::translate(Expr root) {
  scalar::Arena& into = *context_.program.arena;
  for (Expr e : scalar::reachable({&root, 1})) {
    if (memo_.count(e.index())) continue;
    Expr out;
    switch (e.op()) {
      case Op::Arg: {
        const int r = read(int(e.payload()));
        const scalar::Kind kind = scalar::kind_of(context_.program.buffers[size_t(reads[size_t(r)].buffer)].type);
        out = scalar::cast(scalar::arg(into, kind, r), e.kind());
        break;
      }
      case Op::Present: out = scalar::present(into, read(int(e.payload()))); break;
      case Op::Index: out = context_.expr(index_forms_[size_t(e.payload())]); break;
      default: {
        std::vector<Expr> args;
        for (Expr a : e.args()) args.push_back(memo_.at(a.index()));
        out = into.make(e.op(), e.kind(), args, e.payload());
      }
    }
    memo_.emplace(e.index(), out);
  }
  return memo_.at(root.index());
}

view::Formula all_of(const std::vector<Edge>& edges) {
  view::Formula out;
  for (const Edge& e : edges) out = out && e.formula;
  return out;
}

void keep_inside(const Context& context, std::vector<tile::Access>& reads, const view::Formula& domain,
                 const std::vector<Edge>& own, const std::vector<Edge>& outside) {
  // A read may name earlier ones, so a walk from the last finds all that the domain looks at, one from the first all
  // variables.
  std::vector<bool> looked_at(reads.size(), false);
  for (int r : domain.ids(AtomKind::Data)) looked_at[size_t(r)] = true;
  const auto atoms = [](const tile::Access& a, AtomKind kind) {
    std::vector<int> out = a.guard.ids(kind);
    for (const Form& c : a.coords) {
      for (int i : c.ids(kind)) out.push_back(i);
    }
    return out;
  };
  for (size_t r = reads.size(); r-- > 0;) {
    if (!looked_at[r]) continue;
    for (int q : atoms(reads[r], AtomKind::Data)) looked_at[size_t(q)] = true;
  }
  std::vector<std::set<int>> used(reads.size());
  for (size_t r = 0; r < reads.size(); ++r) {
    for (int v : atoms(reads[r], AtomKind::Index)) used[r].insert(v);
    for (int q : atoms(reads[r], AtomKind::Data)) used[r].insert(used[size_t(q)].begin(), used[size_t(q)].end());
    const tile::Space space = context.program.buffers[size_t(reads[r].buffer)].space;
    if (space == tile::Space::Shared || space == tile::Space::Fragment || space == tile::Space::Local) continue;
    for (const Edge& e : outside) {
      if (used[r].count(e.var)) reads[r].guard = reads[r].guard && e.formula;
    }
    for (const Edge& e : own) {
      if (looked_at[r] && used[r].count(e.var)) reads[r].guard = reads[r].guard && e.formula;
    }
  }
}

tile::Access local_access(const Home& home, const std::map<int, Form>& local_forms) {
  tile::Access out;
  out.buffer = home.buffer;
  for (int loop : home.axes) out.coords.push_back(local_forms.at(loop));
  return out;
}

}  // namespace lemma::lower
