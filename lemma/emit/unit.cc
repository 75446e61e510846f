#include "lemma/emit/unit.h"

#include <bit>

#include "lemma/base/check.h"
#include "lemma/emit/literal.h"

namespace lemma::emit {

using scalar::DType;
using scalar::Kind;
using view::Atom;
using view::AtomKind;
using view::Form;

std::string c_type(Kind kind) {
  switch (kind) {
    case Kind::F64: return "double";
    case Kind::F32: return "float";
    case Kind::I64: return "int64_t";
    case Kind::I32: return "int32_t";
    case Kind::U64: return "uint64_t";
    case Kind::U32: return "uint32_t";
    case Kind::Bool: return "int32_t";
  }
  return "";
}

std::string c_type(DType type) {
  switch (type) {
    case DType::F64: return "double";
    case DType::F32: return "float";
    case DType::F16: case DType::BF16: case DType::U16: return "uint16_t";
    case DType::I64: return "int64_t";
    case DType::I32: return "int32_t";
    case DType::I16: return "int16_t";
    case DType::I8: return "int8_t";
    case DType::U64: return "uint64_t";
    case DType::U32: return "uint32_t";
    case DType::F8E4M3: case DType::F8E5M2: case DType::U8: case DType::I4: case DType::U4: case DType::Bool:
      return "uint8_t";
  }
  return "";
}

const char* vector_suffix(Kind kind) {
  if (kind == Kind::F32) return "vf";
  return kind == Kind::U32 ? "vu" : "vi";
}

std::string vector_type(Kind kind) { return std::string("lm_") + vector_suffix(kind); }

Unit::Unit(const tile::Program& p, const COptions& o) : program(p), options(o), buffers_(p.buffers) {
  for (const tile::SizeDecl& s : p.sizes) size_names_.push_back(names_.take("z_", s.name));
  for (const tile::Buffer& b : p.buffers) buffer_names_.push_back(names_.take("b_", b.name));
  for (const std::string& v : p.variables) var_names_.push_back(names_.take("v_", v));
  ranges_.resize(p.variables.size(), view::Range{0, std::nullopt});
}

int Unit::add_buffer(tile::Buffer buffer) {
  buffer_names_.push_back(names_.take("t_", buffer.name));
  buffers_.push_back(std::move(buffer));
  return buffer_count() - 1;
}

int Unit::add_alias(int b, DType type) {
  tile::Buffer alias = buffer(b);
  alias.type = type;
  buffer_names_.push_back(raw_buffer_name(b));
  buffers_.push_back(std::move(alias));
  alias_of_[buffer_count() - 1] = b;
  return buffer_count() - 1;
}

tile::Var Unit::add_variable(const std::string& name) {
  var_names_.push_back(names_.take("u_", name));
  ranges_.push_back({0, std::nullopt});
  return tile::Var(var_names_.size()) - 1;
}

const std::string& Unit::size_name(int s) {
  used_sizes.insert(s);
  return size_names_[size_t(s)];
}

const std::string& Unit::buffer_name(int b) {
  const auto alias = alias_of_.find(b);
  used_buffers.insert(alias == alias_of_.end() ? b : alias->second);
  return buffer_names_[size_t(b)];
}

void Unit::set_range(tile::Var v, const view::Range& range) { ranges_[size_t(v)] = range; }

view::Range Unit::range_of(const Atom& atom) const {
  if (atom.kind == AtomKind::Index && size_t(atom.id) < ranges_.size()) return ranges_[size_t(atom.id)];
  if (atom.kind == AtomKind::Size) return {0, std::nullopt};
  return {};
}

Form Unit::simplify(const Form& form) const {
  return view::simplify(form, [&](const Atom& a) { return range_of(a); });
}

namespace {

Form round_up(const Form& f, int64_t to) { return to <= 1 ? f : Form::ceil_div(f, Form(to)) * Form(to); }

}  // namespace

Form Unit::element_count(int b) const {
  const tile::Buffer& buffer = this->buffer(b);
  const size_t rank = buffer.extents.size();
  Form count = 1;
  for (size_t d = 0; d < rank; ++d) {
    Form extent = buffer.extents[d];
    if (buffer.layout.kind == tile::LayoutKind::Panels) {
      if (d + 1 == rank) extent = round_up(extent, buffer.layout.width);
      if (d + 2 == rank) extent = round_up(extent, buffer.layout.interleave);
    } else if (d + 1 == rank && buffer.layout.pad != 0 && rank > 1) {
      extent = extent + Form(buffer.layout.pad);
    }
    count = count * extent;
  }
  return count;
}

Form Unit::offset(int b, const std::vector<Form>& coords) const {
  const tile::Buffer& buffer = this->buffer(b);
  const size_t rank = buffer.extents.size();
  LEMMA_CHECK(coords.size() == rank, "an access has not one coordinate per dimension");
  Form out = 0;
  if (!buffer.strides.empty()) {
    for (size_t d = 0; d < rank; ++d) out = out + coords[d] * buffer.strides[d];
    return out;
  }
  if (buffer.layout.kind == tile::LayoutKind::RowMajor) {
    Form stride = 1;
    for (size_t d = rank; d-- > 0;) {
      out = out + coords[d] * stride;
      stride = stride * (d + 1 == rank && rank > 1 ? buffer.extents[d] + Form(buffer.layout.pad) : buffer.extents[d]);
    }
    return out;
  }
  LEMMA_CHECK(rank >= 2, "a panel layout needs two dimensions");
  const Form width = buffer.layout.width, group = buffer.layout.interleave;
  const Form rows = round_up(buffer.extents[rank - 2], buffer.layout.interleave);
  const Form columns = round_up(buffer.extents[rank - 1], buffer.layout.width);
  const Form k = coords[rank - 2], n = coords[rank - 1];
  const Form panel = simplify(Form::floor_div(n, width)), pair = simplify(Form::floor_div(k, group));
  out = panel * rows * width + pair * width * group + (n - panel * width) * group + (k - pair * group);
  Form stride = rows * columns;
  for (size_t d = rank - 2; d-- > 0;) {
    out = out + coords[d] * stride;
    stride = stride * buffer.extents[d];
  }
  return out;
}

std::string Unit::atom_text(const Atom& atom, const Frame& frame) {
  switch (atom.kind) {
    case AtomKind::Size: return size_name(atom.id);
    case AtomKind::Index: {
      const auto it = frame.vars.find(atom.id);
      const std::string text = it != frame.vars.end() ? it->second : var_name(atom.id);
      return !frame.lane.empty() && atom.id == frame.lane_var ? "(" + text + " + " + frame.lane + ")" : text;
    }
    case AtomKind::Data: {
      LEMMA_CHECK(size_t(atom.id) < frame.reads.size(), "a form uses a read that is not made yet");
      const Value& value = frame.reads[size_t(atom.id)];
      const std::string text = value.varying ? "lm_get(" + value.text + ", " + frame.lane + ")" : value.text;
      // A bool across lanes is a mask of ones; as a number it is 1.
      if (frame.read_kinds[size_t(atom.id)] == scalar::Kind::Bool) return "(int64_t)(" + text + " != 0)";
      return "(int64_t)" + text;
    }
    case AtomKind::Floor: break;
  }
  const Form& numerator = atom.floor->numerator;
  const Form& denominator = atom.floor->denominator;
  const auto ranges = [&](const Atom& a) { return range_of(a); };
  const view::Range n = view::range(numerator, ranges), d = view::range(denominator, ranges);
  const std::string top = form_text(numerator, frame), bottom = form_text(denominator, frame);
  // Both known not to be negative: an unsigned division, which a constant turns into a shift or a product.
  if (n.low && *n.low >= 0 && d.low && *d.low > 0) return "(int64_t)((uint64_t)(" + top + ") / (uint64_t)(" + bottom + "))";
  return "lm_floordiv_i64(" + top + ", " + bottom + ")";
}

std::string Unit::form_text(const Form& form, const Frame& frame) {
  std::string out;
  // The constant comes first in a form; people read it last.
  std::vector<const view::Term*> order;
  for (const view::Term& t : form.terms()) {
    if (!t.factors.empty()) order.push_back(&t);
  }
  for (const view::Term& t : form.terms()) {
    if (t.factors.empty()) order.push_back(&t);
  }
  for (const view::Term* t : order) {
    int64_t c = t->coefficient;
    const bool negative = c < 0 && c != INT64_MIN;
    if (out.empty()) {
      if (negative) out += "-";
    } else {
      out += negative ? " - " : " + ";
    }
    if (negative) c = -c;
    std::string product;
    if (c != 1 || t->factors.empty()) product = integer_literal(c);
    for (const Atom& a : t->factors) product += (product.empty() ? "" : " * ") + atom_text(a, frame);
    out += product;
  }
  return out.empty() ? "0" : out;
}

std::string Unit::condition(const view::Formula& formula, const Frame& frame) {
  if (formula.is_always()) return "1";
  if (formula.is_never()) return "0";
  std::string out;
  for (const view::Conjunction& c : formula.cases()) {
    std::string all;
    for (const view::Constraint& k : c) {
      all += std::string(all.empty() ? "" : " && ") + form_text(k.form, frame) +
             (k.relation == view::Relation::Zero ? " == 0" : " >= 0");
    }
    if (all.empty()) all = "1";
    out += out.empty() ? all : " || " + all;
    if (formula.cases().size() > 1 && c.size() > 1) {
      out = out.substr(0, out.size() - all.size()) + "(" + all + ")";
    }
  }
  return out;
}

bool varies(const Form& form, const Frame& frame) {
  if (frame.lane_var < 0) return false;
  if (form.uses(AtomKind::Index, frame.lane_var)) return true;
  for (int r : form.ids(AtomKind::Data)) {
    if (size_t(r) < frame.reads.size() && frame.reads[size_t(r)].varying) return true;
  }
  return false;
}

bool varies(const view::Formula& formula, const Frame& frame) {
  for (const view::Conjunction& c : formula.cases()) {
    for (const view::Constraint& k : c) {
      if (varies(k.form, frame)) return true;
    }
  }
  return false;
}

std::string Unit::load(int b, const std::string& offset) {
  const std::string& name = buffer_name(b);
  const std::string element = name + "[" + offset + "]";
  switch (buffer(b).type) {
    case DType::F64: case DType::F32: case DType::I64: case DType::I32: case DType::U64: case DType::U32: return element;
    case DType::F16: return "lm_decode_f16_f32(" + element + ")";
    case DType::BF16: return "lm_decode_bf16_f32(" + element + ")";
    case DType::F8E4M3: return "lm_decode_f8e4m3_f32(" + element + ")";
    case DType::F8E5M2: return "lm_decode_f8e5m2_f32(" + element + ")";
    case DType::I16: case DType::I8: return "(int32_t)" + element;
    case DType::U16: case DType::U8: return "(uint32_t)" + element;
    case DType::U4: return "lm_load4(" + name + ", " + offset + ")";
    case DType::I4: return "lm_sign4(lm_load4(" + name + ", " + offset + "))";
    case DType::Bool: return "(int32_t)(" + element + " != 0)";
  }
  return "";
}

void Unit::store(int b, const std::string& offset, const std::string& value) {
  const std::string& name = buffer_name(b);
  const std::string element = name + "[" + offset + "]";
  switch (buffer(b).type) {
    case DType::F64: case DType::F32: case DType::I64: case DType::I32: case DType::U64: case DType::U32:
      return out.line(element + " = " + value + ";");
    case DType::F16: return out.line(element + " = (uint16_t)lm_encode_f16_f32(" + value + ");");
    case DType::BF16: return out.line(element + " = (uint16_t)lm_encode_bf16_f32(" + value + ");");
    case DType::F8E4M3: return out.line(element + " = (uint8_t)lm_encode_f8e4m3_f32(" + value + ");");
    case DType::F8E5M2: return out.line(element + " = (uint8_t)lm_encode_f8e5m2_f32(" + value + ");");
    case DType::I16: case DType::I8: case DType::U16: case DType::U8:
      return out.line(element + " = (" + c_type(buffer(b).type) + ")(" + value + ");");
    case DType::U4: case DType::I4:
      return out.line("lm_store4(" + name + ", " + offset + ", (uint32_t)(" + value + "));");
    case DType::Bool: return out.line(element + " = (uint8_t)((" + value + ") != 0);");
  }
}

}  // namespace lemma::emit
