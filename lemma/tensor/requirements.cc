// For each bound 0 <= f and f < extent of a read, in this order: it is proved for all sizes; or it is once the sizes that
// are divisors or extents there are positive, which becomes the requirement; or it is least at an end of every index, and
// that value must not be negative.
#include "lemma/tensor/requirements.h"

#include <algorithm>

#include "lemma/tensor/read_space.h"
#include "lemma/view/checked.h"

namespace lemma::tensor {
namespace {

using view::Answer;
using view::AtomKind;
using view::Form;
using view::Formula;
using Access = ReadSpace::Access;

void add_divisors(const Form& f, std::vector<int>& out) {
  for (const view::Term& t : f.terms()) {
    for (const view::Atom& a : t.factors) {
      if (a.kind != AtomKind::Floor) continue;
      for (int s : a.floor->denominator.ids(AtomKind::Size)) out.push_back(s);
      add_divisors(a.floor->numerator, out);
      add_divisors(a.floor->denominator, out);
    }
  }
}

// Every term has the size as a factor: where the form is positive, so is the size.
bool divides(int size, const Form& form) {
  return std::all_of(form.terms().begin(), form.terms().end(), [&](const view::Term& t) {
    return std::any_of(t.factors.begin(), t.factors.end(), [&](const view::Atom& a) { return a.kind == AtomKind::Size && a.id == size; });
  });
}

class Require {
 public:
  Require(const Graph& graph, const Node& node, Requirements& out) : graph_(graph), space_(graph, node), out_(out) {}

  void run() {
    for (const Access& a : space_.accesses()) {
      const std::vector<Form> box = extents(graph_, a.read.source);
      for (size_t d = 0; d < box.size(); ++d) {
        const Form& f = a.read.coords[d];
        if (space_.spans(f, box[d])) continue;
        bound(a, d, f);
        bound(a, d, box[d] - f - Form(1));
      }
    }
  }

 private:
  void bound(const Access& a, size_t d, const Form& form) {
    const view::Range range = space_.range(form);
    if (range.low && *range.low >= 0) return;
    const Formula claim = Formula::non_negative(form);
    if (space_.implied(a.given, claim) == Answer::Yes) return;
    std::vector<int> positive = extents(graph_, a.read.source)[d].ids(AtomKind::Size);
    add_divisors(a.read.coords[d], positive);
    std::sort(positive.begin(), positive.end());
    positive.erase(std::unique(positive.begin(), positive.end()), positive.end());
    std::erase_if(positive, [&](int s) { return graph_.sizes[size_t(s)].low > 0 || graph_.sizes[size_t(s)].value; });
    if (!positive.empty() && space_.implied(a.given, claim, positive) == Answer::Yes) return require_positive(a, claim, positive);
    require_end(a, form);
  }

  void require_positive(const Access& a, const Formula& claim, std::vector<int> sizes) {
    for (size_t k = 0; k < sizes.size();) {
      std::vector<int> fewer = sizes;
      fewer.erase(fewer.begin() + ptrdiff_t(k));
      if (space_.implied(a.given, claim, fewer) == Answer::Yes) sizes = std::move(fewer);
      else ++k;
    }
    Formula all;
    std::string wanted;
    for (int s : sizes) {
      const bool known = std::any_of(a.over.begin(), a.over.end(), [&](int i) { return divides(s, space_.indices()[size_t(i)].extent); });
      if (known) continue;
      all = all && Formula::non_negative(Form::size(s) - Form(1));
      wanted += (wanted.empty() ? "" : " and ") + graph_.sizes[size_t(s)].name + " > 0";
    }
    if (!all.is_always()) add(a, all, ", which needs " + wanted);
  }

  // The least value over the indices, where nothing else narrows them and the form is affine in each.
  void require_end(const Access& a, const Form& form) {
    Form least = form;
    bool known = a.given.is_always() && !form.uses(AtomKind::Data);
    for (int i : form.ids(AtomKind::Index)) {
      if (!known) break;
      const auto split = least.split(i);
      if (!split) {
        known = false;
        break;
      }
      const view::Range c = space_.range(split->coefficient);
      const bool up = c.low && *c.low >= 0, down = c.high && *c.high <= 0;
      const auto end = up ? std::optional<Form>(split->rest)
                          : view::checked_multiply(split->coefficient, space_.indices()[size_t(i)].extent - Form(1));
      known = (up || down) && end;
      if (known) least = up ? *end : split->rest + *end;
    }
    if (!known) {
      out_.complete = false;
      return;
    }
    add(a, Formula::non_negative(least), ", which leaves it at these sizes");
  }

  void add(const Access& a, Formula condition, const std::string& because) {
    for (int i : a.over) {
      const Form& extent = space_.indices()[size_t(i)].extent;
      if (!extent.is_constant()) condition = condition || Formula::non_negative(-extent);
    }
    const std::string message = space_.name() + " reads " + text(a.read) + because;
    const auto same = [&](const Requirement& r) { return r.condition == condition; };
    if (std::none_of(out_.list.begin(), out_.list.end(), same)) out_.list.push_back({condition, message});
  }

  std::string text(const Read& read) const {
    view::Names names;
    names.size = [&](int id) { return graph_.sizes[size_t(id)].name; };
    names.index = [&](int id) { return space_.indices()[size_t(id)].name; };
    names.data = [&](int id) { return name(graph_, space_.reads()[size_t(id)].source) + "[...]"; };
    std::string coords;
    for (const Form& f : read.coords) coords += (coords.empty() ? "" : ", ") + view::print(f, names);
    return name(graph_, read.source) + "[" + coords + "]";
  }

  const Graph& graph_;
  const ReadSpace space_;
  Requirements& out_;
};

}  // namespace

Requirements requirements(const Graph& graph) {
  std::vector<char> needed(graph.nodes.size());
  for (const GraphOutput& o : graph.outputs) needed[size_t(o.value.node.index)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!needed[n]) continue;
    for (Value v : sources(graph.nodes[n])) needed[size_t(v.node.index)] = true;
  }
  Requirements out;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (needed[n] && !std::holds_alternative<Input>(graph.nodes[n])) Require(graph, graph.nodes[n], out).run();
  }
  return out;
}

}  // namespace lemma::tensor
