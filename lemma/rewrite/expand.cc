#include "lemma/rewrite/expand.h"

#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/base/hash.h"
#include "lemma/rewrite/body.h"
#include "lemma/rewrite/condition.h"

namespace lemma::rewrite {

using scalar::Arena;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tensor::Comprehension;
using tensor::Graph;
using tensor::Read;
using view::AtomKind;
using view::Form;
using view::Formula;

const Comprehension* map_behind(const Graph& graph, const Read& read) {
  const auto* map = std::get_if<Comprehension>(&graph.node(read.source.node));
  if (!map || !is_map(*map)) return nullptr;
  const std::vector<int>& dims = map->outputs[size_t(read.source.output)].dims;
  if (dims.size() != map->indices.size() || !small(*map)) return nullptr;
  IndexSet seen = 0;
  for (int d : dims) seen |= one(d);
  for (size_t i = 0; i < map->indices.size(); ++i) {
    if (!has(seen, int(i))) return nullptr;
  }
  return map;
}

bool stored_narrow(const Graph& graph, tensor::Value value) {
  const scalar::DType type = tensor::type(graph, value);
  return scalar::dtype_of(scalar::kind_of(type)) != type && type != scalar::DType::Bool;
}

Expr round_stored(Expr value, scalar::DType type) {
  const Kind kind = scalar::kind_of(type);
  const int lost = scalar::bits(scalar::dtype_of(kind)) - scalar::bits(type);
  if (lost <= 0 || kind == Kind::Bool) return scalar::cast(value, kind);
  if (scalar::is_float(kind)) {
    const bool done = value.is(Op::RoundTo) && scalar::DType(value.payload()) == type;
    if (done) return scalar::cast(value, kind);
    return scalar::cast(scalar::round_to(scalar::is_float(value.kind()) ? value : scalar::cast(value, kind), type), kind);
  }
  value = scalar::cast(value, kind);
  const Expr count = scalar::constant_int(value.arena(), kind, lost);
  if (value.is(Op::Shr) && value.arg(1) == count && value.arg(0).is(Op::Shl) && value.arg(0).arg(1) == count) return value;
  return scalar::binary(Op::Shr, scalar::binary(Op::Shl, value, count), count);
}

namespace {

// One body being spliced: the reader's (the first) or a map's, seen from the reader's indices.
struct Piece {
  const Comprehension* node = nullptr;
  int output = 0;
  std::vector<Form> index;    // per index of the node, over the reader's indices and new reads; empty: the same index
  Formula guard;              // under which the piece is evaluated, over the same
  std::vector<int> read;      // per read: its new position, or -1
  std::vector<int> piece;     // per read: the piece that stands for it, or -1
};

class Expansion {
 public:
  Expansion(const Graph& graph, const Comprehension& node, const Choose& choose, size_t limit)
      : graph_(graph), arena_(*graph.arena), node_(node), choose_(choose), limit_(limit) {}

  std::optional<Comprehension> run() {
    pieces_.push_back({&node_, 0, {}, {}, {}, {}});
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (!place_reads(p)) return std::nullopt;
    }
    if (pieces_.size() == 1) return node_;
    Comprehension out = node_;
    out.reads = reads_;
    out.domain = node_.domain.map_data([&](int r) { return pieces_[0].read[size_t(r)]; });
    values_.resize(pieces_.size());
    presence_.resize(pieces_.size());
    for (size_t p = pieces_.size(); p-- > 1;) {
      const Comprehension& map = *pieces_[p].node;
      const Expr body = map.body[size_t(map.outputs[size_t(pieces_[p].output)].result)];
      presence_[p] = presence_of(p);
      values_[p] = round_stored(rewritten(p, {&body, 1})[0], map.outputs[size_t(pieces_[p].output)].type);
    }
    std::vector<Expr> roots = node_.body;
    roots.insert(roots.end(), node_.initial.begin(), node_.initial.end());
    const std::vector<Expr> bodies = rewritten(0, roots);
    out.body.assign(bodies.begin(), bodies.begin() + ptrdiff_t(node_.body.size()));
    out.initial.assign(bodies.begin() + ptrdiff_t(node_.body.size()), bodies.end());
    tidy_reads(out);
    return out;
  }

 private:
  Form seen(const Piece& piece, const Form& form) const {
    return form.substitute([&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind == AtomKind::Index && !piece.index.empty()) return piece.index[size_t(a.id)];
      if (a.kind == AtomKind::Data) return Form::data(piece.read[size_t(a.id)]);
      return std::nullopt;
    });
  }

