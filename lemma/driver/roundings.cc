#include "lemma/driver/roundings.h"

#include <algorithm>
#include <optional>

#include "lemma/base/match.h"
#include "lemma/driver/compare.h"

namespace lemma::driver {
namespace {

using scalar::Expr;
using scalar::Op;

class FindKept {
 public:
  explicit FindKept(const tile::Program& program) : program_(program) {}

  std::vector<Kept> run() {
    for (const tile::Kernel& kernel : program_.kernels) blocks_.push_back(&kernel.body);
    while (!blocks_.empty()) {
      const tile::Block& block = *blocks_.back();
      blocks_.pop_back();
      for (const tile::Stmt& statement : block) visit(statement);
    }
    return std::move(out_);
  }

 private:
  void visit(const tile::Stmt& statement) {
    if (const auto* loop = std::get_if<tile::For>(&statement)) {
      blocks_.push_back(&loop->body);
    } else if (const auto* branch = std::get_if<tile::If>(&statement)) {
      blocks_.push_back(&branch->then);
      blocks_.push_back(&branch->otherwise);
    } else if (const auto* map = std::get_if<tile::Map>(&statement)) {
      for (const tile::Store& s : map->stores) store(s.to.buffer, s.value, &map->reads);
    } else if (const auto* copy = std::get_if<tile::Copy>(&statement)) {
      const scalar::DType from = type_of(copy->from);
      if (scalar::is_float(from)) store(copy->to.buffer, scalar::arg(*program_.arena, scalar::kind_of(from), 0), nullptr, from);
    } else if (const auto* scan = std::get_if<tile::Scan>(&statement)) {
      for (const tile::Store& s : scan->stores) store(s.to.buffer, s.value, nullptr);
    }
  }

  // `reads`: what arguments are; without them they are states, which are wide.
  void store(int to, Expr value, const std::vector<tile::Access>* reads, std::optional<scalar::DType> from = {}) {
    const tile::Buffer& buffer = program_.buffers[size_t(to)];
    const bool local = buffer.space == tile::Space::Shared || buffer.space == tile::Space::Fragment || buffer.space == tile::Space::Local;
    if (!local || !scalar::is_float(buffer.type) || scalar::bits(buffer.type) >= 32 || value.is_const()) return;
    while (value.is(Op::Cast)) value = value.arg(0);
    if (value.is(Op::RoundTo) && scalar::DType(value.payload()) == buffer.type) return;
    if (from == buffer.type) return;
    if (reads && value.is(Op::Arg) && type_of((*reads)[size_t(value.payload())]) == buffer.type) return;
    const auto known = [&](const Kept& k) { return k.buffer == buffer.name; };
    if (std::none_of(out_.begin(), out_.end(), known)) out_.push_back({buffer.name, buffer.type});
  }

  scalar::DType type_of(const tile::Access& access) const { return program_.buffers[size_t(access.buffer)].type; }

  const tile::Program& program_;
  std::vector<const tile::Block*> blocks_;
  std::vector<Kept> out_;
};

}  // namespace

std::vector<Kept> kept_narrow(const tile::Program& program) { return FindKept(program).run(); }

double kept_rounding(const tile::Program& program) {
  double out = 0;
  for (const Kept& k : kept_narrow(program)) out = std::max(out, tolerance_of(k.type).relative);
  return out;
}

double stated_step(const tensor::Graph& graph) {
  double out = 0;
  for (const tensor::Node& node : graph.nodes) {
    for (const tensor::Value v : tensor::sources(node)) {
      const scalar::DType type = tensor::type(graph, v);
      const bool given = std::holds_alternative<tensor::Input>(graph.node(v.node));
      if (!given && scalar::is_float(type)) out = std::max(out, 2 * tolerance_of(type).relative);
    }
  }
  return out;
}

}  // namespace lemma::driver
