// Binds inputs, finds what is needed, computes node by node and forgets what nothing further reads.
#include "lemma/tensor/eval.h"

#include <algorithm>
#include <cmath>

#include "lemma/base/match.h"
#include "lemma/scalar/convert.h"
#include "lemma/tensor/bind.h"
#include "lemma/tensor/compute.h"
#include "lemma/tensor/demand.h"
#include "lemma/tensor/validate.h"

namespace lemma::tensor {

using scalar::Scalar;

namespace {

// Inputs larger than this are read where they lie instead of being converted once.
constexpr int64_t kConverted = int64_t(1) << 24;

std::vector<int64_t> constants(const std::vector<view::Form>& forms) {
  std::vector<int64_t> out;
  for (const view::Form& f : forms) out.push_back(std::max<int64_t>(0, f.constant().value_or(0)));
  return out;
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (int64_t e : extents) out *= e;
  return out;
}

std::string list(const std::vector<int64_t>& values) {
  std::string out;
  for (int64_t v : values) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return "[" + out + "]";
}

// Calls f(row-major position, offset) for every element of a strided box.
template <class F>
void for_elements(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides, const F& f) {
  const int64_t count = product(extents);
  std::vector<int64_t> at(extents.size(), 0);
  int64_t offset = 0;
  for (int64_t p = 0; p < count; ++p) {
    f(p, offset);
    for (size_t d = extents.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < extents[d]) break;
      offset -= strides[d] * extents[d];
      at[d] = 0;
    }
  }
}

Stored stored_input(const InputBuffer& buffer, std::vector<int64_t> extents) {
  Stored out = dense(buffer.type, {});
  const int64_t count = product(extents);
  const std::vector<int64_t> strides = buffer.strides;
  if (count <= kConverted) {
    out = dense(buffer.type, std::move(extents));
    for_elements(out.extents, strides, [&](int64_t p, int64_t offset) {
      out.values[size_t(p)] = scalar::load(buffer.type, buffer.data, buffer.offset + offset);
    });
    return out;
  }
  out.extents = std::move(extents);
  out.strides = strides;
  out.key_strides.assign(out.extents.size(), 0);
  out.slab_size = count;
  out.values.clear();
  out.raw = buffer.data;
  out.raw_offset = buffer.offset;
  return out;
}

Stored stored_array(const Array& array) {
  Stored out = dense(array.type, array.extents);
  out.values = array.data;
  out.present = array.present;
  return out;
}

Array whole_array(const Stored& stored) {
  Array out;
  out.type = stored.type;
  out.extents = stored.extents;
  if (!stored.raw) {
    out.data = stored.values;
    out.present = stored.present;
    return out;
  }
  out.data.resize(size_t(product(out.extents)));
  for_elements(stored.extents, stored.strides,
               [&](int64_t p, int64_t offset) { out.data[size_t(p)] = stored.load(offset); });
  return out;
}

// Values of narrow float types that nodes read on which an output hangs.
std::vector<std::vector<char>> rounded_outputs(const Graph& graph) {
  std::vector<std::vector<char>> out(graph.nodes.size());
  std::vector<char> live(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) out[n].resize(size_t(output_count(graph.nodes[n])));
  for (const GraphOutput& o : graph.outputs) live[size_t(o.value.node.index)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    if (!live[n]) continue;
    for (Value v : sources(graph.nodes[n])) {
      live[size_t(v.node.index)] = true;
      const scalar::DType stored = type(graph, v);
      const bool narrow = scalar::is_float(stored) && scalar::bits(stored) < 32;
      if (narrow && !std::holds_alternative<Input>(graph.node(v.node))) out[size_t(v.node.index)][size_t(v.output)] = true;
    }
  }
  return out;
}

void round_values(Stored& stored) {
  for (Scalar& s : stored.values) s = scalar::from_float(scalar::rounded(stored.type, s.f));
}

}  // namespace

base::Result<Oracle> Oracle::make(Graph graph, OracleOptions options) {
  LEMMA_TRY_VOID(validate(graph));
  for (const std::string& name : unbound_sizes(graph)) {
    return base::invalid("size " + name + " has no value", {}, "bind it");
  }
  // Values may be recorded in sizes that forms still name.
  std::vector<Binding> bindings;
  for (const Size& s : graph.sizes) bindings.push_back({s.name, *s.value});
  LEMMA_TRY(Graph bound, tensor::bind(graph, bindings));
  Oracle out(std::move(bound), options);
  out.inputs_.resize(out.graph_.nodes.size());
  return out;
}

