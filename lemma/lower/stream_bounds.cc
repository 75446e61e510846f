#include "lemma/lower/stream_bounds.h"

#include <algorithm>

#include "lemma/lower/groups.h"
#include "lemma/schedule/contraction.h"

namespace lemma::lower {
namespace {

using tensor::Comprehension;
using view::Atom;
using view::AtomKind;

constexpr int kRowVar = 1 << 20;     // stand-ins while the domain is taken apart
constexpr int kStreamVar = kRowVar + 1;

// The domain's constraints over stand-ins and block-level variables; nothing for one that varies otherwise.
class Reader {
 public:
  Reader(Context& context, const schedule::Member& member, int stream, int row, const std::vector<LoopPlace>& places,
         tile::Block& block)
      : context_(context), member_(member), node_(std::get<Comprehension>(context.graph.node(member.node))),
        stream_(stream), row_(row), places_(places), block_(block) {}

  std::optional<Form> translate(const Form& form) {
    bool uniform = true;
    const Form out = form.substitute([&](const Atom& a) -> std::optional<Form> {
      if (a.kind == AtomKind::Index) {
        const int loop = member_.loops[size_t(a.id)];
        if (loop == row_) return Form::index(kRowVar);
        if (loop == stream_) return Form::index(kStreamVar);
        if (places_[size_t(loop)].axis) uniform = false;
        return places_[size_t(loop)].base;
      }
      if (a.kind == AtomKind::Data) {
        if (auto v = value_of(a.id)) return *v;
        uniform = false;
      }
      return std::nullopt;
    });
    return uniform ? std::optional(out) : std::nullopt;
  }

 private:
  // The read's value as a let, if it is one value for the whole block.
  std::optional<Form> value_of(int read) {
    if (auto it = lets_.find(read); it != lets_.end()) return it->second;
    const tensor::Read& r = node_.reads[size_t(read)];
    if (!r.guard.is_always() || !context_.global_home(r.source)) return std::nullopt;
    std::vector<Form> forms(node_.indices.size());
    for (size_t i = 0; i < forms.size(); ++i) forms[i] = places_[size_t(member_.loops[i])].base;
    for (const Form& c : r.coords) {
      if (c.uses(AtomKind::Data)) return std::nullopt;
      for (int i : c.ids(AtomKind::Index)) {
        const int loop = member_.loops[size_t(i)];
        if (loop == row_ || loop == stream_ || places_[size_t(loop)].axis) return std::nullopt;
      }
    }
    Translator t(context_, node_, forms, {});
    const scalar::Kind kind = tensor::kind(context_.graph, r.source);
    const Expr value = scalar::cast(t.translate(scalar::arg(*context_.graph.arena, kind, read)), scalar::Kind::I64);
    const tile::Var v = context_.variable(tensor::name(context_.graph, r.source));
    block_.push_back(tile::Let{v, t.reads, value});
    lets_.emplace(read, Form::index(v));
    return Form::index(v);
  }

