// The semantic half of validity: reads are possible wherever they happen. Intervals decide most; then the solver, which
// knows the domain and the guard; then, for bound sizes and few points, every point is tried. What is left is refused
// with the read named, since an oracle or a kernel must never find out by itself.
#include <algorithm>

#include "lemma/tensor/read_space.h"
#include "lemma/tensor/validate.h"

namespace lemma::tensor {
namespace {

using base::Result;
using Access = ReadSpace::Access;
using view::Answer;
using view::AtomKind;
using view::Form;
using view::Formula;
using view::Range;

constexpr double kTriedPoints = 1 << 18;

class CheckReads {
 public:
  CheckReads(const Graph& graph, const Node& node)
      : graph_(graph), space_(graph, node), name_(space_.name()), span_(space_.span()), indices_(space_.indices()),
        reads_(space_.reads()) {}

  Result<void> run() {
    for (const Access& a : space_.accesses()) {
      const bool none = std::any_of(a.over.begin(), a.over.end(), [&](int i) { return range(indices_[size_t(i)].extent).high == 0; });
      if (!none) LEMMA_TRY_VOID(read(a.read, a.given));
    }
    return {};
  }

 private:
  Range range(const Form& f) const { return space_.range(f); }

  Result<void> read(const Read& read, const Formula& given) const {
    const std::vector<Form> box = extents(graph_, read.source);
    for (size_t d = 0; d < read.coords.size(); ++d) {
      const Form& f = read.coords[d];
      const Range low = range(f), gap = range(box[d] - f);
      const bool plain = low.low && *low.low >= 0 && gap.low && *gap.low >= 1;
      if (plain || space_.spans(f, box[d])) continue;
      LEMMA_TRY_VOID(prove(read, given, Formula::within(f, box[d]), "may leave " + source_name(read) + " in dimension " + std::to_string(d)));
    }
    if (const auto there = source_domain(read)) {
      if (there->is_always() || given == *there) return {};
      return prove(read, given, *there, "may fall off the domain of " + source_name(read));
    }
    return base::unsupported(name_ + " reads " + source_name(read) + ", whose domain hangs on data that " + name_ + " does not read",
                             span_, "give " + source_name(read) + " a value everywhere with else");
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
    const Answer answer = space_.implied(given, claim);
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
  const ReadSpace space_;
  const std::string& name_;
  const base::Span& span_;
  const std::vector<IndexInfo>& indices_;
  const std::vector<Read>& reads_;
};

}  // namespace

Result<void> check_bounds(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (!std::holds_alternative<Input>(node)) LEMMA_TRY_VOID(CheckReads(graph, node).run());
  }
  return {};
}

}  // namespace lemma::tensor