base::Result<size_t> Oracle::find_input(const std::string& name) const {
  std::string known;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const auto* input = std::get_if<Input>(&graph_.nodes[n]);
    if (!input) continue;
    if (input->name == name) return n;
    known += (known.empty() ? "" : ", ") + input->name;
  }
  return base::invalid("no input is called " + name, {}, known.empty() ? "" : "the inputs are " + known);
}

base::Result<void> Oracle::set_input(const InputBuffer& given) {
  LEMMA_TRY(const size_t n, find_input(given.name));
  const Input& input = std::get<Input>(graph_.nodes[n]);
  if (given.type != input.type) {
    return base::invalid("input " + input.name + " is " + std::string(scalar::name(given.type)) + " but the program says " +
                             std::string(scalar::name(input.type)), input.span);
  }
  Bound bound;
  bound.set = true;
  bound.buffer = given;
  if (given.strides.empty()) {
    bound.buffer.strides = dense(given.type, {}).strides;
    const std::vector<int64_t> extents = constants(input.extents);
    bound.buffer.strides.assign(extents.size(), 0);
    int64_t stride = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      bound.buffer.strides[d] = stride;
      stride *= extents[d];
    }
  } else if (given.strides.size() != input.extents.size()) {
    return base::invalid("input " + input.name + " has " + std::to_string(given.strides.size()) + " strides but " +
                             std::to_string(input.extents.size()) + " dimensions", input.span);
  }
  LEMMA_TRY_VOID(check_range(input, bound));
  inputs_[n] = std::move(bound);
  return {};
}

base::Result<void> Oracle::set_input(const std::string& name, Array array) {
  LEMMA_TRY(const size_t n, find_input(name));
  const Input& input = std::get<Input>(graph_.nodes[n]);
  const std::vector<int64_t> extents = constants(input.extents);
  if (array.type != input.type) {
    return base::invalid("input " + name + " is " + std::string(scalar::name(array.type)) + " but the program says " +
                             std::string(scalar::name(input.type)), input.span);
  }
  if (array.extents != extents || int64_t(array.data.size()) != product(extents)) {
    return base::invalid("input " + name + " has the extents " + list(array.extents) + " but the program says " +
                             list(extents), input.span);
  }
  Bound bound;
  bound.set = true;
  bound.array = std::move(array);
  LEMMA_TRY_VOID(check_range(input, bound));
  inputs_[n] = std::move(bound);
  return {};
}

base::Result<void> Oracle::check_range(const Input& input, const Bound& bound) const {
  if (scalar::is_float(input.type) || (!input.low && !input.high)) return {};
  const Stored stored = bound.buffer.data ? stored_input(bound.buffer, constants(input.extents)) : stored_array(bound.array);
  std::optional<int64_t> bad;
  int64_t where = 0;
  for_elements(stored.extents, stored.strides, [&](int64_t p, int64_t offset) {
    const int64_t v = stored.load(offset).i;
    if (bad || (!(input.low && v < input.low->constant().value_or(v)) &&
                !(input.high && v >= input.high->constant().value_or(v + 1)))) {
      return;
    }
    bad = v;
    where = p;
  });
  if (!bad) return {};
  return base::invalid("element " + std::to_string(where) + " of input " + input.name + " is " + std::to_string(*bad) +
                           ", outside its stated range", input.span);
}

base::Result<void> Oracle::evaluate(const std::vector<Request>& requests, StoredNodes& stored) const {
  const std::vector<Demand> demands = find_demands(graph_, requests);
  const std::vector<std::vector<char>> rounded = rounded_outputs(graph_);
  stored.assign(graph_.nodes.size(), {});
  std::vector<size_t> last_reader(graph_.nodes.size(), 0);
  std::vector<std::vector<size_t>> done_after(graph_.nodes.size());
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!demands[n].needed) continue;
    for (Value v : sources(graph_.nodes[n])) last_reader[size_t(v.node.index)] = n;
  }
  for (const Request& r : requests) last_reader[size_t(r.value.node.index)] = graph_.nodes.size();
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (last_reader[n] < graph_.nodes.size()) done_after[last_reader[n]].push_back(n);
  }
  const auto arithmetic = options_.emulate_single ? scalar::Arithmetic::Single : scalar::Arithmetic::Double;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!demands[n].needed) continue;
    if (const auto* input = std::get_if<Input>(&graph_.nodes[n])) {
      const Bound& bound = inputs_[n];
      if (!bound.set) return base::invalid("input " + input->name + " was not given", input->span);
      stored[n].push_back(bound.buffer.data ? stored_input(bound.buffer, constants(input->extents))
                                            : stored_array(bound.array));
    } else if (const auto* c = std::get_if<Comprehension>(&graph_.nodes[n])) {
      LEMMA_TRY(stored[n], compute(graph_, *c, demands[n], stored, arithmetic));
    } else {
      LEMMA_TRY(Stored out, compute(graph_, std::get<Scatter>(graph_.nodes[n]), stored, arithmetic));
      stored[n].push_back(std::move(out));
    }
    // What is read further is what its type holds; what only leaves stays as it is: whoever compares allows its rounding.
    for (size_t o = 0; o < rounded[n].size(); ++o) {
      if (rounded[n][o]) round_values(stored[n][o]);
    }
    for (size_t done : done_after[n]) stored[done] = {};
  }
  return {};
}