  Formula seen(const Piece& piece, const Formula& formula) const {
    if (formula.is_always()) return formula;
    return formula.substitute([&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind == AtomKind::Index && !piece.index.empty()) return piece.index[size_t(a.id)];
      if (a.kind == AtomKind::Data) return Form::data(piece.read[size_t(a.id)]);
      return std::nullopt;
    });
  }

  bool place_reads(size_t p) {
    const Comprehension& owner = *pieces_[p].node;
    const std::vector<ReadUse> use = read_use(owner);
    for (size_t r = 0; r < owner.reads.size(); ++r) {
      Piece& piece = pieces_[p];
      piece.read.push_back(-1);
      piece.piece.push_back(-1);
      if (!use[r].value && !use[r].key) continue;
      Read read{owner.reads[r].source, {}, seen(piece, owner.reads[r].guard) && piece.guard};
      for (const Form& c : owner.reads[r].coords) read.coords.push_back(seen(piece, c));
      const Comprehension* map = use[r].key ? nullptr : map_behind(graph_, owner.reads[r]);
      if (map && choose_(owner, int(r))) {
        piece.piece.back() = int(pieces_.size());
        Piece inner{map, read.source.output, std::vector<Form>(map->indices.size()), read.guard, {}, {}};
        const std::vector<int>& dims = map->outputs[size_t(read.source.output)].dims;
        for (size_t d = 0; d < dims.size(); ++d) inner.index[size_t(dims[d])] = read.coords[d];
        pieces_.push_back(std::move(inner));
      } else {
        piece.read.back() = add(std::move(read));
        if (reads_.size() > limit_) return false;
      }
    }
    return true;
  }

  int add(Read read) {
    const size_t key = base::mix(size_t(read.source.node.index), size_t(read.source.output));
    const auto [begin, end] = by_source_.equal_range(key);
    for (auto it = begin; it != end; ++it) {
      if (reads_[size_t(it->second)] == read) return it->second;
    }
    by_source_.emplace(key, int(reads_.size()));
    reads_.push_back(std::move(read));
    return int(reads_.size()) - 1;
  }

  Expr expr(const Form& form) { return view::to_expr(form, arena_, values_of(graph_, reads_)); }

  // Whether the piece's guard holds: a read of it under just that guard says so, else the guard as an expression.
  Expr presence_of(size_t p) {
    const Piece& piece = pieces_[p];
    if (piece.guard.is_always()) return scalar::boolean(arena_, true);
    for (size_t r = 0; r < piece.read.size(); ++r) {
      if (piece.read[r] >= 0 && reads_[size_t(piece.read[r])].guard == piece.guard) {
        return scalar::present(arena_, piece.read[r]);
      }
      if (piece.piece[r] >= 0 && pieces_[size_t(piece.piece[r])].guard == piece.guard) return presence_[size_t(piece.piece[r])];
    }
    return view::to_expr(piece.guard, arena_, values_of(graph_, reads_));
  }

  std::vector<Expr> rewritten(size_t p, std::span<const Expr> roots) {
    const Piece& piece = pieces_[p];
    return replace_leaves(roots, arena_, [&](Expr e) -> Expr {
      if (e.is(Op::Index)) return piece.index.empty() ? e : expr(piece.index[size_t(e.payload())]);
      if (!e.is(Op::Arg) && !e.is(Op::Present)) return {};
      const size_t r = size_t(e.payload());
      if (piece.piece[r] >= 0) {
        const size_t inner = size_t(piece.piece[r]);
        return e.is(Op::Arg) ? scalar::cast(values_[inner], e.kind()) : presence_[inner];
      }
      const int at = piece.read[r];
      return e.is(Op::Arg) ? scalar::arg(arena_, e.kind(), at) : scalar::present(arena_, at);
    });
  }

  const Graph& graph_;
  Arena& arena_;
  const Comprehension& node_;
  const Choose& choose_;
  size_t limit_;
  std::vector<Piece> pieces_;
  std::vector<Read> reads_;
  std::unordered_multimap<size_t, int> by_source_;
  std::vector<Expr> values_, presence_;
};

}  // namespace

std::optional<Comprehension> expand(const Graph& graph, const Comprehension& node, const Choose& choose, size_t limit) {
  return Expansion(graph, node, choose, limit).run();
}

}  // namespace lemma::rewrite
