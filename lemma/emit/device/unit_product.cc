// Products whose accumulator is in registers.
#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/emit/device/registers.h"
#include "lemma/layout/algebra.h"
#include "lemma/layout/bits.h"
#include "lemma/layout/fragment.h"
#include "lemma/tile/fragments.h"
#include "lemma/tile/matrix_unit.h"

namespace lemma::emit::device {

using layout::Axis;
using layout::Layout;
using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using tile::Access;
using tile::Gemm;

namespace {

// One operand in shared memory: where each lane's row of 16 bytes begins, for every fragment.
//
// A row-major offset in the tile is linear over the bits of the lane, the warp and the fragment's numbers, and so is the
// place in memory. What the lane and warp give is one variable; what a fragment gives is known: bits that the
// variable never has are added, others flipped.
class Operand {
 public:
  Operand(Text& text, const Access& access, Scope& scope) : text_(text), access_(access) {
    const tile::Buffer& buffer = text.buffer(access.buffer);
    const size_t rank = buffer.extents.size();
    rows_ = *buffer.extents[rank - 2].constant();
    columns_ = *buffer.extents[rank - 1].constant();
    if (buffer.hints.placed) {
      places_ = memory_columns(*buffer.hints.placed);
    } else {
      for (int64_t i = 1; i < rows_ * columns_; i *= 2) places_.push_back(uint64_t(i));
    }
    Access first = access;
    first.coords[rank - 2] = view::Form(0);
    first.coords[rank - 1] = view::Form(0);
    begin_ = text.form(text.offset(access.buffer, first.coords), scope);
  }

  // Per bit of the lane and of the warp: row and column.
  using Steps = std::vector<std::pair<int64_t, int64_t>>;
  void lanes(const Steps& lane, const Steps& warp) {
    const auto places = [&](const Steps& steps) {
      std::vector<uint64_t> out;
      for (const auto& [row, column] : steps) out.push_back(place(row, column));
      for (uint64_t p : out) mask_ |= p;
      return out;
    };
    base_ = text_.fresh("o");
    const std::string own = linear_text("lm_lane", places(lane)), all = linear_text("lm_warp", places(warp));
    text_.define("int", base_, own + " ^ " + all);
    begin_name_ = text_.fresh("o");
    text_.define("int", begin_name_, begin_);
  }

  std::string at(int64_t row, int64_t column) {
    const uint64_t p = place(row, column), flipped = p & mask_, added = p & ~mask_;
    std::string& name = flips_[flipped];
    if (name.empty()) {
      name = text_.fresh("o");
      text_.define("int", name, begin_name_ + " + (" + base_ + " ^ " + std::to_string(flipped) + ")");
    }
    return name + (added ? " + " + std::to_string(added) : "");
  }
  const std::string& name() const { return text_.buffer_names.at(access_.buffer); }

 private:
  uint64_t place(int64_t row, int64_t column) const { return layout::combine(places_, uint64_t(row * columns_ + column)); }

  Text& text_;
  const Access& access_;
  int64_t rows_ = 0, columns_ = 0;
  std::vector<uint64_t> places_;
  std::string begin_, begin_name_, base_;
  uint64_t mask_ = 0;
  std::map<uint64_t, std::string> flips_;
};

std::string_view instruction(DType operand) {
  switch (operand) {
    case DType::BF16: return "lm_mma_m16n8k16_bf16";
    case DType::F16: return "lm_mma_m16n8k16_f16";
    default: return "lm_mma_m16n8k32_s8";
  }
}

class UnitProduct {
 public:
  UnitProduct(Text& text, const Gemm& gemm, const tile::MatrixUnit& unit) : text_(text), g_(gemm), unit_(unit) {
    const Layout& acc = *text.buffer(gemm.acc.buffer).hints.placed;
    for (const layout::Digit& digit : acc[Axis::Warp]) warp_.push_back({digit.step[0], digit.step[1]});
    int rows = 0, columns = 0;
    const auto& registers = acc[Axis::Register];
    for (size_t i = 2; i < registers.size(); ++i) (registers[i].step[0] ? rows : columns) += 1;
    m_ = 1 << rows;
    n_ = 1 << columns;
  }

