// Walks the nodes from the last to the first; nothing recurses over the graph.
#include "lemma/tensor/demand.h"

#include <algorithm>

#include "lemma/base/check.h"

namespace lemma::tensor {
namespace {

using view::AtomKind;
using view::Form;
using view::Formula;

constexpr int64_t kLargestWindow = 64;      // of enumerated index combinations a slab
constexpr int64_t kLargestEnumeration = int64_t(1) << 22;
constexpr size_t kLargestFilter = 4;        // cases

int64_t extent_of(const Comprehension& node, int id) {
  return node.indices[size_t(id)].extent.constant().value_or(0);
}

void sort_unique(std::vector<int64_t>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

// Keeps only some of the fixed indices.
void project(Demand& d, const std::vector<int>& keep) {
  if (keep == d.fixed) return;
  std::vector<int64_t> strides(d.fixed.size(), 0), extents;
  int64_t stride = 1;
  for (size_t k = keep.size(); k-- > 0;) {
    const size_t at = size_t(std::find(d.fixed.begin(), d.fixed.end(), keep[k]) - d.fixed.begin());
    strides[at] = stride;
    stride *= d.extents[at];
  }
  for (size_t at = 0; at < d.fixed.size(); ++at) {
    if (std::find(keep.begin(), keep.end(), d.fixed[at]) != keep.end()) extents.push_back(d.extents[at]);
  }
  for (int64_t& key : d.keys) {
    int64_t rest = key, out = 0;
    for (size_t at = d.fixed.size(); at-- > 0;) {
      out += strides[at] * (rest % d.extents[at]);
      rest /= d.extents[at];
    }
    key = out;
  }
  sort_unique(d.keys);
  d.fixed = keep;
  d.extents = std::move(extents);
}

// The union of what was needed and what a further reader needs.
void merge(Demand& into, Demand more) {
  if (!into.needed) {
    Formula filter = std::move(into.filter);
    into = std::move(more);
    into.needed = true;
    into.filter = filter || into.filter;
    return;
  }
  std::vector<int> both;
  std::set_intersection(into.fixed.begin(), into.fixed.end(), more.fixed.begin(), more.fixed.end(),
                        std::back_inserter(both));
  project(into, both);
  project(more, both);
  std::vector<int64_t> keys;
  std::set_union(into.keys.begin(), into.keys.end(), more.keys.begin(), more.keys.end(), std::back_inserter(keys));
  into.keys = std::move(keys);
  if (into.filter.is_always()) return;
  into.filter = into.filter || more.filter;
  if (into.filter.cases().size() > kLargestFilter) into.filter = Formula::always();
}

Demand whole() {
  Demand d;
  d.keys = {0};
  d.filter = Formula::always();
  return d;
}

// The index of `node` along dimension `d` of an output, if it is a point.
std::optional<int> point_of(const Comprehension& node, const Output& output, size_t d) {
  const int id = output.dims[d];
  return node.indices[size_t(id)].role == Role::Point ? std::optional(id) : std::nullopt;
}

// Where `reader` reads, as a condition on the source's indices. Conditions that say nothing about them alone are
// dropped, which only widens it.
Formula filter_through(const Read& read, const Formula& condition, const Output& output) {
  std::vector<std::pair<int, int>> renamed;  // reader's index, source's index
  for (size_t d = 0; d < read.coords.size(); ++d) {
    if (auto i = read.coords[d].as_index()) renamed.push_back({*i, output.dims[d]});
  }
  const auto target = [&](int id) {
    for (const auto& [from, to] : renamed) {
      if (from == id) return to;
    }
    return -1;
  };
  Formula out = Formula::never();
  for (const view::Conjunction& c : condition.cases()) {
    Formula all;
    for (const view::Constraint& k : c) {
      bool kept = !k.form.uses(AtomKind::Data);
      for (int id : k.form.ids(AtomKind::Index)) kept = kept && target(id) >= 0;
      if (!kept) continue;
      const Form form = k.form.map_indices([&](int id) { return Form::index(target(id)); });
      all = all && (k.relation == view::Relation::Zero ? Formula::zero(form) : Formula::non_negative(form));
    }
    out = out || all;
    if (out.is_always()) break;
  }
  return out;
}

class Reader {
 public:
  Reader(const Graph& graph, const Comprehension& node, const Demand& demand)
      : graph_(graph), node_(node), demand_(demand) {
    for (int id : node.domain.ids(AtomKind::Data)) domain_reads_.push_back(id);
    for (size_t k = 0; k < domain_reads_.size(); ++k) {  // and what their coordinates and guards use
      const Read& r = node.reads[size_t(domain_reads_[k])];
      std::vector<int> more = r.guard.ids(AtomKind::Data);
      for (const Form& f : r.coords) {
        const std::vector<int> ids = f.ids(AtomKind::Data);
        more.insert(more.end(), ids.begin(), ids.end());
      }
      for (int id : more) {
        if (std::find(domain_reads_.begin(), domain_reads_.end(), id) == domain_reads_.end()) domain_reads_.push_back(id);
      }
    }
  }

  Demand of(size_t r) const {
    const Read& read = node_.reads[r];
    const auto* source = std::get_if<Comprehension>(&graph_.node(read.source.node));
    if (!source) return whole();
    const Output& output = source->outputs[size_t(read.source.output)];
    Demand out = slabs(read, *source, output);
    const bool anywhere = !node_.initial.empty() ||
                          std::find(domain_reads_.begin(), domain_reads_.end(), int(r)) != domain_reads_.end();
    out.filter = anywhere ? Formula::always()
                          : filter_through(read, reading_condition() && read.guard, output);
    if (out.filter.cases().size() > kLargestFilter) out.filter = Formula::always();
    return out;
  }

 private:
  Formula reading_condition() const {
    if (node_.scan) return node_.domain;
    return node_.domain && demand_.filter;
  }

  bool is_fixed(int id) const { return std::binary_search(demand_.fixed.begin(), demand_.fixed.end(), id); }

  Demand slabs(const Read& read, const Comprehension& source, const Output& output) const {
    std::vector<int> window;             // indices that are enumerated
    int64_t combinations = 1;
    struct Fixed {
      int id;
      int64_t extent;
      const Form* form;
    };
    std::vector<Fixed> fixed;
    for (size_t d = 0; d < read.coords.size(); ++d) {
      const Form& f = read.coords[d];
      const auto id = point_of(source, output, d);
      if (!id || f.uses(AtomKind::Data)) continue;
      std::vector<int> extra;
      bool any_fixed = f.is_constant();
      int64_t grown = combinations;
      for (int i : f.ids(AtomKind::Index)) {
        if (is_fixed(i)) {
          any_fixed = true;
        } else if (std::find(window.begin(), window.end(), i) == window.end()) {
          extra.push_back(i);
          grown = std::min(kLargestEnumeration, grown * std::max<int64_t>(1, extent_of(node_, i)));
        }
      }
      const bool small = extra.empty() ||
                         (grown <= kLargestWindow && grown * int64_t(demand_.keys.size()) <= kLargestEnumeration);
      if (!any_fixed || !small) continue;
      window.insert(window.end(), extra.begin(), extra.end());
      combinations = grown;
      fixed.push_back({*id, extent_of(source, *id), &f});
    }
    std::sort(fixed.begin(), fixed.end(), [](const Fixed& a, const Fixed& b) { return a.id < b.id; });
    Demand out;
    for (const Fixed& f : fixed) {
      out.fixed.push_back(f.id);
      out.extents.push_back(f.extent);
    }
    if (fixed.empty()) {
      out.keys = {0};
      return out;
    }
    std::vector<int64_t> at(node_.indices.size(), 0);
    for (int64_t key : demand_.keys) {
      int64_t rest = key;
      for (size_t k = demand_.fixed.size(); k-- > 0;) {
        at[size_t(demand_.fixed[k])] = rest % demand_.extents[k];
        rest /= demand_.extents[k];
      }
      for (int64_t c = 0; c < combinations; ++c) {
        int64_t left = c;
        for (int id : window) {
          const int64_t extent = std::max<int64_t>(1, extent_of(node_, id));
          at[size_t(id)] = left % extent;
          left /= extent;
        }
        int64_t position = 0;
        bool inside = true;
        for (const Fixed& f : fixed) {
          const int64_t coord = f.form->evaluate([&](const view::Atom& a) { return at[size_t(a.id)]; });
          inside = inside && coord >= 0 && coord < f.extent;
          position = position * f.extent + coord;
        }
        if (inside) out.keys.push_back(position);
      }
    }
    sort_unique(out.keys);
    return out;
  }

  const Graph& graph_;
  const Comprehension& node_;
  const Demand& demand_;
  std::vector<int> domain_reads_;
};

Demand requested(const Graph& graph, const Request& request) {
  Demand out = whole();
  const auto* node = std::get_if<Comprehension>(&graph.node(request.value.node));
  if (request.whole || !node) return out;
  const Output& output = node->outputs[size_t(request.value.output)];
  std::vector<std::pair<int, size_t>> fixed;  // index, dimension
  for (size_t d = 0; d < output.dims.size(); ++d) {
    if (auto id = point_of(*node, output, d)) fixed.push_back({*id, d});
  }
  if (fixed.empty()) return out;
  std::sort(fixed.begin(), fixed.end());
  for (const auto& [id, d] : fixed) {
    out.fixed.push_back(id);
    out.extents.push_back(extent_of(*node, id));
  }
  out.keys.clear();
  for (const std::vector<int64_t>& p : request.points) {
    int64_t key = 0;
    for (size_t k = 0; k < fixed.size(); ++k) key = key * out.extents[k] + p[fixed[k].second];
    out.keys.push_back(key);
  }
  sort_unique(out.keys);
  return out;
}

}  // namespace

void restrict_to_shared(const Comprehension& node, Demand& demand) {
  std::vector<int> keep;
  for (int id : demand.fixed) {
    bool shared = true;
    for (const Output& o : node.outputs) shared = shared && std::find(o.dims.begin(), o.dims.end(), id) != o.dims.end();
    for (const auto& c : node.components) shared = shared && std::find(c.begin(), c.end(), id) != c.end();
    if (shared) keep.push_back(id);
  }
  project(demand, keep);
}

std::vector<Demand> find_demands(const Graph& graph, const std::vector<Request>& requests) {
  std::vector<Demand> out(graph.nodes.size());
  for (const Request& r : requests) merge(out[size_t(r.value.node.index)], requested(graph, r));
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Demand& demand = out[n];
    if (!demand.needed) continue;
    if (const auto* c = std::get_if<Comprehension>(&graph.nodes[n])) {
      restrict_to_shared(*c, demand);
      const Reader reader(graph, *c, demand);
      for (size_t r = 0; r < c->reads.size(); ++r) {
        merge(out[size_t(c->reads[r].source.node.index)], reader.of(r));
      }
    } else {
      for (Value v : sources(graph.nodes[n])) merge(out[size_t(v.node.index)], whole());
    }
  }
  return out;
}

}  // namespace lemma::tensor
