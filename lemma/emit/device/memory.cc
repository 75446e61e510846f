// Loads and stores of elements, in pointers and in words.
#include <algorithm>

#include "lemma/base/check.h"
#include "lemma/emit/device/expand.h"
#include "lemma/emit/device/registers.h"
#include "lemma/emit/device/scope.h"

namespace lemma::emit::device {

using scalar::DType;
using scalar::Expr;
using scalar::Kind;
using scalar::Op;
using tile::Access;

namespace {

bool is_narrow_float(DType type) { return scalar::is_float(type) && scalar::bits(type) <= 16; }
// What a buffer's element is before decoding.
Kind raw_kind(DType type) { return is_narrow_float(type) ? Kind::U32 : scalar::kind_of(type); }

std::string paren(const std::string& s) { return "(" + s + ")"; }

}  // namespace

int Text::add_shared(const std::string& name, DType t, int64_t count) {
  tile::Buffer buffer;
  buffer.name = name;
  buffer.type = t;
  buffer.space = tile::Space::Shared;
  buffer.extents = {view::Form(count)};
  buffers.push_back(std::move(buffer));
  const int id = int(buffers.size()) - 1;
  held[id] = Held::Shared;
  buffer_names[id] = prefix + "w_" + clean_identifier(name) + "_" + std::to_string(id);
  return id;
}

// The last two dimensions of a placed tile are swizzled, what stands before them numbers tiles.
std::string Text::place(const Access& access, const Scope& scope) {
  if (held.at(access.buffer) == Held::Registers) return register_place(access, scope);
  const tile::Buffer& buffer = this->buffer(access.buffer);
  if (held.at(access.buffer) != Held::Shared || !buffer.hints.placed) return form(offset(access.buffer, access.coords), scope);
  const size_t rank = access.coords.size(), inner = buffer.hints.placed->shape.size();
  std::vector<view::Form> outer = access.coords, within = access.coords;
  for (size_t d = 0; d < rank; ++d) (d < rank - inner ? within : outer)[d] = view::Form(0);
  const std::string at = fresh("o");
  define("int", at, form(offset(access.buffer, within), scope));
  const std::string placed = linear_text(at, memory_columns(*buffer.hints.placed));
  const view::Form first = offset(access.buffer, outer);
  return first == view::Form(0) ? placed : form(first, scope) + " + " + placed;
}

// Whether the buffer is seen as 32-bit words although the dialect has pointers: slices, and what threads exchange.
bool Text::by_words(int b) const { return held.at(b) == Held::Slice || atomic_buffers.count(b) > 0; }

// Word or element i of the buffer; a slice lies within a buffer of all slices.
std::string Text::element(int b, const std::string& i) const {
  const std::string& name = buffer_names.at(b);
  return held.at(b) == Held::Slice ? prefix + "slices[" + name + "_0 + (" + i + ")]" : name + "[" + i + "]";
}

// The element as its raw kind.
std::string Text::load(int b, const std::string& at) {
  const tile::Buffer& buffer = this->buffer(b);
  const std::string& name = buffer_names.at(b);
  const DType t = buffer.type;
  const std::string raw(type(raw_kind(t)));
  if (held.at(b) == Held::Registers) {
    if (!is_packed(buffer)) return name + "[" + at + "]";
    const std::string i = "(" + at + ")";
    return "((" + name + "[" + i + " >> 1] >> ((" + i + " & 1) * 16)) & 65535u)";
  }
  if (!dialect.words && by_words(b)) {
    const auto word = [&](const std::string& i) { return element(b, i); };
    if (scalar::bits(t) == 64) {
      const std::string high = word("2 * " + paren(at) + " + 1"), low = word("2 * " + paren(at));
      return t == DType::F64 ? "lm_as_double2(" + high + ", " + low + ")" : convert(dialect, raw, "lm_as_ulong2(" + high + ", " + low + ")");
    }
    if (t == DType::F32) return "lm_as_float(" + word(at) + ")";
    return t == DType::Bool ? "(" + word(at) + " != 0)" : convert(dialect, raw, word(at));
  }
  if (!dialect.words) {
    if (t == DType::U4 || t == DType::I4) {
      const std::string nibble = "(((uint)" + name + "[" + at + " >> 1] >> ((" + at + " & 1) * 4)) & 15u)";
      const std::string cuda = "(((unsigned int)" + name + "[" + at + " >> 1] >> ((" + at + " & 1) * 4)) & 15u)";
      const std::string& n = dialect.id == DialectId::Cuda ? cuda : nibble;
      return t == DType::U4 ? n : "(((int)(" + n + " << 28)) >> 28)";
    }
    if (t == DType::Bool) return "(" + name + "[" + at + "] != 0)";
    if (scalar::bits(t) < 32) return convert(dialect, raw, name + "[" + at + "]");
    return name + "[" + at + "]";
  }
  const bool atomic = dialect.id == DialectId::Wgsl && atomic_buffers.count(b);
  const auto word = [&](const std::string& i) { return atomic ? "atomicLoad(&" + element(b, i) + ")" : element(b, i); };
  const bool packed = held.at(b) == Held::Global;
  const int bits = scalar::bits(t);
  std::string w;
  if (bits == 64) {
    if (t == DType::F64) return "lm_as_double2(" + word("2 * " + paren(at) + " + 1") + ", " + word("2 * " + paren(at)) + ")";
    w = word(packed ? "2 * " + paren(at) : at);
  } else if (bits == 32 || !packed) {
    w = word(at);
  } else {
    const int per = 32 / bits, shift = per == 2 ? 1 : per == 4 ? 2 : 3;
    const std::string i = paren(at), mask = std::to_string(per - 1);
    w = "((" + word(i + " >> " + std::to_string(shift) + "u") + " >> (uint_of(" + i + " & " + mask + ") * " + std::to_string(bits) + "u)) & " +
        std::to_string((1u << bits) - 1) + "u)";
  }
  if (t == DType::F32) return "lm_as_float(" + w + ")";
  if (t == DType::Bool) return "(" + w + " != 0u)";
  if (is_narrow_float(t)) return w;
  const Kind k = scalar::kind_of(t);
  if (scalar::is_signed(k) && bits < 32) {
    const std::string by = std::to_string(32 - bits) + "u";
    return "(" + convert(dialect, type(k), "(" + w + " << " + by + ")") + " >> " + by + ")";
  }
  return convert(dialect, raw, w);
}

// The element's value from what its buffer holds.
std::string Text::decoded(DType t, const std::string& raw) {
  if (!is_narrow_float(t)) return raw;
  Scope inner;
  inner.reads = {raw};
  inner.present = {"true"};
  inner.kinds = {Kind::U32};
  return value(decode(scalar::arg(arena, Kind::U32, 0), t), inner);
}

// A read that was made as part of a vector: `element` is of the stored type.
void Text::made_read(Scope& scope, size_t read, int b, const std::string& element) {
  const DType t = buffer(b).type;
  scope.reads.resize(std::max(scope.reads.size(), read + 1));
  scope.present.resize(scope.reads.size());
  scope.kinds.resize(scope.reads.size(), Kind::F32);
  const std::string_view raw = type(raw_kind(t));
  const std::string name = fresh("r");
  define(raw, name, scalar::bits(t) < 32 ? convert(dialect, raw, element) : element);
  scope.kinds[read] = scalar::kind_of(t);
  scope.present[read] = "true";
  scope.reads[read] = decoded(t, name);
}

void Text::reads(const std::vector<Access>& accesses, Scope& scope, const std::vector<bool>& which) {
  scope.reads.resize(accesses.size());
  scope.present.resize(accesses.size());
  scope.kinds.resize(accesses.size(), Kind::F32);
  for (size_t r = 0; r < accesses.size(); ++r) {
    const Access& access = accesses[r];
    const DType t = buffer(access.buffer).type;
    scope.kinds[r] = scalar::kind_of(t);
    if (!which[r] || !scope.reads[r].empty()) continue;
    const std::string_view raw = type(raw_kind(t));
    std::string name = fresh("r");
    if (access.guard.is_always()) {
      scope.present[r] = "true";
      define(raw, name, load(access.buffer, place(access, scope)));
    } else {
      const std::string there = fresh("p");
      define(type(Kind::Bool), there, condition(access.guard, scope));
      scope.present[r] = there;
      declare(raw, name, literal_text(dialect, raw_kind(t), 0));
      test(there);
      out.line(name + " = " + load(access.buffer, place(access, scope)) + ";");
      out.close();
    }
    name = decoded(t, name);
    scope.reads[r] = name;
  }
}

// `value` has the raw kind.
void Text::put(int b, const std::string& at, const std::string& value) {
  const DType t = buffer(b).type;
  const std::string& name = buffer_names.at(b);
  if (held.at(b) == Held::Registers) {
    if (!is_packed(buffer(b))) {
      out.line(name + "[" + at + "] = " + value + ";");
      return;
    }
    const std::string i = "(" + at + ")", word = name + "[" + i + " >> 1]", shift = "((" + i + " & 1) * 16)";
    out.line(word + " = (" + word + " & (4294901760u >> " + shift + ")) | (" + value + " << " + shift + ");");
    return;
  }
  if (!dialect.words && by_words(b)) {
    if (scalar::bits(t) == 64) {
      const std::string w = fresh("w");
      define(type(Kind::U64), w, t == DType::F64 ? "lm_as_ulong(" + value + ")" : convert(dialect, type(Kind::U64), value));
      out.line(element(b, "2 * " + paren(at)) + " = " + convert(dialect, type(Kind::U32), w) + ";");
      out.line(element(b, "2 * " + paren(at) + " + 1") + " = " + convert(dialect, type(Kind::U32), w + " >> 32") + ";");
      return;
    }
    const std::string w = t == DType::F32 ? "lm_as_uint(" + value + ")" : t == DType::Bool ? "(" + value + " ? 1u : 0u)" : convert(dialect, type(Kind::U32), value);
    out.line(element(b, at) + " = " + w + ";");
    return;
  }
  if (!dialect.words) {
    if (t == DType::U4 || t == DType::I4) {
      const std::string place = name + "[" + at + " >> 1]";
      out.line(place + " = (unsigned char)((" + place + " & (15 << ((1 - (" + at + " & 1)) * 4))) | ((" + value + " & 15) << ((" + at + " & 1) * 4)));");
      return;
    }
    const std::string text = t == DType::Bool ? "(" + value + " ? 1 : 0)" : value;
    out.line(name + "[" + at + "] = " + (scalar::bits(t) < 32 ? convert(dialect, storage_name(dialect, t), text) : text) + ";");
    return;
  }
  const bool atomic = dialect.id == DialectId::Wgsl && atomic_buffers.count(b);
  const auto set = [&](const std::string& i, const std::string& w) {
    out.line(atomic ? "atomicStore(&" + element(b, i) + ", " + w + ");" : element(b, i) + " = " + w + ";");
  };
  const bool packed = held.at(b) == Held::Global;
  const int bits = scalar::bits(t);
  const std::string u(type(Kind::U32));
  if (t == DType::F64) {
    const std::string two = fresh("w");
    out.line("const uvec2 " + two + " = unpackDouble2x32(" + value + ");");
    set("2 * " + paren(at), two + ".x");
    set("2 * " + paren(at) + " + 1", two + ".y");
    return;
  }
  std::string w = t == DType::F32 ? "lm_as_uint(" + value + ")"
                  : t == DType::Bool ? choose(dialect, value, "1u", "0u") : to_word(is_narrow_float(t) ? Kind::U32 : scalar::kind_of(t), value);
  if (bits == 64 && packed) {
    const std::string v = fresh("w");
    define(u, v, w);
    set("2 * " + paren(at), v);
    set("2 * " + paren(at) + " + 1", scalar::is_signed(scalar::kind_of(t)) ? choose(dialect, infix_sign(v), "4294967295u", "0u") : "0u");
    return;
  }
  if (bits >= 32 || !packed) return set(at, w);
  // Part of a word that others write parts of: two atomic steps on bits of one's own.
  const int per = 32 / bits, shift = per == 2 ? 1 : per == 4 ? 2 : 3;
  const uint32_t mask = (1u << bits) - 1;
  const std::string i = fresh("i"), s = fresh("s");
  define(index_type(), i, at);
  define(u, s, "uint_of(" + i + " & " + std::to_string(per - 1) + ") * " + std::to_string(bits) + "u");
  const std::string place = name + "[" + i + " >> " + std::to_string(shift) + "u]", pointer = dialect.id == DialectId::Wgsl ? "&" + place : place;
  out.line("atomicAnd(" + pointer + ", ~(" + std::to_string(mask) + "u << " + s + "));");
  out.line("atomicOr(" + pointer + ", (" + w + " & " + std::to_string(mask) + "u) << " + s + ");");
}

std::string Text::infix_sign(const std::string& word) const { return "((" + word + " >> 31u) != 0u)"; }

// The value in the buffer's kind, as it is stored.
std::string Text::stored_value(int b, const std::string& value, Kind kind) {
  const DType t = buffer(b).type;
  Scope inner;
  inner.reads = {value};
  inner.present = {"true"};
  inner.kinds = {kind};
  Expr e = scalar::cast(scalar::arg(arena, kind, 0), scalar::kind_of(t));
  const bool native = dialect.id == DialectId::Cuda && (t == DType::BF16 || t == DType::F16);
  if (is_narrow_float(t) && !native) e = encode(e, t);
  const std::string text = this->value(e, inner);
  return native ? "lm_to_" + std::string(scalar::name(t)) + "(" + text + ").bits" : text;
}

void Text::store(const Access& to, const std::string& value, Kind kind, Scope& scope) {
  const std::string text = stored_value(to.buffer, value, kind);
  if (!to.guard.is_always()) test(condition(to.guard, scope));
  put(to.buffer, place(to, scope), text);
  if (!to.guard.is_always()) out.close();
}

// What is there op the value. `alone`: no other thread comes to the element; else it is a 32-bit one, exchanged until
// nobody came between.
void Text::combine(const Access& to, const std::string& value, Kind kind, Op op, Scope& scope, bool alone) {
  const DType t = buffer(to.buffer).type;
  const Kind own = scalar::kind_of(t);
  if (!to.guard.is_always()) test(condition(to.guard, scope));
  const std::string at = fresh("i");
  define(index_type(), at, place(to, scope));
  const auto next = [&](const std::string& old) {
    Scope inner;
    inner.reads = {old, value};
    inner.present = {"true", "true"};
    inner.kinds = {own, kind};
    return this->value(scalar::binary(op, scalar::arg(arena, own, 0), scalar::cast(scalar::arg(arena, kind, 1), own)), inner);
  };
  if (alone || held.at(to.buffer) == Held::Registers) {
    Scope inner;
    const std::string old = fresh("r");
    define(type(raw_kind(t)), old, load(to.buffer, at));
    std::string decoded = old;
    if (is_narrow_float(t)) {
      inner.reads = {old};
      inner.present = {"true"};
      inner.kinds = {Kind::U32};
      decoded = this->value(decode(scalar::arg(arena, Kind::U32, 0), t), inner);
    }
    std::string result = next(decoded);
    if (is_narrow_float(t)) {
      Scope last;
      last.reads = {result};
      last.present = {"true"};
      last.kinds = {own};
      result = this->value(encode(scalar::arg(arena, own, 0), t), last);
    }
    put(to.buffer, at, result);
  } else {
    LEMMA_CHECK(scalar::bits(t) == 32, "an atomic step on an element that is not 32 bits");
    const std::string& name = buffer_names.at(to.buffer);
    const std::string u(type(Kind::U32)), old = fresh("o"), seen = fresh("o"), place = name + "[" + at + "]";
    const bool wgsl = dialect.id == DialectId::Wgsl;
    // Read as the others write: atomically. An exchange of 0 for 0 changes nothing.
    declare(u, old, wgsl ? "atomicLoad(&" + place + ")"
                    : dialect.words ? "atomicCompSwap(" + place + ", 0u, 0u)" : "lm_atomic_compare(" + name + ", " + at + ", 0u, 0u)");
    out.open(wgsl ? "loop" : "for (;;)");
    const std::string current = fresh("c");
    define(type(own), current, own == Kind::F32 ? "lm_as_float(" + old + ")" : convert(dialect, type(own), old));
    const std::string result = next(current);
    const std::string word = own == Kind::F32 ? "lm_as_uint(" + result + ")" : to_word(own, result);
    if (wgsl) define(u, seen, "atomicCompareExchangeWeak(&" + place + ", " + old + ", " + word + ").old_value");
    else define(u, seen, dialect.words ? "atomicCompSwap(" + place + ", " + old + ", " + word + ")" : "lm_atomic_compare(" + name + ", " + at + ", " + old + ", " + word + ")");
    test(seen + " == " + old);
    out.line("break;");
    out.close();
    out.line(old + " = " + seen + ";");
    out.close();
  }
  if (!to.guard.is_always()) out.close();
}

}  // namespace lemma::emit::device
