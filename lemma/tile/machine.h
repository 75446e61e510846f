// The state of an interpreted run and the evaluation of a statement's points in lanes. Private to run.cc and fold.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lemma/monoid/eval.h"
#include "lemma/scalar/eval.h"
#include "lemma/tile/lanes.h"
#include "lemma/tile/run.h"

namespace lemma::tile {

inline constexpr int kLanes = 512;

class Machine;

inline std::vector<Var> variables_of(const std::vector<Range>& ranges) {
  std::vector<Var> out;
  for (const Range& r : ranges) out.push_back(r.var);
  return out;
}

inline scalar::Scalar converted(scalar::Scalar value, scalar::Kind from, scalar::Kind to) {
  return from == to ? value : scalar::apply(scalar::Op::Cast, to, from, 0, {&value, 1});
}

// The points of a box, a chunk at a time in row-major order.
class Points {
 public:
  explicit Points(std::vector<int64_t> extents);
  int64_t count() const { return count_; }
  // Columns [first_column, first_column + rank) of `lanes` for points [begin, begin + n).
  void fill(Lanes& lanes, size_t first_column, int64_t begin, int n) const;

 private:
  std::vector<int64_t> extents_;
  int64_t count_ = 1;
};

// Variables of a statement and what column each has; reads have columns after them.
struct Columns {
  std::vector<Var> variables;
  size_t reads = 0;
  int of(const view::Atom& a) const;
  int variable(Var v) const;
};

// An access located for every lane.
class LaneAccess {
 public:
  LaneAccess() = default;
  LaneAccess(const Access& access, const Columns& columns);
  int buffer() const { return access_->buffer; }
  const Access& access() const { return *access_; }
  void begin(const view::Form::Lookup& fixed);
  // element[l]: row-major, or -1 outside the buffer.
  void locate(const Storage& storage, const Lanes& lanes, int64_t* element);
  LaneFormula guard;

 private:
  const Access* access_ = nullptr;
  std::vector<LaneForm> coords_;
  std::vector<int64_t> values_;
};

// Reads, domain and expressions of a statement, for the lanes of a chunk.
class PointBody {
 public:
  struct Parts {
    const std::vector<Access>* reads = nullptr;
    const view::Formula* where = nullptr;
    std::vector<scalar::Expr> roots;
    std::vector<scalar::Expr> off_domain;   // those of `roots` that are used where `where` does not hold
    bool only_used = false;                 // leave out reads that neither roots nor where use
  };
  PointBody(const Program& program, std::vector<Var> variables, const Parts& parts, scalar::Arithmetic arithmetic);

  const Columns& columns() const { return columns_; }
  void begin(Machine& machine);
  // Reads and evaluates; false after a fault. lanes().count and the variables' columns must be set; `first_point`
  // numbers the chunk's points for finding conflicts.
  bool evaluate(Machine& machine, int64_t first_point);

  Lanes& lanes() { return lanes_; }
  const std::vector<char>& where() const { return where_mask_; }
  scalar::Scalar value(size_t root, size_t lane) const {
    return results_[root].data[results_[root].broadcast ? 0 : lane];
  }
  scalar::Column result(size_t root) const { return results_[root]; }
  const std::vector<char>& known() const { return known_; }
  bool reads_buffer(int buffer) const;
  void watch(int buffer) { watched_.push_back(buffer); }

 private:
  bool load(Machine& machine, size_t read, int64_t first_point);
  void fill_leaves(Machine& machine);

  Columns columns_;
  std::vector<LaneAccess> reads_;
  std::vector<char> in_where_, off_domain_, skipped_, integral_;
  std::vector<int> watched_;
  LaneFormula where_;
  scalar::BatchProgram program_;
  scalar::BatchProgram::Workspace workspace_;
  Lanes lanes_;
  std::vector<char> where_mask_, mask_, guard_mask_, known_;
  std::vector<int64_t> elements_;
  std::vector<std::vector<scalar::Scalar>> values_, present_, leaf_values_;
  std::vector<scalar::Column> leaf_columns_, results_;
};

class Machine {
 public:
  Machine(const Program& program, const RunOptions& options, std::vector<int64_t> sizes);

  base::Result<void> run(std::span<const Argument> arguments);

  // ---- for statements ----
  const Program& program() const { return program_; }
  const RunOptions& options() const { return options_; }
  int64_t size(int s) const { return sizes_[size_t(s)]; }
  int64_t variable(Var v) const { return variables_[size_t(v)]; }
  const view::Form::Lookup& fixed() const { return fixed_; }
  int64_t value(const view::Form& f) const { return f.evaluate(fixed_); }
  Storage& storage(int buffer) { return *storage_[size_t(buffer)]; }
  std::vector<int64_t> extents(const std::vector<Range>& ranges) const;

  // Stops the run; always false.
  bool fault(const std::string& message);
  bool cannot(const std::string& message);  // the program may be right
  bool fault(const std::string& message, const Columns& columns, const Lanes& lanes, size_t lane);
  // The same for an access that met somebody or nothing, or lies outside.
  bool conflict(Conflict c, const LaneAccess& access, bool writes, const Columns& columns, const Lanes& lanes,
                size_t lane);
  bool outside(const LaneAccess& access, bool writes, const Columns& columns, const Lanes& lanes, size_t lane);

  bool read(LaneAccess& access, int64_t element, int64_t point, bool watch, scalar::Scalar& out, const Columns& columns,
            const Lanes& lanes, size_t lane);
  bool write(LaneAccess& access, int64_t element, int64_t point, bool watch, scalar::Scalar value,
             const Columns& columns, const Lanes& lanes, size_t lane);

 private:
  bool open(std::span<const Argument> arguments);
  void close(std::span<const Argument> arguments);
  bool kernel(const Kernel& k);
  bool block(const Block& body);
  bool execute(const Stmt& stmt);
  bool statement(const Let& s);
  bool statement(const Alloc& s);
  bool statement(const Copy& s);
  bool statement(const Map& s);
  bool statement(const Reduce& s);   // fold.cc
  bool statement(const Scan& s);     // fold.cc
  bool statement(const Gemm& s);
  bool statement(const For& s);
  bool statement(const If& s);
  bool statement(const Assert& s);
  bool statement(const Combine& s);
  bool statement(const Print& s);
  bool statement(const Extern& s);
  bool statement(const Phase&) { return true; }  // split_phases leaves none
  bool statement(const Barrier&) { return true; }
  bool statement(const Commit&) { return true; }
  bool statement(const Wait&) { return true; }

  bool store(const Store& s, LaneAccess& to, size_t root, PointBody& body, int64_t first_point);
  std::optional<bool> condition(const std::vector<Access>& reads, const view::Formula& condition, const void* key);
  int64_t evaluate(scalar::Expr e) const;
  PointBody& body_of(const void* key, const std::vector<Range>& points, const PointBody::Parts& parts);
  std::vector<int64_t> argument_places(const Buffer& buffer, const std::vector<int64_t>& extents) const;

  const Program& program_;
  const RunOptions& options_;
  std::vector<int64_t> sizes_, variables_;
  std::vector<std::optional<Storage>> storage_;
  view::Form::Lookup fixed_;
  Toucher who_;
  const Kernel* kernel_ = nullptr;
  std::vector<int> path_;
  const char* word_ = "";
  std::vector<Var> scope_;
  std::optional<base::Diagnostic> error_;
  std::unordered_map<const void*, std::unique_ptr<PointBody>> bodies_;
};

}  // namespace lemma::tile