  void write(Scope& scope) {
    const std::string acc = text_.buffer_names.at(g_.acc.buffer);
    text_.out.open("");
    if (!g_.accumulate) {
      text_.out.line("LM_UNROLL");
      text_.out.line("for (int i = 0; i < " + std::to_string(m_ * n_ * 4) + "; ++i) " + acc + "[i] = 0;");
    }
    const bool from_registers = text_.held.at(g_.a.buffer) == Held::Registers;
    const bool ta = !from_registers && tile::operand_place(g_.a, g_.m.var, g_.k.var)->transposed;
    const bool tb = tile::operand_place(g_.b, g_.k.var, g_.n.var)->transposed;
    std::optional<Operand> a;
    if (!from_registers) a.emplace(text_, g_.a, scope);
    Operand b(text_, g_.b, scope);
    const int64_t chunk = 128 / scalar::bits(unit_.operand);  // elements of a row of 16 bytes
    // Fragment (i, kk) of a: lanes 0-15 give its rows, the upper half the next 16 bytes; transposed, memory's rows run
    // along k. Fragments (j, kk) and (j + 1, kk) of b come together.
    using Steps = Operand::Steps;
    Steps rows_first, warp_rows, warp_columns;
    for (const auto& [row, column] : warp_) {
      warp_rows.push_back(ta ? std::pair<int64_t, int64_t>{0, row} : std::pair<int64_t, int64_t>{row, 0});
      warp_columns.push_back(tb ? std::pair<int64_t, int64_t>{column, 0} : std::pair<int64_t, int64_t>{0, column});
    }
    if (a) {
      a->lanes(ta ? Steps{{1, 0}, {2, 0}, {4, 0}, {0, 8}, {8, 0}} : Steps{{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, chunk}}, warp_rows);
    }
    b.lanes(tb ? Steps{{1, 0}, {2, 0}, {4, 0}, {0, chunk}, {8, 0}} : Steps{{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}}, warp_columns);
    const std::string fa = text_.fresh("fa"), fb = text_.fresh("fb");
    if (a) text_.out.line("unsigned " + fa + "[" + std::to_string(4 * m_) + "];");
    text_.out.line("unsigned " + fb + "[4];");
    const int64_t steps = *g_.k.extent.constant() / unit_.k;
    for (int64_t kk = 0; kk < steps; ++kk) {
      const int64_t depth = kk * unit_.k;
      for (int i = 0; a && i < m_; ++i) {
        const std::string at = ta ? a->at(depth, 16 * i) : a->at(16 * i, depth);
        text_.out.line("lm_ldmatrix_x4" + std::string(ta ? "_trans" : "") + "(" + fa + " + " + std::to_string(4 * i) + ", " + a->name() + ", " + at + ");");
      }
      for (int j = 0; j < n_; j += 2) {
        const std::string at = tb ? b.at(8 * j, depth) : b.at(depth, 8 * j);
        text_.out.line("lm_ldmatrix_x4" + std::string(tb ? "" : "_trans") + "(" + fb + ", " + b.name() + ", " + at + ");");
        for (int i = 0; i < m_; ++i) {
          const std::string left = a ? fa + " + " + std::to_string(4 * i)
                                     : text_.buffer_names.at(g_.a.buffer) + " + " + std::to_string((i * steps + kk) * 4);
          for (int half = 0; half < 2; ++half) {
            text_.out.line(std::string(instruction(unit_.operand)) + "(" + acc + " + " + std::to_string((i * n_ + j + half) * 4) + ", " + left + ", " + fb +
                           (half ? " + 2" : "") + ");");
          }
        }
      }
    }
    text_.out.close();
  }

