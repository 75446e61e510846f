// Fills in what a comprehension usually has: outputs over all its points, components over all of them too.
#include "lemma/tensor/builder.h"

#include "lemma/base/check.h"

namespace lemma::tensor {

using scalar::Expr;
using view::Form;

Form Draft::add_index(std::string name, const Form& extent, Role role) {
  LEMMA_CHECK(node.indices.empty() || int(role) >= int(Role::Scan) || int(node.indices.back().role) <= int(Role::Axis),
              "points and axes come before scan and reduce indices");
  node.indices.push_back({std::move(name), extent, role});
  return Form::index(int(node.indices.size()) - 1);
}

Form Draft::scan(std::string name, Form extent, Scan how) {
  node.scan = how;
  return add_index(std::move(name), extent, Role::Scan);
}

Expr Draft::read(Value source, std::vector<Form> coords, view::Formula guard) {
  node.reads.push_back({source, std::move(coords), std::move(guard)});
  return scalar::arg(builder_->arena(), kind(builder_->graph, source), int(node.reads.size()) - 1);
}

Form Draft::data(Expr read) { return Form::data(int(read.payload())); }
Expr Draft::present(Expr read) { return scalar::present(read.arena(), int(read.payload())); }
Expr Draft::index(const Form& index) const { return scalar::index(builder_->arena(), *index.as_index()); }

Value Draft::map(std::vector<Expr> bodies) {
  node.body = std::move(bodies);
  if (node.outputs.empty()) {
    for (size_t b = 0; b < node.body.size(); ++b) {
      const std::string name = node.body.size() == 1 ? node.name : node.name + std::to_string(b);
      node.outputs.push_back(
          {name, scalar::dtype_of(node.body[b].kind()), int(b), node.with_role(Role::Point), false});
    }
  }
  return {builder_->graph.add(std::move(node)), 0};
}

Value Draft::fold(monoid::MonoidRef monoid, std::vector<Expr> operands) {
  node.body = std::move(operands);
  const std::vector<int> points = node.with_role(Role::Point), axes = node.with_role(Role::Axis),
                         scans = node.with_role(Role::Scan);
  if (node.components.empty()) {
    for (const monoid::Component& c : monoid->components) {
      std::vector<int> ids = points;
      LEMMA_CHECK(c.axes.empty() || c.axes.size() == axes.size(), "say which axes each component has");
      if (!c.axes.empty()) ids.insert(ids.end(), axes.begin(), axes.end());
      node.components.push_back(std::move(ids));
    }
  }
  if (node.outputs.empty()) {
    for (size_t r = 0; r < monoid->finish.size(); ++r) {
      Output out;
      out.name = monoid->finish.size() == 1 ? node.name : node.name + std::to_string(r);
      out.type = scalar::dtype_of(monoid->finish[r].kind());
      out.result = int(r);
      out.dims = points;
      out.dims.insert(out.dims.end(), scans.begin(), scans.end());
      bool with_axes = false;
      for (Expr e : scalar::reachable({&monoid->finish[r], 1})) {
        with_axes = with_axes || (e.is(scalar::Op::Arg) && !monoid->components[size_t(e.payload())].axes.empty());
      }
      if (with_axes) out.dims.insert(out.dims.end(), axes.begin(), axes.end());
      node.outputs.push_back(std::move(out));
    }
  }
  node.monoid = std::move(monoid);
  return {builder_->graph.add(std::move(node)), 0};
}

Form Builder::size(std::string name) {
  Size s;
  s.name = std::move(name);
  graph.sizes.push_back(std::move(s));
  return Form::size(int(graph.sizes.size()) - 1);
}

Value Builder::input(std::string name, std::vector<Form> extents, scalar::DType type) {
  Input in;
  in.name = std::move(name);
  in.extents = std::move(extents);
  in.type = type;
  return {graph.add(std::move(in)), 0};
}

void Builder::output(std::string name, Value value) {
  graph.outputs.push_back({std::move(name), value, type(graph, value), std::nullopt});
}

}  // namespace lemma::tensor