  Context& context_;
  const schedule::Member& member_;
  const Comprehension& node_;
  int stream_, row_;
  const std::vector<LoopPlace>& places_;
  tile::Block& block_;
  std::map<int, Form> lets_;
};

// What a row reads: at most one bound below and one above, each moving by at most one from row to row. With both, they keep
// a distance that is not negative; so the next row begins no later than behind this one's end, and all rows together read
// one interval.
struct Band {
  bool other = false;
  int lower = 0, upper = 0;
  int64_t slope = 0;         // of upper - lower
  Form width;
  void add(int64_t stream, int64_t row, const Form& rest) {
    (stream > 0 ? lower : upper) += 1;
    other = other || std::abs(stream) != 1 || std::abs(row) > 1;
    slope += row;
    width = width + rest;
  }
  bool contiguous() const {
    if (other || lower > 1 || upper > 1) return false;
    if (lower == 0 || upper == 0) return true;
    const auto n = width.constant();
    return slope == 0 && n && *n >= 0;
  }
};

}  // namespace

StreamBounds stream_bounds(Context& context, const schedule::Group& group,
                           const std::vector<const schedule::Member*>& reducing, int stream, int row,
                           const std::vector<LoopPlace>& places, tile::Block& block) {
  StreamBounds out;
  const Expr extent = context.expr(group.loops[size_t(stream)].extent), nothing = context.constant(0);
  const LoopPlace& rows = places[size_t(row)];
  const Form first = rows.base, last = rows.base + rows.count - Form(1);
  Expr begin, end;
  view::Formula shared;
  for (size_t r = 0; r < reducing.size(); ++r) {
    const Comprehension& node = std::get<Comprehension>(context.graph.node(reducing[r]->node));
    Reader reader(context, *reducing[r], stream, row, places, block);
    // Members with unlike domains are not told apart: the hull of all, and nothing is exact.
    if (r > 0 && !(node.domain == shared)) {
      out.exact = out.contiguous = false;
      out.known_ = false;
    }
    shared = node.domain;
    if (node.domain.cases().size() != 1) out.exact = out.contiguous = false;
    for (const view::Conjunction& conjunction : node.domain.cases()) {
      Expr low = nothing, high = extent;
      std::vector<StreamBounds::Piece> pieces;
      bool at_first = true, at_last = true;  // one row attains every bound
      Band band;
      for (const view::Constraint& constraint : conjunction) {
        const auto form = reader.translate(constraint.form);
        const auto by_stream = form ? form->split(kStreamVar) : std::nullopt;
        const auto by_row = by_stream ? by_stream->rest.split(kRowVar) : std::nullopt;
        const auto cj = by_stream ? by_stream->coefficient.constant() : std::nullopt;
        const auto cr = by_row ? by_row->coefficient.constant() : std::nullopt;
        if (!cj || !cr || constraint.relation == view::Relation::Zero) {
          out.exact = false;
          out.known_ = false;
          band.other = true;
          continue;
        }
        band.add(*cj, *cr, by_row->rest);
        auto rest_at = [&](const Form& at) { return by_row->rest + Form(*cr) * at; };
        pieces.push_back({rest_at(*cr > 0 ? first : last), *cj});
        const Expr loosest = context.expr(rest_at(*cr > 0 ? last : first));
        if (*cr > 0) at_first = false;
        if (*cr < 0) at_last = false;
        if (*cj == -1) {
          high = size_min(context, high, loosest + context.constant(1));
          if (*cr > 0) out.upper_follows_row = true;
        } else if (*cj == 1) {
          low = size_max(context, low, -loosest);
          out.exact = false;  // the first tile begins before the bound
        } else {
          out.exact = false;  // rows may be absent, or the stream is read in strides
        }
      }
      if (!at_first && !at_last) out.exact = false;
      out.contiguous = out.contiguous && band.contiguous();
      out.cases_.push_back(std::move(pieces));
      begin = begin.valid() ? size_min(context, begin, low) : low;
      end = end.valid() ? size_max(context, end, high) : high;
    }
  }
  out.begin = let(context, block, group.loops[size_t(stream)].name + ".begin", begin.valid() ? begin : nothing);
  out.end = let(context, block, group.loops[size_t(stream)].name + ".end",
                end.valid() ? size_max(context, end, context.expr(out.begin)) : nothing);
  return out;
}

void StreamBounds::place_tile(Context&, const Form& begin_of_tile, const Form& count) {
  inside.reset();
  if (!known_) return;
  view::Formula any = view::Formula::never();
  for (const std::vector<Piece>& pieces : cases_) {
    view::Formula all;
    for (const Piece& p : pieces) {
      const Form at = p.stream > 0 ? begin_of_tile : begin_of_tile + count - Form(1);
      all = all && view::Formula::non_negative(p.rest + Form(p.stream) * at);
    }
    any = any || all;
  }
  inside = any;
}

}  // namespace lemma::lower
