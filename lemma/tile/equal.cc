#include "lemma/tile/equal.h"

#include <unordered_map>

#include "lemma/tile/edit.h"
#include "lemma/tile/names.h"
#include "lemma/tile/space.h"

namespace lemma::tile {
namespace {

using scalar::Expr;

class Canonical {
 public:
  Canonical(const Program& from, const scalar::ArenaRef& arena, std::vector<monoid::MonoidRef>& monoids)
      : from_(from), arena_(arena), monoids_(monoids), buffer_(from.buffers.size(), -1),
        variable_(from.variables.size(), -1) {}

  Program run() {
    const GlobalNames names = global_names(from_);
    to_.name = names.program;
    to_.arena = arena_;
    for (size_t i = 0; i < from_.sizes.size(); ++i) {
      to_.sizes.push_back({names.sizes[i], from_.sizes[i].definition.valid() ? expression(from_.sizes[i].definition) : Expr(), from_.sizes[i].typical});
    }
    for (size_t i = 0; i < from_.buffers.size(); ++i) {
      if (is_local(from_.buffers[i].space)) continue;
      add_buffer(i);
      to_.buffers.back().name = names.buffers[i];
    }
    for (Assert a : from_.requirements) {
      a.message = message_text(a.message);
      to_.requirements.push_back(std::move(a));
    }
    for (size_t i = 0; i < from_.kernels.size(); ++i) {
      Kernel k = from_.kernels[i];
      k.name = names.kernels[i];
      k.comment.clear();
      for (GridLoop& g : k.grid) g.var = bind(g.var);
      block(k.body);
      to_.kernels.push_back(std::move(k));
    }
    for (size_t i = 0; i < from_.buffers.size(); ++i) {
      if (buffer_[i] < 0) add_buffer(i);
    }
    to_.variables.resize(size_t(next_));
    return std::move(to_);
  }

 private:
  void add_buffer(size_t i) {
    buffer_[i] = int(to_.buffers.size());
    to_.buffers.push_back(from_.buffers[i]);
    to_.buffers.back().name.clear();
  }
  int buffer(int b) {
    if (b < 0 || size_t(b) >= buffer_.size()) return b;
    if (buffer_[size_t(b)] < 0) add_buffer(size_t(b));
    return buffer_[size_t(b)];
  }
  Var bind(Var v) {
    if (v < 0 || size_t(v) >= variable_.size()) return v;
    return variable_[size_t(v)] = next_++;
  }
  int variable(int64_t v) const {
    return v < 0 || size_t(v) >= variable_.size() || variable_[size_t(v)] < 0 ? int(-1 - v) : variable_[size_t(v)];
  }
  view::Form form(const view::Form& f) const {
    return f.map_indices([this](int v) { return view::Form::index(variable(v)); });
  }
  view::Formula formula(const view::Formula& f) const {
    return f.map_indices([this](int v) { return view::Form::index(variable(v)); });
  }
  Expr expression(Expr e) const {
    return scalar::rewrite(e, *arena_, [this](Expr node, std::span<const Expr>) {
      return node.is(scalar::Op::Index) ? scalar::index(*arena_, variable(node.payload())) : Expr();
    });
  }
  monoid::MonoidRef monoid(const monoid::MonoidRef& m) {
    for (const monoid::MonoidRef& known : monoids_) {
      if (monoid::same(*known, *m)) return known;
    }
    monoids_.push_back(m);
    return m;
  }

  void block(Block& body) {
    Parts parts;
    parts.buffer = [this](int b) { return buffer(b); };
    parts.bound = [this](Var v) { return bind(v); };
    parts.form = [this](const view::Form& f) { return form(f); };
    parts.formula = [this](const view::Formula& f) { return formula(f); };
    parts.expr = [this](Expr e) { return expression(e); };
    parts.monoid = [this](const monoid::MonoidRef& m) { return monoid(m); };
    for (Stmt& s : body) {
      replace_parts(s, parts);
      if (auto* map = std::get_if<Map>(&s)) map->comment.clear();
      if (auto* reduce = std::get_if<Reduce>(&s)) reduce->comment.clear();
      if (auto* scan = std::get_if<Scan>(&s)) scan->comment.clear();
      if (auto* check = std::get_if<Assert>(&s)) check->message = message_text(check->message);
      if (auto* gemm = std::get_if<Gemm>(&s)) gemm->comment.clear();
      if (auto* shown = std::get_if<Print>(&s)) shown->text = message_text(shown->text);
      if (auto* raw = std::get_if<Extern>(&s)) {
        for (std::string& line : raw->lines) line = message_text(line);
      }
      for (Block* inner : bodies(s)) block(*inner);
    }
  }

  const Program& from_;
  const scalar::ArenaRef& arena_;
  std::vector<monoid::MonoidRef>& monoids_;
  Program to_;
  std::vector<int> buffer_;
  std::vector<Var> variable_;
  Var next_ = 0;
};

}  // namespace

Program canonical(const Program& program, const scalar::ArenaRef& arena, std::vector<monoid::MonoidRef>& monoids) {
  return Canonical(program, arena, monoids).run();
}

bool equal(const Program& a, const Program& b) {
  const auto arena = std::make_shared<scalar::Arena>();
  std::vector<monoid::MonoidRef> monoids;
  const Program x = canonical(a, arena, monoids), y = canonical(b, arena, monoids);
  return x.name == y.name && x.sizes == y.sizes && x.buffers == y.buffers && x.kernels == y.kernels &&
         x.requirements == y.requirements;
}

}  // namespace lemma::tile
