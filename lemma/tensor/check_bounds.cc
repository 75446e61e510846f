// The semantic half of validity: reads are possible wherever they happen. Intervals decide most; then the solver, which
// knows the domain and the guard; then, for bound sizes and few points, every point is tried. What is left is refused
// with the read named, since an oracle or a kernel must never find out by itself.
#include <algorithm>

#include "lemma/tensor/validate.h"
#include "lemma/view/solve.h"

namespace lemma::tensor {
namespace {

using base::Result;
using view::Answer;
using view::AtomKind;
using view::Form;
using view::Formula;
using view::Range;

constexpr double kTriedPoints = 1 << 18;

// The part of a condition that hangs on no data: weaker, and known before any read.
Formula without_data(const Formula& f) {
  if (!f.uses(AtomKind::Data)) return f;
  Formula out = Formula::never();
  for (const view::Conjunction& c : f.cases()) {
    Formula all;
    for (const view::Constraint& k : c) {
      if (k.form.uses(AtomKind::Data)) continue;
      all = all && (k.relation == view::Relation::Zero ? Formula::zero(k.form) : Formula::non_negative(k.form));
    }
    out = out || all;
  }
  return out;
}

class CheckReads {
 public:
  CheckReads(const Graph& graph, const std::string& name, const base::Span& span,
             const std::vector<IndexInfo>& indices, const Formula& domain, const std::vector<Read>& reads)
      : graph_(graph), name_(name), span_(span), indices_(indices), domain_(domain), reads_(reads) {
    for (int r : domain.ids(AtomKind::Data)) for_domain_.push_back(r);
    close(for_domain_);
  }

  // Reads that an initial state makes happen before the first step, whatever the domain.
  void set_initial(const std::vector<scalar::Expr>& initial) {
    for (scalar::Expr e : scalar::reachable(initial)) {
      if (e.is(scalar::Op::Arg)) for_initial_.push_back(int(e.payload()));
    }
    close(for_initial_);
  }

  Result<void> run() {
    for (const IndexInfo& i : indices_) {
      if (i.role != Role::Scan && i.role != Role::Reduce && range(i.extent).high == 0) return {};  // no points
    }
    const bool steps = std::none_of(indices_.begin(), indices_.end(),
                                    [&](const IndexInfo& i) { return range(i.extent).high == 0; });
    for (size_t r = 0; r < reads_.size(); ++r) {
      if (steps) {
        const Formula domain = holds(for_domain_, int(r)) ? without_data(domain_) : domain_;
        LEMMA_TRY_VOID(read(reads_[r], domain && reads_[r].guard));
      }
      if (holds(for_initial_, int(r))) {
        Read first = reads_[r];
        const auto at_start = [&](const view::Atom& a) -> std::optional<Form> {
          if (a.kind != AtomKind::Index || indices_[size_t(a.id)].role != Role::Scan) return std::nullopt;
          return Form(0);
        };
        for (Form& f : first.coords) f = f.substitute(at_start);
        first.guard = first.guard.substitute(at_start);
        LEMMA_TRY_VOID(read(first, first.guard));
      }
    }
    return {};
  }

