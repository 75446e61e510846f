#include "lemma/scalar/eval.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "lemma/base/check.h"
#include "lemma/scalar/kernels.h"

namespace lemma::scalar {
namespace {

Kind operand_kind(Expr e) { return e.is(Op::Select) ? e.kind() : e.args().empty() ? e.kind() : e.arg(0).kind(); }

bool is_leaf(Op op) { return shape(op) == OpShape::Leaf; }

// A copy that rounds: how an F32 leaf enters single arithmetic.
void round_column(Scalar* out, const Scalar* a, const Scalar*, const Scalar*, int n, int64_t) {
  for (int i = 0; i < n; ++i) out[i].f = double(float(a[i].f));
}

}  // namespace

Scalar apply(Op op, Kind kind, Kind operand, int64_t payload, std::span<const Scalar> operands, Arithmetic arithmetic) {
  Scalar out;
  const Scalar* args[3] = {};
  for (size_t i = 0; i < operands.size(); ++i) args[i] = &operands[i];
  kernel(op, kind, operand, arithmetic == Arithmetic::Single)(&out, args[0], args[1], args[2], 1, payload);
  return out;
}

Scalar value_of(Expr constant) {
  return is_float(constant.kind()) ? from_float(constant.as_float()) : from_int(constant.as_int());
}

Expr constant_of(Arena& arena, Kind kind, Scalar value) {
  return is_float(kind) ? constant(arena, kind, value.f) : constant_int(arena, kind, value.i);
}

Scalar evaluate(Expr root, const Leaves& leaves, Arithmetic arithmetic) {
  std::unordered_map<uint32_t, Scalar> values;
  const bool single = arithmetic == Arithmetic::Single;
  for (Expr e : reachable({&root, 1})) {
    Scalar value = from_int(0);
    const int which = int(e.payload());
    switch (e.op()) {
      case Op::Const: value = value_of(e); break;
      case Op::Arg:
        value = leaves.arg(which);
        if (single && e.kind() == Kind::F32) value.f = double(float(value.f));
        break;
      case Op::Present: value = from_int(leaves.present(which)); break;
      case Op::Index: value = from_int(leaves.index(which)); break;
      case Op::Size: value = from_int(leaves.size(which)); break;
      default: {
        Scalar operands[3];
        for (size_t i = 0; i < e.args().size(); ++i) operands[i] = values.at(e.arg(i).index());
        value = apply(e.op(), e.kind(), operand_kind(e), e.payload(), {operands, e.args().size()}, arithmetic);
      }
    }
    values[e.index()] = value;
  }
  return values.at(root.index());
}

// ---- Batches ----

namespace {

// Hands out register slots and takes them back after their last use.
class Registers {
 public:
  explicit Registers(int first) : next_(first) {}
  int take() {
    if (free_.empty()) return next_++;
    const int slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(int slot) { free_.push_back(slot); }
  int count() const { return next_; }

 private:
  int next_;
  std::vector<int> free_;
};

}  // namespace

namespace {

// The nodes of a program in order, and for each the step after which its slot is free (roots keep theirs).
struct Order {
  std::vector<Expr> nodes;
  std::unordered_map<uint32_t, size_t> position;
  std::vector<size_t> last;

