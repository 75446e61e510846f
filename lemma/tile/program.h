// Tile programs, block form: the dataflow of kernels, with nothing about threads.
//
// A program owns its buffers and launches its kernels in order. A kernel's blocks (the points of its grid) are
// independent of one another and may run in any order and at once; inside a block statements run in order. Parameters
// and scratch are global; shared, fragment and local buffers belong to one block and hold unspecified values until
// written. On a CPU a shared buffer is a packed panel in cache and a fragment lives in vector registers.
//
// Statements are index notation over tiles: their variables range over boxes (0 <= v < extent), reads and writes name
// a buffer and a form per dimension. Forms and expressions use: Index(v) = variable v of `Program::variables` (grid,
// loop, let and statement variables alike), Size(s) = `Program::sizes[s]`, Data(r) and Arg(r) = `reads[r]` of the
// statement they stand in. A read whose guard fails is not made. Reads and writes must lie in their buffers wherever
// guard and `where` hold, except in copies, whose source and target are clipped.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lemma/monoid/monoid.h"
#include "lemma/scalar/expr.h"
#include "lemma/view/formula.h"

namespace lemma::tile {

using Var = int;  // index into Program::variables

enum class Space : uint8_t {
  Input, Output, Update,  // parameters: read, written, both
  Scratch,                // global, between kernels
  Shared, Fragment, Local,
};

// How a block-local buffer is stored. RowMajor pads the last dimension by `pad` elements. Panels stores the last two
// dimensions [K, N] as [ceil(N/width)][ceil(K/interleave)][width][interleave], zero beyond N and K: what a register
// tile streams. Parameters are RowMajor.
enum class LayoutKind : uint8_t { RowMajor, Panels };
struct Layout {
  LayoutKind kind = LayoutKind::RowMajor;
  int pad = 0;
  int width = 0;
  int interleave = 1;
  bool operator==(const Layout&) const = default;
};

struct Buffer {
  std::string name;
  scalar::DType type = scalar::DType::F32;
  Space space = Space::Input;
  std::vector<view::Form> extents;        // over sizes; of Shared, Fragment and Local over sizes too
  std::vector<view::Form> strides;        // of parameters that come strided: elements per dimension, over sizes;
                                          // empty: contiguous row-major
  Layout layout;
  bool operator==(const Buffer&) const = default;
};

struct Access {
  int buffer = -1;
  std::vector<view::Form> coords;
  view::Formula guard;
  bool operator==(const Access&) const = default;
};

struct Range {                            // a statement variable: 0 <= var < extent
  Var var = -1;
  view::Form extent;                      // over sizes and outer variables (lets included), never over data
  bool operator==(const Range&) const = default;
};

struct Stmt;
using Block = std::vector<Stmt>;

// A block-level integer, fixed from here on: `let n = len[b]`, `let rows = min(128, M - m0)`.
struct Let {
  Var var = -1;
  std::vector<Access> reads;
  scalar::Expr value;                     // I64
  bool operator==(const Let&) const = default;
};

struct Alloc {                            // brings a Shared, Fragment or Local buffer to life until the block's end
  int buffer = -1;
  bool operator==(const Alloc&) const = default;
};

// to[starts_to + i] = from[starts_from + i] for every i in the box, cast to the target's type. Source elements outside
// the source buffer are `fill`; target elements outside the target buffer are dropped. Dimensions of extent 1 align:
// from.coords and to.coords are forms over `box` variables.
struct Copy {
  std::vector<Range> box;
  Access from, to;
  scalar::Expr fill;                      // a constant of the target's kind
  bool operator==(const Copy&) const = default;
};

// For every point of the box: where `where` holds, each store writes its value; elsewhere it writes `otherwise`, if
// given. A store with a `combine` op folds into what is there.
struct Store {
  Access to;
  scalar::Expr value;
  scalar::Expr otherwise;                 // or invalid: nothing is written off the domain
  std::optional<scalar::Op> combine;
  bool operator==(const Store&) const = default;
};
struct Map {
  std::vector<Range> points;
  view::Formula where;
  std::vector<Access> reads;
  std::vector<Store> stores;
  std::string comment;                    // the maths it carries out, for readers of the emitted text
  bool operator==(const Map&) const = default;
};

// For every point: folds the lifted body over the reduce box (row-major order) where `where` holds, into the states.
// With `accumulate` the fold starts from what the states hold, else from the identity. A component's state access may
// leave out point variables it does not depend on (its own index set); then the body's operand for it does not use
// them and it is folded once, not once for each. TopK states have the slot as last dimension.
// State axes (monoid components with axes) are the last dimensions of the state accesses, given by `axes` variables;
// operands may vary along them.
struct Reduce {
  std::vector<Range> points;
  std::vector<Range> axes;
  std::vector<Range> reduces;
  view::Formula where;
  std::vector<Access> reads;
  std::vector<scalar::Expr> body;         // the monoid's operands
  monoid::MonoidRef monoid;
  std::vector<Access> states;             // per component, over points and axes
  bool accumulate = false;
  std::string comment;
  bool operator==(const Reduce&) const = default;
};

// For every point: folds along `along` in order (or in reverse) and stores the state at every step (before the step's
// own element if exclusive). The state lives in `states` (over points and axes): with `accumulate` it starts from what
// they hold (a carry between tiles), and it is left there.
struct Scan {
  std::vector<Range> points;
  std::vector<Range> axes;
  Range along;
  bool reverse = false;
  bool exclusive = false;
  view::Formula where;
  std::vector<Access> reads;
  std::vector<scalar::Expr> body;
  monoid::MonoidRef monoid;
  std::vector<Access> states;
  std::vector<Store> stores;              // values over Arg(component); accesses over points, axes and along
  bool accumulate = false;
  std::string comment;
  bool operator==(const Scan&) const = default;
};

// acc[.., m, n] = (or +=) sum over k (and the taps) of a[.., m, k] * b[.., k, n]. Coordinates of `a` use m, k and taps,
// of `b` k, taps and n, of `acc` m and n, and outer variables. Accumulates in the kind of acc's buffer; operands are
// widened. Taps are further reduce variables along which `a` does not lie contiguous (the window of a stencil).
struct Gemm {
  Range m, n, k;
  std::vector<Range> taps;
  Access a, b, acc;
  bool accumulate = true;
  std::string comment;
  bool operator==(const Gemm&) const = default;
};

enum class LoopKind : uint8_t { Serial, Unrolled };

// for var in begin .. end step `step`. `where` may mention var and the body's statement variables' tiles only through
// begin and end already; it is kept for the masks pass of thread form.
struct For {
  Var var = -1;
  scalar::Expr begin, end;                // I64 over sizes and outer variables
  int64_t step = 1;
  LoopKind kind = LoopKind::Serial;
  Block body;
  bool operator==(const For&) const = default;
};

struct If {
  std::vector<Access> reads;
  view::Formula condition;
  Block then, otherwise;
  bool operator==(const If&) const = default;
};

struct Assert {                           // a run-time check: the program stops with `message` where it fails
  std::vector<Access> reads;
  view::Formula condition;
  std::string message;
  bool operator==(const Assert&) const = default;
};

struct Stmt : std::variant<Let, Alloc, Copy, Map, Reduce, Scan, Gemm, For, If, Assert> {
  using variant::variant;
};

struct GridLoop {
  Var var = -1;
  view::Form extent;                      // over sizes
  bool descending = false;                // start with the last: the largest blocks first
  bool operator==(const GridLoop&) const = default;
};

struct Kernel {
  std::string name;
  std::vector<GridLoop> grid;             // empty: one block
  Block body;
  std::string comment;                    // which nodes and which schedule
  bool operator==(const Kernel&) const = default;
};

// A size is bound by the caller, or, with a definition, computed from earlier ones at launch. The size named "threads"
// is what the caller allows.
struct SizeDecl {
  std::string name;
  scalar::Expr definition;                // I64 over earlier sizes, or invalid
  bool operator==(const SizeDecl&) const = default;
};

struct Program {
  std::string name;
  scalar::ArenaRef arena = std::make_shared<scalar::Arena>();
  std::vector<SizeDecl> sizes;
  std::vector<Buffer> buffers;            // parameters in signature order first
  std::vector<std::string> variables;     // names, for printing; uniqueness is not required
  std::vector<Kernel> kernels;            // launched in order
  std::vector<Assert> requirements;       // checked before the first launch (sizes only)
};

}  // namespace lemma::tile