 private:
  static bool holds(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

  // Adds the reads that coordinates and guards of those at hand use.
  void close(std::vector<int>& ids) const {
    for (size_t k = 0; k < ids.size(); ++k) {
      const Read& read = reads_[size_t(ids[k])];
      std::vector<int> more = read.guard.ids(AtomKind::Data);
      for (const Form& f : read.coords) {
        for (int d : f.ids(AtomKind::Data)) more.push_back(d);
      }
      for (int d : more) {
        if (!holds(ids, d)) ids.push_back(d);
      }
    }
  }

  Range range(const Form& f) const {
    return view::range(f, [&](const view::Atom& a) { return atom(a); });
  }

  Range atom(const view::Atom& a) const {
    if (a.kind == AtomKind::Size) {
      const Size& s = graph_.sizes[size_t(a.id)];
      if (s.value) return {*s.value, *s.value};
      return {s.low, s.high};
    }
    if (a.kind == AtomKind::Index) {
      Range extent = range(indices_[size_t(a.id)].extent);
      if (extent.high) extent.high = std::max<int64_t>(0, *extent.high - 1);
      return {0, extent.high};
    }
    return data(reads_[size_t(a.id)].source);
  }

  Range data(Value source) const {
    if (const auto* input = std::get_if<Input>(&graph_.node(source.node))) {
      Range out;
      if (input->low) out.low = range(*input->low).low;
      if (input->high) out.high = range(*input->high).high;
      if (out.high) out.high = *out.high - 1;
      if (out.low || out.high) return out;
    }
    switch (type(graph_, source)) {
      case scalar::DType::Bool: return {0, 1};
      case scalar::DType::U4: return {0, 15};
      case scalar::DType::I4: return {-8, 7};
      case scalar::DType::U8: return {0, 255};
      case scalar::DType::I8: return {-128, 127};
      case scalar::DType::U16: return {0, 65535};
      case scalar::DType::I16: return {-32768, 32767};
      case scalar::DType::U32: return {0, int64_t(0xFFFFFFFF)};
      case scalar::DType::I32: return {-int64_t(0x80000000), int64_t(0x7FFFFFFF)};
      default: return {};
    }
  }

  Answer implied(const Formula& given, const Formula& claim) const {
    if (claim.is_always()) return Answer::Yes;
    Formula all = given;
    for (size_t i = 0; i < indices_.size(); ++i) {  // symbolic extents bound their indices
      if (!indices_[i].extent.is_constant()) all = all && Formula::less(Form::index(int(i)), indices_[i].extent);
    }
    return view::implies(all, claim, [&](const view::Atom& a) { return atom(a); },
                         [&](int s) { return graph_.sizes[size_t(s)].divisor; });
  }

  Result<void> read(const Read& read, const Formula& given) const {
    const std::vector<Form> box = extents(graph_, read.source);
    for (size_t d = 0; d < read.coords.size(); ++d) {
      const Form& f = read.coords[d];
      const Range low = range(f), gap = range(box[d] - f);
      const bool plain = low.low && *low.low >= 0 && gap.low && *gap.low >= 1;
      if (plain || spans(f, box[d])) continue;
      LEMMA_TRY_VOID(prove(read, given, Formula::within(f, box[d]), "may leave " + source_name(read) + " in dimension " + std::to_string(d)));
    }
    if (const auto there = source_domain(read)) {
      if (there->is_always() || given == *there) return {};
      return prove(read, given, *there, "may fall off the domain of " + source_name(read));
    }
    return base::unsupported(name_ + " reads " + source_name(read) + ", whose domain hangs on data that " + name_ + " does not read",
                             span_, "give " + source_name(read) + " a value everywhere with else");
  }

  // An index over exactly the source's extent.
  bool spans(const Form& f, const Form& extent) const {
    const auto i = f.as_index();
    return i && indices_[size_t(*i)].extent == extent;
  }

  const std::string& source_name(const Read& read) const { return lemma::tensor::name(graph_, read.source); }

  // The source's domain at the read's coordinates. Data of the producer becomes data of an equal read here; nothing if
  // there is none.
  std::optional<Formula> source_domain(const Read& read) const {
    const auto* source = std::get_if<Comprehension>(&graph_.node(read.source.node));
    if (!source || source->monoid || source->domain.is_always()) return Formula::always();
    const std::vector<int>& dims = source->outputs[size_t(read.source.output)].dims;
    const auto through = [&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind != AtomKind::Index) return std::nullopt;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] == a.id) return read.coords[d];
      }
      return std::nullopt;
    };
    std::vector<int> here(source->reads.size(), -1);
    for (int r : source->domain.ids(AtomKind::Data)) {
      const Read& wanted = source->reads[size_t(r)];
      for (const Form& f : wanted.coords) {
        if (f.uses(AtomKind::Data)) return std::nullopt;
      }
      for (size_t mine = 0; mine < reads_.size() && here[size_t(r)] < 0; ++mine) {
        bool equal = reads_[mine].source == wanted.source;
        for (size_t d = 0; equal && d < wanted.coords.size(); ++d) {
          equal = wanted.coords[d].substitute(through) == reads_[mine].coords[d];
        }
        if (equal) here[size_t(r)] = int(mine);
      }
      if (here[size_t(r)] < 0) return std::nullopt;
    }
    return source->domain.substitute([&](const view::Atom& a) -> std::optional<Form> {
      if (a.kind == AtomKind::Data) return Form::data(here[size_t(a.id)]);
      return through(a);
    });
  }

  Result<void> prove(const Read& read, const Formula& given, const Formula& claim, const std::string& otherwise) const {
    const Answer answer = implied(given, claim);
    if (answer == Answer::Yes) return {};
    std::vector<int64_t> at;
    const Answer tried = try_points(given, claim, at);
    if (tried == Answer::Yes) return {};
    std::string where;
    if (tried == Answer::No) {
      for (size_t i = 0; i < indices_.size(); ++i) {
        where += (i == 0 ? ", at " : ", ") + indices_[i].name + " = " + std::to_string(at[i]);
      }
    }
    const std::string unproved = answer == Answer::Unknown && tried == Answer::Unknown
                                     ? "cannot prove that the read is possible: it " : "a read ";
    return base::invalid(name_ + ": " + unproved + otherwise + where, span_,
                         "guard the read of " + source_name(read) + " with else, or narrow the domain of " + name_);
  }

  // Every point, where extents are bound and the points are few.
  Answer try_points(const Formula& given, const Formula& claim, std::vector<int64_t>& at) const {
    double points = 1;
    std::vector<int64_t> extents;
    for (const IndexInfo& i : indices_) {
      const Range r = range(i.extent);
      if (!r.low || r.low != r.high) return Answer::Unknown;
      extents.push_back(*r.low);
      points *= double(*r.low);
    }
    if (points > kTriedPoints || given.uses(AtomKind::Data) || claim.uses(AtomKind::Data)) return Answer::Unknown;
    at.assign(extents.size(), 0);
    const auto lookup = [&](const view::Atom& a) {
      return a.kind == AtomKind::Index ? at[size_t(a.id)] : graph_.sizes[size_t(a.id)].value.value_or(0);
    };
    for (const Formula* f : {&given, &claim}) {
      for (int s : f->ids(AtomKind::Size)) {
        if (!graph_.sizes[size_t(s)].value) return Answer::Unknown;
      }
    }
    for (int64_t p = 0; p < int64_t(points); ++p) {
      int64_t rest = p;
      for (size_t i = extents.size(); i-- > 0;) {
        at[i] = rest % extents[i];
        rest /= extents[i];
      }
      if (given.evaluate(lookup) && !claim.evaluate(lookup)) return Answer::No;
    }
    return Answer::Yes;
  }

  const Graph& graph_;
  const std::string& name_;
  const base::Span& span_;
  const std::vector<IndexInfo>& indices_;
  const Formula& domain_;
  const std::vector<Read>& reads_;
  std::vector<int> for_domain_, for_initial_;
};

}  // namespace

Result<void> check_bounds(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (const auto* c = std::get_if<Comprehension>(&node)) {
      const std::string& name = c->name.empty() ? c->outputs[0].name : c->name;
      CheckReads check(graph, name, c->span, c->indices, c->domain, c->reads);
      check.set_initial(c->initial);
      LEMMA_TRY_VOID(check.run());
    } else if (const auto* s = std::get_if<Scatter>(&node)) {
      LEMMA_TRY_VOID(CheckReads(graph, s->name, s->span, s->indices, s->domain, s->reads).run());
    }
  }
  return {};
}

}  // namespace lemma::tensor
