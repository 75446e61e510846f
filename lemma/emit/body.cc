#include "lemma/emit/body.h"

#include "lemma/base/check.h"
#include "lemma/emit/value.h"
#include "lemma/view/solve.h"

namespace lemma::emit {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;
using view::AtomKind;
using view::Form;
using view::Formula;

namespace {

Kind read_kind(const Unit& unit, const Access& access) { return scalar::kind_of(unit.buffer(access.buffer).type); }

// Marks the reads that read r's place or guard needs.
void close_over(const std::vector<Access>& reads, std::vector<bool>& used) {
  for (size_t r = reads.size(); r-- > 0;) {
    if (!used[r]) continue;
    for (const Form& c : reads[r].coords) {
      for (int q : c.ids(AtomKind::Data)) used[size_t(q)] = true;
    }
    for (int q : reads[r].guard.ids(AtomKind::Data)) used[size_t(q)] = true;
  }
}

std::vector<bool> reads_for_where(const BodyText& body) {
  std::vector<bool> used(body.reads->size(), false);
  for (int q : body.where->ids(AtomKind::Data)) used[size_t(q)] = true;
  close_over(*body.reads, used);
  return used;
}

void prepare(const Unit& unit, Frame& frame, const std::vector<Access>& reads) {
  frame.reads.resize(reads.size());
  frame.present.resize(reads.size());
  frame.read_kinds.resize(reads.size());
  for (size_t r = 0; r < reads.size(); ++r) frame.read_kinds[r] = read_kind(unit, reads[r]);
}

void scalar_read(Unit& unit, Frame& frame, const std::vector<Access>& reads, size_t r, const std::string& under) {
  const Access& access = reads[r];
  const std::string type = c_type(frame.read_kinds[r]), name = unit.fresh("r");
  const std::string offset = unit.form_text(unit.simplify(unit.offset(access.buffer, access.coords)), frame);
  std::string test = access.guard.is_always() ? "" : unit.condition(access.guard, frame);
  frame.present[r] = {"1", false};
  if (!test.empty()) {
    const std::string present = unit.fresh("p");
    unit.out.line("const int32_t " + present + " = " + test + ";");
    frame.present[r] = {present, false};
    test = present;
  }
  if (!under.empty()) test = test.empty() ? under : under + " && " + test;
  if (test.empty()) {
    unit.out.line("const " + type + " " + name + " = " + unit.load(access.buffer, offset) + ";");
  } else {
    unit.out.line(type + " " + name + " = 0;");
    unit.out.line("if (" + test + ") " + name + " = " + unit.load(access.buffer, offset) + ";");
  }
  frame.reads[r] = {name, false};
}

}  // namespace

std::vector<bool> used_reads(const BodyText& body) {
  std::vector<bool> used = reads_for_where(body);
  for (int q : body.coords) used[size_t(q)] = true;
  for (Expr e : scalar::reachable(body.roots)) {
    if ((e.is(Op::Arg) || e.is(Op::Present)) && size_t(e.payload()) < used.size()) used[size_t(e.payload())] = true;
  }
  close_over(*body.reads, used);
  return used;
}

void scalar_body(Unit& unit, const Frame& outer, const BodyText& body, const std::function<void(Frame&)>& inside,
                 const std::function<void(Frame&)>& outside) {
  Frame frame = outer;
  const std::vector<Access>& reads = *body.reads;
  const std::vector<bool> used = used_reads(body), early = reads_for_where(body);
  const size_t before = frame.reads.size();
  if (before < reads.size()) prepare(unit, frame, reads);
  std::string test;
  if (!body.where->is_always()) {
    if (body.where->uses(AtomKind::Data)) {
      test = unit.fresh("w");
      unit.out.line("int32_t " + test + " = " + unit.condition(without_data(*body.where), frame) + ";");
      for (size_t r = 0; r < reads.size(); ++r) {
        if (early[r]) scalar_read(unit, frame, reads, r, test);
      }
      unit.out.line(test + " = " + test + " && (" + unit.condition(*body.where, frame) + ");");
    } else {
      test = unit.condition(*body.where, frame);
    }
    unit.out.open("if (" + test + ")");
  }
  Frame within = frame;
  for (size_t r = 0; r < reads.size(); ++r) {
    if (used[r] && !(early[r] && !test.empty())) scalar_read(unit, within, reads, r, "");
  }
  inside(within);
  if (!body.where->is_always()) {
    if (outside) {
      unit.out.otherwise();
      Frame off = outer;
      outside(off);
    }
    unit.out.close();
  }
}

std::vector<bool> varying_reads(const Unit&, const BodyText& body, tile::Var lane_var) {
  const std::vector<Access>& reads = *body.reads;
  std::vector<bool> out(reads.size(), false);
  Frame frame;
  frame.lane_var = lane_var;
  for (size_t r = 0; r < reads.size(); ++r) {
    for (const Form& c : reads[r].coords) out[r] = out[r] || varies(c, frame);
    frame.reads.push_back({"", out[r]});
  }
  return out;
}

bool lanes_possible(const Unit& unit, const BodyText& body, tile::Var lane_var) {
  const std::vector<bool> used = used_reads(body), varying = varying_reads(unit, body, lane_var);
  std::vector<bool> differs = varying;
  Frame frame;
  frame.lane_var = lane_var;
  for (size_t r = 0; r < used.size(); ++r) {
    if (used[r] && varying[r] && scalar::is_wide(read_kind(unit, (*body.reads)[r]))) return false;
    frame.reads.push_back({"", varying[r]});
  }
  for (size_t r = 0; r < used.size(); ++r) {
    // Present differs where the guard does; Arg need not, but an overestimate only matters for wide reads.
    if (varies((*body.reads)[r].guard, frame) && !scalar::is_wide(read_kind(unit, (*body.reads)[r]))) differs[r] = true;
  }
  return can_vectorize(body.roots, lane_var, differs);
}

LaneBody::LaneBody(Unit& unit, const Frame& row, const BodyText& body, std::string extent, bool bounded)
    : unit_(unit), row_(row), body_(body), extent_(std::move(extent)), bounded_(bounded) {
  used_ = used_reads(body);
  varying_ = varying_reads(unit, body, row.lane_var);
  for_where_ = reads_for_where(body);
  without_data_ = without_data(*body.where);
  high_ = extent_;
  prepare(unit, row_, *body.reads);
  for (size_t r = 0; r < used_.size(); ++r) row_.reads[r].varying = varying_[r];
}

namespace {

// Whether every constraint is free of the lane variable or affine in it with a constant coefficient.
bool is_interval(const Formula& formula, const Frame& frame) {
  if (formula.cases().size() != 1) return false;
  for (const view::Constraint& k : formula.cases()[0]) {
    if (!varies(k.form, frame)) continue;
    const auto split = k.form.split(frame.lane_var);
    if (!split || varies(split->rest, frame)) return false;
    const auto c = split->coefficient.constant();
    if (!c || *c == INT64_MIN || (k.relation == view::Relation::Zero && *c != 1 && *c != -1)) return false;
  }
  return true;
}

}  // namespace

LaneBody::Interval LaneBody::interval(const Formula& formula, const Frame& frame, const std::string& extent) {
  Interval out;
  if (formula.is_always()) return out;
  out.everywhere = false;
  if (!is_interval(formula, frame)) {
    out.by_lane = true;
    return out;
  }
  out.low = unit_.fresh("low");
  out.high = unit_.fresh("high");
  unit_.out.line("int64_t " + out.low + " = 0, " + out.high + " = " + extent + ";");
  for (const view::Constraint& k : formula.cases()[0]) {
    const bool zero = k.relation == view::Relation::Zero;
    if (!varies(k.form, frame)) {
      unit_.out.line("if (!(" + unit_.form_text(k.form, frame) + (zero ? " == 0" : " >= 0") + ")) " + out.high + " = 0;");
      continue;
    }
    const auto split = k.form.split(frame.lane_var);
    const int64_t c = *split->coefficient.constant();
    const auto raise = [&](const Form& f) {
      unit_.out.line(out.low + " = lm_max_i64(" + out.low + ", " + unit_.form_text(f, frame) + ");");
    };
    const auto lower = [&](const Form& f) {
      unit_.out.line(out.high + " = lm_min_i64(" + out.high + ", " + unit_.form_text(f, frame) + ");");
    };
    const Form point = c > 0 ? -Form::floor_div(split->rest, c) : Form::floor_div(split->rest, -c);
    if (zero || c > 0) raise(point);
    if (zero || c < 0) lower(point + Form(1));
  }
  return out;
}

std::string LaneBody::lane_test(const Formula& formula, const Frame& frame) {
  const std::string name = unit_.fresh("m"), lane = unit_.fresh("l");
  unit_.out.line("lm_vi " + name + " = lm_splat_vi(0);");
  Frame inner = frame;
  inner.lane = lane;
  unit_.out.line("for (int " + lane + " = 0; " + lane + " < LM_LANES; ++" + lane + ") lm_set(" + name + ", " + lane +
                 ", -(int32_t)(" + unit_.condition(formula, inner) + "));");
  return name;
}

void LaneBody::row() {
  where_ = interval(without_data_, row_, extent_);
  if (!where_.everywhere && !where_.by_lane && bounded_) {
    low_ = where_.low;
    high_ = where_.high;
  }
  data_left_ = body_.where->uses(AtomKind::Data);
  bool uniform = bounded_ && data_left_ && !where_.by_lane && is_interval(*body_.where, row_);
  for (size_t r = 0; r < used_.size(); ++r) uniform = uniform && !(for_where_[r] && (varying_[r] || varies((*body_.reads)[r].guard, row_)));
  if (uniform) {
    const std::string some = low_ + " < " + high_;
    for (size_t r = 0; r < used_.size(); ++r) {
      if (for_where_[r]) scalar_read(unit_, row_, *body_.reads, r, some);
    }
    const Interval refined = interval(*body_.where, row_, extent_);
    unit_.out.line("if (!(" + some + ")) " + refined.high + " = 0;");
    low_ = refined.low;
    high_ = refined.high;
    data_left_ = false;
  }
  hoist_ = bounded_ && !where_.by_lane && !data_left_;
  guards_.assign(used_.size(), {});
  for (size_t r = 0; r < used_.size(); ++r) {
    if (!used_[r]) continue;
    const Access& access = (*body_.reads)[r];
    bool known = true;  // the reads its place and guard need are made
    for (const Form& c : access.coords) {
      for (int q : c.ids(AtomKind::Data)) known = known && !row_.reads[size_t(q)].text.empty();
    }
    for (int q : access.guard.ids(AtomKind::Data)) known = known && !row_.reads[size_t(q)].text.empty();
    if (varies(access.guard, row_)) {
      bool uses_varying = access.guard.uses(AtomKind::Data);
      if (!uses_varying) guards_[r] = interval(access.guard, row_, extent_);
      else guards_[r] = {"", "", false, true};
    } else if (hoist_ && known && !varying_[r] && row_.reads[r].text.empty()) {
      // A lane loop without trips must not read at all.
      scalar_read(unit_, row_, *body_.reads, r, low_ + " < " + high_);
    }
  }
}

std::string LaneBody::both(const std::string& a, const std::string& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const std::string name = unit_.fresh("m");
  unit_.out.line("const lm_vi " + name + " = " + a + " & " + b + ";");
  return name;
}

void LaneBody::read(Frame& frame, size_t r, const LaneMask& lanes, bool) {
  const Access& access = (*body_.reads)[r];
  const tile::Buffer& buffer = unit_.buffer(access.buffer);
  const Kind kind = frame.read_kinds[r];
  const Form place = unit_.simplify(unit_.offset(access.buffer, access.coords));
  LaneMask mask = lanes;
  frame.present[r] = {"1", false};
  std::string under;       // a test all lanes share
  std::string all_inside;  // true where no lane is masked off, which is the common case
  if (varies(access.guard, frame)) {
    std::string guard;
    if (guards_[r].by_lane) {
      guard = lane_test(access.guard, frame);
    } else {
      const std::string at = unit_.form_text(Form::index(frame.lane_var), frame);
      guard = "lm_range(" + at + ", " + guards_[r].low + ", " + guards_[r].high + ")";
      if (mask.mask.empty() && mask.count.empty()) all_inside = guards_[r].low + " <= " + at + " && " + at + " + LM_LANES <= " + guards_[r].high;
    }
    frame.present[r] = {guard, true};
    if (all_inside.empty()) mask.mask = both(mask.mask, guard);
    else mask.mask = guard;
  } else if (!access.guard.is_always()) {
    under = unit_.fresh("p");
    unit_.out.line("const int32_t " + under + " = " + unit_.condition(access.guard, frame) + ";");
    frame.present[r] = {under, false};
  }
  const std::string name = unit_.fresh("r");
  if (!varying_[r]) {
    if (!mask.mask.empty()) {
      std::string live = mask.mask;
      if (!mask.count.empty()) live = both(live, "lm_first(" + mask.count + ")");
      under += (under.empty() ? "" : " && ") + ("lm_any(" + live + ")");
    }
    unit_.out.line(c_type(kind) + " " + name + " = 0;");
    unit_.out.line((under.empty() ? "" : "if (" + under + ") ") + name + " = " +
                   unit_.load(access.buffer, unit_.form_text(place, frame)) + ";");
    frame.reads[r] = {name, false};
    return;
  }
  const std::string type = vector_type(kind);
  unit_.out.line(type + " " + name + " = lm_splat_" + vector_suffix(kind) + "(0);");
  if (!under.empty()) unit_.out.open("if (" + under + ")");
  const auto split = place.split(frame.lane_var);
  const bool unit_stride = split && split->coefficient == Form(1) && !varies(split->rest, frame) && scalar::bits(buffer.type) >= 8;
  if (!mask.mask.empty() && !mask.count.empty()) mask = {both(mask.mask, "lm_first(" + mask.count + ")"), ""};
  if (unit_stride) {
    const std::string at = unit_.buffer_name(access.buffer) + " + (" + unit_.form_text(place, frame) + ")";
    const char* form = !mask.mask.empty() ? "m" : !mask.count.empty() ? "n" : "";
    const std::string tail = !mask.mask.empty() ? ", " + mask.mask : !mask.count.empty() ? ", " + mask.count : "";
    const auto load = [&](const std::string& width, const std::string& cast) {
      const std::string masked = "lm_load" + std::string(form) + "_" + width + "(" + cast + at + tail + ")";
      if (all_inside.empty()) return masked;
      return "((" + all_inside + ") ? lm_load_" + width + "(" + cast + at + ") : " + masked + ")";
    };
    std::string value;
    switch (buffer.type) {
      case DType::F32: value = load("f32", ""); break;
      case DType::I32: value = load("i32", ""); break;
      case DType::U32: value = load("u32", ""); break;
      case DType::F16: value = "lm_decode_f16_vf(" + load("h", "") + ")"; break;
      case DType::BF16: value = "lm_decode_bf16_vf(" + load("h", "") + ")"; break;
      case DType::F8E4M3: value = "lm_decode_f8e4m3_vf(" + load("b", "") + ")"; break;
      case DType::F8E5M2: value = "lm_decode_f8e5m2_vf(" + load("b", "") + ")"; break;
      case DType::U16: value = load("h", ""); break;
      case DType::U8: value = load("b", ""); break;
      case DType::I16: value = "(((lm_vi)(" + load("h", "(const uint16_t*)") + " << 16)) >> 16)"; break;
      case DType::I8: value = "(((lm_vi)(" + load("b", "(const uint8_t*)") + " << 24)) >> 24)"; break;
      case DType::Bool: value = "(lm_vi)(" + load("b", "") + " != 0)"; break;
      default: LEMMA_CHECK(false, "a 64-bit read in lanes");
    }
    unit_.out.line(name + " = " + value + ";");
  } else {
    const std::string lane = unit_.fresh("l");
    Frame inner = frame;
    inner.lane = lane;
    const std::string limit = mask.count.empty() ? "LM_LANES" : mask.count;
    const std::string value = unit_.load(access.buffer, unit_.form_text(place, inner));
    unit_.out.line("for (int " + lane + " = 0; " + lane + " < " + limit + "; ++" + lane + ") " +
                   (mask.mask.empty() ? "" : "if (lm_get(" + mask.mask + ", " + lane + ")) ") + "lm_set(" + name + ", " +
                   lane + ", " + (kind == Kind::Bool ? "-(" + value + ")" : value) + ");");
  }
  if (!under.empty()) unit_.out.close();
  frame.reads[r] = {name, true};
}

void LaneBody::lanes(const std::map<tile::Var, std::string>& vars, const std::string& count,
                     const std::function<void(Frame&, const LaneMask&)>& inside) {
  Frame frame = row_;
  for (const auto& [v, text] : vars) frame.vars[v] = text;
  for (auto it = frame.known.begin(); it != frame.known.end();) {
    it = it->second.varying ? frame.known.erase(it) : std::next(it);
  }
  LaneMask mask{"", count};
  if (!where_.everywhere) {
    if (where_.by_lane) {
      mask.mask = lane_test(without_data_, frame);
    } else if (!bounded_) {
      mask.mask = unit_.fresh("m");
      unit_.out.line("const lm_vi " + mask.mask + " = lm_range(" + unit_.form_text(Form::index(frame.lane_var), frame) +
                     ", " + where_.low + ", " + where_.high + ");");
    }
  }
  if (data_left_) {
    for (size_t r = 0; r < used_.size(); ++r) {
      if (for_where_[r]) read(frame, r, mask, false);
    }
    mask.mask = both(mask.mask, lane_test(*body_.where, frame));
  }
  for (size_t r = 0; r < used_.size(); ++r) {
    if (used_[r] && !(data_left_ && for_where_[r]) && frame.reads[r].text.empty()) read(frame, r, mask, false);
  }
  inside(frame, mask);
}

}  // namespace lemma::emit
