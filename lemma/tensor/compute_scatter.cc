// A scatter writes in row-major order of its points. Coordinates outside the target drop the point; without a monoid a
// second write to one element is an error that names both points.
#include <algorithm>
#include <unordered_map>

#include "lemma/monoid/eval.h"
#include "lemma/tensor/compute.h"

namespace lemma::tensor {
namespace {

using scalar::Arithmetic;
using scalar::Column;
using scalar::Scalar;

class Writer {
 public:
  Writer(const Graph& graph, const Scatter& node, const StoredNodes& sources, Arithmetic arithmetic)
      : node_(node), sources_(sources), arithmetic_(arithmetic),
        frame_(frame_of(node.name, node.indices, node.span)),
        batch_(frame_, plan_reads(graph, node.indices, node.reads, sources), size_values(graph)) {
    for (const view::Form& f : node.coords) coords_.push_back(Coordinate(f));
    std::vector<int64_t> extents;
    for (const view::Form& f : node.extents) extents.push_back(std::max<int64_t>(0, f.constant().value_or(0)));
    out_ = dense(node.type, std::move(extents));
    if (node.monoid) evaluator_.emplace(node.monoid, monoid::SizeValues(), arithmetic);
  }

  base::Result<Stored> run() {
    start();
    Space space;
    space.extents = constant_extents(node_.indices);
    const std::vector<int64_t> whole = {0};
    space.keys = &whole;
    for (size_t i = 0; i < node_.indices.size(); ++i) space.loops.push_back(int(i));
    space.point_loops = space.loops.size();
    space.trim = Condition(affine_part(node_.domain));
    const Condition domain(node_.domain);
    const auto program = scalar::BatchProgram::compile({&node_.body, 1}, arithmetic_);
    Walker walker(space);
    std::vector<int64_t> indices;
    std::vector<Column> leaves;
    Run run;
    bool more = true;
    while (more) {
      batch_.start(walker);
      while (batch_.size() < Batch::kCapacity && (more = walker.next(Batch::kCapacity - batch_.size(), run, indices))) {
        batch_.add(run, indices);
      }
      if (batch_.size() == 0) break;
      if (!domain.trims()) LEMMA_TRY_VOID(batch_.filter(domain));
      for (const Coordinate& c : coords_) {
        for (int r : c.data()) LEMMA_TRY_VOID(batch_.need(r));
      }
      LEMMA_TRY_VOID(batch_.columns(program, leaves));
      Column result;
      program.run(leaves, int(batch_.size()), workspace_, {&result, 1});
      LEMMA_TRY_VOID(write(result));
    }
    finish();
    return std::move(out_);
  }

 private:
  void start() {
    if (node_.base) {
      const Stored& base = sources_[size_t(node_.base->node.index)][size_t(node_.base->output)];
      copy(base);
    } else if (evaluator_) {
      Scalar identity;
      evaluator_->identity(&identity);
      std::fill(out_.values.begin(), out_.values.end(), identity);
    } else {
      out_.present.assign(out_.values.size(), 0);
    }
  }

  void copy(const Stored& base) {
    if (!base.present.empty()) out_.present = base.present;
    std::vector<int64_t> at(out_.extents.size(), 0);
    for (size_t p = 0; p < out_.values.size(); ++p) {
      int64_t offset = 0;
      for (size_t d = 0; d < at.size(); ++d) offset += at[d] * base.strides[d];
      out_.values[p] = base.load(offset);
      for (size_t d = at.size(); d-- > 0 && ++at[d] == out_.extents[d];) at[d] = 0;
    }
  }

  base::Result<void> write(const Column& values) {
    for (const Run& run : batch_.runs()) {
      for (int64_t k = 0; k < run.count; ++k) {
        const int64_t position = run.begin + k;
        if (!batch_.active(position)) continue;
        const int64_t* at = batch_.indices_at(run, k);
        int64_t offset = 0;
        bool inside = true;
        for (size_t d = 0; d < coords_.size() && inside; ++d) {
          for (int r : coords_[d].data()) inside = inside && batch_.is_usable(r, position);
          const int64_t coord = inside ? coords_[d].at(at, batch_, position) : 0;
          inside = inside && coord >= 0 && coord < out_.extents[d];
          offset += coord * out_.strides[d];
        }
        if (!inside) continue;
        const Scalar value = values.data[values.broadcast ? 0 : position];
        if (!evaluator_) LEMMA_TRY_VOID(claim(offset, run, k));
        put(size_t(offset), value);
      }
    }
    return {};
  }

  // Without a monoid every element has at most one writer.
  base::Result<void> claim(int64_t offset, const Run& run, int64_t k) {
    if (writers_.empty()) writers_.resize(out_.values.size(), 0);
    if (writers_[size_t(offset)]) {
      return base::invalid(node_.name + " writes the element " + std::to_string(offset) +
                               " of its target (in row-major order) a second time, at " + batch_.point_text(run, k),
                           node_.span, "make its coordinates injective, or say how values combine with a monoid");
    }
    writers_[size_t(offset)] = 1;
    return {};
  }

  void put(size_t offset, Scalar value) {
    Scalar& target = out_.values[offset];
    if (evaluator_) {
      Scalar lifted;
      evaluator_->lift([&](int, int, int64_t) { return value; }, &lifted);
      evaluator_->combine(&target, &lifted);
    } else {
      target = stored_value(out_.type, value, arithmetic_);
    }
    if (!out_.present.empty()) out_.present[offset] = 1;
  }

  void finish() {
    if (!evaluator_) return;
    const bool trivial = node_.monoid->finish.size() == 1 && node_.monoid->finish[0].is(scalar::Op::Arg);
    for (Scalar& v : out_.values) {
      if (!trivial) v = evaluator_->finish(&v)[0][0];
      v = stored_value(out_.type, v, arithmetic_);
    }
  }

  const Scatter& node_;
  const StoredNodes& sources_;
  Arithmetic arithmetic_;
  Frame frame_;
  Batch batch_;
  std::vector<Coordinate> coords_;
  Stored out_;
  std::optional<monoid::Evaluator> evaluator_;
  scalar::BatchProgram::Workspace workspace_;
  std::vector<char> writers_;
};

}  // namespace

base::Result<Stored> compute(const Graph& graph, const Scatter& node, const StoredNodes& sources,
                             Arithmetic arithmetic) {
  return Writer(graph, node, sources, arithmetic).run();
}

}  // namespace lemma::tensor