base::Result<Value> Oracle::find_output(const std::string& name) const {
  std::string known;
  for (const GraphOutput& o : graph_.outputs) {
    if (o.name == name) return o.value;
    known += (known.empty() ? "" : ", ") + o.name;
  }
  return base::invalid("no output is called " + name, {}, known.empty() ? "" : "the outputs are " + known);
}

base::Result<std::vector<Array>> Oracle::values(std::span<const Value> wanted) const {
  std::vector<Request> requests;
  for (Value v : wanted) requests.push_back({v, {}, true});
  StoredNodes stored;
  LEMMA_TRY_VOID(evaluate(requests, stored));
  std::vector<Array> out;
  for (Value v : wanted) out.push_back(whole_array(stored[size_t(v.node.index)][size_t(v.output)]));
  return out;
}

base::Result<Array> Oracle::output(const std::string& name) const {
  LEMMA_TRY(const Value value, find_output(name));
  LEMMA_TRY(std::vector<Array> out, values({&value, 1}));
  return std::move(out[0]);
}

base::Result<std::vector<Array>> Oracle::outputs() const {
  std::vector<Value> wanted;
  for (const GraphOutput& o : graph_.outputs) wanted.push_back(o.value);
  return values(wanted);
}

base::Result<std::vector<std::vector<Scalar>>> Oracle::at(const std::vector<Sample>& samples) const {
  std::vector<Request> requests;
  for (const Sample& s : samples) {
    const std::vector<int64_t> box = constants(extents(graph_, s.value));
    for (const std::vector<int64_t>& p : s.points) {
      bool inside = p.size() == box.size();
      for (size_t d = 0; d < box.size() && inside; ++d) inside = p[d] >= 0 && p[d] < box[d];
      if (!inside) {
        return base::invalid("the point " + list(p) + " is outside " + name(graph_, s.value) + ", whose extents are " + list(box));
      }
    }
    requests.push_back({s.value, s.points, false});
  }
  StoredNodes stored;
  LEMMA_TRY_VOID(evaluate(requests, stored));
  std::vector<std::vector<Scalar>> out;
  for (const Sample& s : samples) {
    const Stored& from = stored[size_t(s.value.node.index)][size_t(s.value.output)];
    out.emplace_back();
    for (const std::vector<int64_t>& p : s.points) {
      int64_t offset = 0, key = 0;
      for (size_t d = 0; d < p.size(); ++d) {
        offset += p[d] * from.strides[d];
        key += p[d] * from.key_strides[d];
      }
      offset += from.slab(key) * from.slab_size;
      if (!from.is_present(offset)) {
        return base::invalid("the point " + list(p) + " is off the domain of " + name(graph_, s.value));
      }
      out.back().push_back(from.load(offset));
    }
  }
  return out;
}

base::Result<std::vector<Scalar>> Oracle::at(Value value, const std::vector<std::vector<int64_t>>& points) const {
  LEMMA_TRY(auto out, at(std::vector<Sample>{{value, points}}));
  return std::move(out[0]);
}

double operation_count(const Graph& graph) {
  const auto space = [](const std::vector<IndexInfo>& indices) {
    double out = 1;
    for (const IndexInfo& i : indices) out *= double(i.extent.constant().value_or(1));
    return out;
  };
  const auto operations = [](std::span<const scalar::Expr> roots) {
    double out = 1;
    for (scalar::Expr e : scalar::reachable(roots)) out += scalar::arity(e.op()) > 0;
    return out;
  };
  double total = 0;
  for (const Node& n : graph.nodes) {
    base::match(
        n, [](const Input&) {},
        [&](const Comprehension& c) {
          double each = operations(c.body);
          if (c.monoid) {
            for (const monoid::Update& u : c.monoid->combine) each += operations({&u.body, 1});
            if (c.monoid->structure == monoid::Structure::TopK) each += c.monoid->count;
          }
          total += each * space(c.indices);
        },
        [&](const Scatter& s) { total += (operations({&s.body, 1}) + 1) * space(s.indices); });
  }
  return total;
}

}  // namespace lemma::tensor