 private:
  Text& text_;
  const Gemm& g_;
  const tile::MatrixUnit& unit_;
  std::vector<std::pair<int64_t, int64_t>> warp_;  // row and column of each warp bit
  int m_ = 1, n_ = 1;                              // fragments of a warp
};

// Every thread sums the elements it holds: a column of a and a row of b at a time.
void write_elements(Text& text, const Gemm& g, Scope& outer) {
  const tile::Buffer& acc = text.buffer(g.acc.buffer);
  const Kind kind = scalar::kind_of(acc.type);
  const std::string type(text.type(kind)), name = text.buffer_names.at(g.acc.buffer);
  const Layout& layout = *acc.hints.placed;
  auto whole = std::make_shared<Round>();
  whole->points = layout;
  whole->vars = {g.m.var, g.n.var};
  text.out.open("");
  if (!g.accumulate) {
    text.out.line("LM_UNROLL");
    text.out.line("for (int i = 0; i < " + std::to_string(register_count(acc)) + "; ++i) " + name + "[i] = 0;");
  }
  Scope scope = outer;
  std::vector<tile::Range> sums = g.taps;
  sums.push_back(g.k);
  const int loops = open_loops(text, sums, scope);
  std::vector<std::string> sides;
  for (int side = 0; side < 2; ++side) {
    auto part = std::make_shared<Round>();
    part->points = tile::project(layout, {side});
    part->vars = {side == 0 ? g.m.var : g.n.var};
    sides.push_back(text.fresh("x"));
    text.out.line(type + " " + sides.back() + "[" + std::to_string(layout::count(part->points, Axis::Register)) + "];");
    Scope at = scope;
    const int opened = open_round(text, part, at, false);
    const Access& access = side == 0 ? g.a : g.b;
    text.reads({access}, at, {true});
    const Expr value = scalar::cast(scalar::arg(text.arena, scalar::kind_of(text.buffer(access.buffer).type), 0), kind);
    text.out.line(sides.back() + "[" + at.round->reg + "] = " + text.value(value, at) + ";");
    text.out.close(opened);
  }
  Scope at = scope;
  const int opened = open_round(text, whole, at, false);
  const auto place = [&](tile::Var v) { return text.register_place({-1, {view::Form::index(v)}, {}}, at); };
  text.out.line(name + "[" + at.round->reg + "] += " + sides[0] + "[" + place(g.m.var) + "] * " + sides[1] + "[" + place(g.n.var) + "];");
  text.out.close(opened);
  text.out.close(loops);
  text.out.close();
}

}  // namespace

base::Result<void> write_register_gemm(Text& text, const Gemm& gemm, Scope& scope) {
  if (!gemm.comment.empty()) text.out.line("/* " + gemm.comment + " */");
  const auto unit = text.options.matrix_units ? tile::unit_of(text.program, gemm) : std::nullopt;
  // A unit's operands are in shared memory or laid out for it.
  const auto fits = [&](const Access& a, layout::Operand operand) {
    if (text.held.at(a.buffer) != Held::Registers) return text.held.at(a.buffer) == Held::Shared;
    const auto fragment = layout::mma(operand, scalar::bits(unit->operand));
    return fragment.ok() && layout::divide(*text.buffer(a.buffer).hints.placed, *fragment).has_value();
  };
  if (unit && fits(gemm.a, layout::Operand::A) && fits(gemm.b, layout::Operand::B) && fits(gemm.acc, layout::Operand::Accumulator)) {
    UnitProduct(text, gemm, *unit).write(scope);
    return {};
  }
  if (text.held.at(gemm.a.buffer) == Held::Registers) {
    return base::unsupported("the product '" + gemm.comment + "': its left operand is in registers, but there is no room for its right one in the " +
                             std::to_string(text.options.shared_bytes) + " bytes that a block shares", {}, "use smaller tiles");
  }
  write_elements(text, gemm, scope);
  return {};
}

}  // namespace lemma::emit::device