  explicit Order(std::span<const Expr> roots) : nodes(reachable(roots)), last(nodes.size(), 0) {
    position.reserve(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) position[nodes[i].index()] = i;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (Expr a : nodes[i].args()) last[at(a)] = i;
    }
    for (Expr root : roots) keep(at(root));
  }
  size_t at(Expr e) const { return position.at(e.index()); }
  void keep(size_t i) { last[i] = nodes.size(); }
};

}  // namespace

BatchProgram BatchProgram::compile(std::span<const Expr> roots, Arithmetic arithmetic) {
  const bool single = arithmetic == Arithmetic::Single;
  BatchProgram program;
  Order order(roots);
  std::vector<int> slot(order.nodes.size(), -1);

  // Leaves are the caller's columns, constants keep their slots; the rest share.
  for (size_t i = 0; i < order.nodes.size(); ++i) {
    const Expr e = order.nodes[i];
    if (!is_leaf(e.op()) || e.is_const()) continue;
    slot[i] = int(program.leaves_.size());
    program.leaves_.push_back({e.op(), int(e.payload()), e.kind()});
  }
  Registers registers(int(program.leaves_.size()));
  for (size_t i = 0; i < order.nodes.size(); ++i) {
    const Expr e = order.nodes[i];
    if (!e.is_const()) continue;
    slot[i] = registers.take();
    program.constants_.push_back({slot[i], value_of(e)});
    order.keep(i);
  }
  for (size_t i = 0; i < order.nodes.size(); ++i) {
    const Expr e = order.nodes[i];
    if (e.is_const()) continue;
    if (is_leaf(e.op())) {
      if (single && e.kind() == Kind::F32) {
        const int raw = slot[i];
        slot[i] = registers.take();
        program.steps_.push_back({round_column, 0, slot[i], {raw, 0, 0}, 1});
      } else {
        order.keep(i);
      }
      continue;
    }
    Step step{kernel(e.op(), e.kind(), operand_kind(e), single), e.payload(), registers.take(), {}, int(e.args().size())};
    for (size_t k = 0; k < e.args().size(); ++k) {
      const size_t p = order.at(e.arg(k));
      step.args[k] = slot[p];
      if (order.last[p] != i) continue;
      registers.give_back(slot[p]);
      order.keep(p);  // given back once, though it may stand twice among the operands
    }
    slot[i] = step.out;
    program.steps_.push_back(step);
  }
  for (Expr root : roots) program.roots_.push_back(slot[order.at(root)]);
  program.slots_ = registers.count();
  return program;
}

void BatchProgram::run(std::span<const Column> columns, int count, Workspace& workspace,
                       std::span<Column> results) const {
  LEMMA_CHECK(columns.size() == leaves_.size() && results.size() == roots_.size(), "wrong number of columns");
  if (count == 0) return std::fill(results.begin(), results.end(), Column{});
  const size_t width = size_t(count);
  if (workspace.values_.size() < width * size_t(slots_)) workspace.values_.resize(width * size_t(slots_));
  workspace.current_.resize(size_t(slots_));
  workspace.filled_.assign(size_t(slots_), count);
  const auto home = [&](int slot) { return workspace.values_.data() + size_t(slot) * width; };
  for (size_t i = 0; i < columns.size(); ++i) {
    workspace.current_[i] = columns[i].data;
    if (columns[i].broadcast) workspace.filled_[i] = 1;
  }
  for (const Constant& c : constants_) {
    *home(c.slot) = c.value;
    workspace.current_[size_t(c.slot)] = home(c.slot);
    workspace.filled_[size_t(c.slot)] = 1;
  }
  for (const Step& step : steps_) {
    // An operation on values that are the same everywhere is done once.
    int points = 1;
    for (int k = 0; k < step.count; ++k) points = std::max(points, workspace.filled_[size_t(step.args[k])]);
    const Scalar* args[3] = {};
    for (int k = 0; k < step.count; ++k) {
      const int s = step.args[k];
      if (workspace.filled_[size_t(s)] < points) {
        std::fill_n(home(s), points, *workspace.current_[size_t(s)]);
        workspace.current_[size_t(s)] = home(s);
        workspace.filled_[size_t(s)] = points;
      }
      args[k] = workspace.current_[size_t(s)];
    }
    step.kernel(home(step.out), args[0], args[1], args[2], points, step.payload);
    workspace.current_[size_t(step.out)] = home(step.out);
    workspace.filled_[size_t(step.out)] = points;
  }
  for (size_t r = 0; r < roots_.size(); ++r) {
    const size_t s = size_t(roots_[r]);
    results[r] = {workspace.current_[s], workspace.filled_[s] < count};
  }
}

}  // namespace lemma::scalar
