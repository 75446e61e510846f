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

#include "lemma/layout/layout.h"
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

// What thread form makes of a buffer; C keeps it and does nothing with it.
struct BufferHints {
  int swizzle = 0;                        // bytes of a row that are swizzled, as in `layout swizzle 128`; 0: not stated
  std::optional<layout::Layout> placed = {};  // `layout "..."`: of a fragment, which register of which lane holds an
                                          // element; of a shared buffer, the place of an element of its last
                                          // dimensions (those before them are numbered row-major)
  int versions = 1;                       // copies that turns of a pipelined loop use one after another
  bool ring = false;                      // thread form: the first dimension is the turn of the loop that fills it,
                                          // modulo the versions; that loop synchronises it
  bool operator==(const BufferHints&) const = default;
};

struct Buffer {
  std::string name;
  scalar::DType type = scalar::DType::F32;
  Space space = Space::Input;
  std::vector<view::Form> extents;        // over sizes; of Shared, Fragment and Local over sizes too
  std::vector<view::Form> strides;        // of parameters that come strided: elements per dimension, over sizes;
                                          // empty: contiguous row-major
  Layout layout;
  BufferHints hints = {};
  std::optional<view::Form> low = {}, high = {}; // of an integer input: low <= value < high, over sizes; the caller's to keep
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
  bool async = false;                     // need not have arrived before something needs it
  bool operator==(const Copy&) const = default;
};

// to[i] = to[i] (op) from[i] for every i in the box, cast to the target's type; points outside either buffer are left
// out. Blocks may meet in a global target: each fold is atomic, in any order, or, `ordered`, in increasing order of a
// variable of the grid. Until the kernel (or the phase) ends, nothing else may touch what is combined into.
struct Combine {
  std::vector<Range> box;
  scalar::Op op = scalar::Op::Add;
  Access from, to;
  bool bulk = false;                      // by the tile, in one instruction where there is one
  bool async = false;
  std::optional<view::Form> ordered = {}; // an index of the grid
  bool operator==(const Combine&) const = default;
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
enum class Team : uint8_t { Any, Rows, Columns, Square };  // how warp groups split the result
struct Gemm {
  Range m, n, k;
  std::vector<Range> taps;
  Access a, b, acc;
  bool accumulate = true;
  std::string comment;
  Team team = Team::Any;
  bool operator==(const Gemm&) const = default;
};

enum class LoopKind : uint8_t { Serial, Unrolled, Pipelined };

// for var in begin .. end step `step`. `where`, over sizes, outer variables, var and its own `points`, is a promise: a
// turn for which no point satisfies it changes nothing that is read later. passes/clip_loops.h leaves such turns
// out and tells full ones; targets run them all yet. A pipelined loop has up to `depth` turns under way.
struct For {
  Var var = -1;
  scalar::Expr begin, end;                // I64 over sizes and outer variables
  int64_t step = 1;
  LoopKind kind = LoopKind::Serial;
  Block body;
  int depth = 1;                          // of a pipelined loop
  std::vector<Range> points;
  view::Formula where;
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
  bool assumed = false;                   // `assume`: a promise; only the interpreter looks
  bool operator==(const Assert&) const = default;
};

struct Print {                            // for debugging: `text` with each {} replaced by a value, one line a time
  std::vector<Access> reads;
  std::string text;
  std::vector<scalar::Expr> values;
  bool operator==(const Print&) const = default;
};

// Text of one dialect. $0, $1 ... stand for the pointers of `reads`, then of `writes`, then for `values`. Nothing else of
// the program may be touched; the interpreter and other dialects refuse it.
struct Extern {
  std::string dialect;                    // "c"
  std::vector<int> reads, writes;         // buffers
  std::vector<scalar::Expr> values;
  std::vector<std::string> lines;
  bool operator==(const Extern&) const = default;
};

// Every block of the kernel has finished the statements above before any goes on. Stands in a kernel's own block; lets
// and block-local buffers end here, the grid's variables go on.
struct Phase {
  bool operator==(const Phase&) const = default;
};

// ---- thread form ----
// What the passes of thread form add; the interpreter and C, where a block is one thread, do nothing at them.

// All threads of the block are here, and what each wrote before is seen by all after.
struct Barrier {
  bool operator==(const Barrier&) const = default;
};

// The asynchronous copies since the last commit become a group; groups arrive in order.
struct Commit {
  bool operator==(const Commit&) const = default;
};

// Until at most `pending` groups have not arrived: of the thread's own, so a barrier follows where others read them.
struct Wait {
  int pending = 0;
  bool operator==(const Wait&) const = default;
};

// Where a pipelined loop puts a statement, and which group of warps runs it; C ignores it.
struct Placement {
  std::optional<int> stage;               // how many turns later than its own it runs
  std::optional<int> order;               // among the statements of a turn
  std::string role = {};
  bool operator==(const Placement&) const = default;
};

using StmtVariant = std::variant<Let, Alloc, Copy, Map, Reduce, Scan, Gemm, For, If, Assert, Combine, Print, Extern, Phase,
                                 Barrier, Commit, Wait>;
struct Stmt : StmtVariant {
  using StmtVariant::StmtVariant;
  using variant = StmtVariant;
  Placement placement;
  friend bool operator==(const Stmt& a, const Stmt& b) {
    return static_cast<const StmtVariant&>(a) == static_cast<const StmtVariant&>(b) && a.placement == b.placement;
  }
};

struct GridLoop {
  Var var = -1;
  view::Form extent;                      // over sizes
  bool descending = false;                // start with the last: the largest blocks first
  bool operator==(const GridLoop&) const = default;
};

// How thread form runs a kernel's grid; C runs the plain grid.
struct KernelHints {
  bool persistent = false;                // as many workers as the machine has; each takes block after block
  int order_rows = 0;                     // blocks are taken in groups of this many rows; 0: row-major
  int threads = 0, warps = 0;             // of a block; 0: not stated
  bool synchronised = false;              // thread form: the barriers it needs stand in it
  bool operator==(const KernelHints&) const = default;
};

struct Kernel {
  std::string name;
  std::vector<GridLoop> grid;             // empty: one block
  Block body;
  std::string comment;                    // which nodes and which schedule
  KernelHints hints = {};
  bool operator==(const Kernel&) const = default;
};

// A size is bound by the caller, or, with a definition, computed from earlier ones at launch. The size named "threads"
// is what the caller allows.
struct SizeDecl {
  std::string name;
  scalar::Expr definition;                // I64 over earlier sizes, or invalid
  std::optional<int64_t> typical = {};       // for sampled inputs
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
