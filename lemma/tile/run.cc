// Control flow and the plain statements of the interpreter; reductions and scans are in fold.cc.
#include "lemma/tile/run.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "lemma/tile/edit.h"
#include "lemma/tile/machine.h"
#include "lemma/tile/passes/split_phases.h"
#include "lemma/tile/space.h"
#include "lemma/tile/validate.h"

namespace lemma::tile {
namespace {

using scalar::Expr;
using scalar::Kind;
using scalar::Scalar;

// The product of extents (each at least 0), or nothing beyond `most`.
std::optional<int64_t> product(const std::vector<int64_t>& extents, int64_t most) {
  int64_t out = 1;
  for (int64_t e : extents) {
    if (e == 0) return 0;
    if (__builtin_mul_overflow(out, e, &out) || out > most) return std::nullopt;
  }
  return out;
}

}  // namespace

base::Result<std::vector<int64_t>> bind_sizes(const Program& program, std::span<const SizeValue> given,
                                              int64_t threads) {
  std::vector<int64_t> values;
  for (const SizeValue& s : given) {
    const bool known = std::any_of(program.sizes.begin(), program.sizes.end(), [&](const SizeDecl& d) { return d.name == s.name; });
    if (!known) return base::invalid("the program has no size \"" + s.name + "\"");
  }
  auto size = [&](int i) { return values[size_t(i)]; };
  for (const SizeDecl& d : program.sizes) {
    const auto it = std::find_if(given.begin(), given.end(), [&](const SizeValue& s) { return s.name == d.name; });
    if (d.definition.valid()) {
      scalar::Leaves leaves;
      leaves.size = size;
      const int64_t value = scalar::evaluate(d.definition, leaves).i;
      if (it != given.end() && it->value != value) {
        return base::invalid("size \"" + d.name + "\" is " + std::to_string(value) + " by definition, given as " + std::to_string(it->value));
      }
      values.push_back(value);
    } else if (it != given.end()) {
      values.push_back(it->value);
    } else if (d.name == "threads") {
      values.push_back(threads);
    } else {
      return base::invalid("size \"" + d.name + "\" is not given");
    }
  }
  for (const Assert& a : program.requirements) {
    const bool holds = a.condition.evaluate([&](const view::Atom& atom) { return size(atom.id); });
    if (!holds) return base::invalid("a requirement of the program does not hold: " + a.message);
  }
  return values;
}

base::Result<void> run(const Program& program, std::span<const SizeValue> sizes, std::span<const Argument> arguments,
                       const RunOptions& options) {
  LEMMA_TRY_VOID(validate(program));
  LEMMA_TRY(std::vector<int64_t> values, bind_sizes(program, sizes, options.threads));
  const Program phased = split_phases(program);
  return Machine(phased, options, std::move(values)).run(arguments);
}

Machine::Machine(const Program& program, const RunOptions& options, std::vector<int64_t> sizes)
    : program_(program), options_(options), sizes_(std::move(sizes)), variables_(program.variables.size()),
      storage_(program.buffers.size()) {
  fixed_ = [this](const view::Atom& a) {
    return a.kind == view::AtomKind::Size ? sizes_[size_t(a.id)] : variables_[size_t(a.id)];
  };
}

base::Result<void> Machine::run(std::span<const Argument> arguments) {
  if (!open(arguments)) return *error_;
  for (const Kernel& k : program_.kernels) {
    if (!kernel(k)) return *error_;
  }
  close(arguments);
  return {};
}

// For every element, row-major, its place in the caller's array.
std::vector<int64_t> Machine::argument_places(const Buffer& buffer, const std::vector<int64_t>& extents) const {
  std::vector<int64_t> strides(extents.size());
  int64_t stride = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    strides[d] = buffer.strides.empty() ? stride : value(buffer.strides[d]);
    stride *= extents[d];
  }
  std::vector<int64_t> out(size_t(stride), 0);
  int64_t inner = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    for (size_t e = 0; e < out.size(); ++e) out[e] += int64_t(e) / inner % extents[d] * strides[d];
    inner *= extents[d];
  }
  return out;
}

bool Machine::open(std::span<const Argument> arguments) {
  size_t parameters = 0;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& b = program_.buffers[i];
    if (is_local(b.space)) continue;
    std::vector<int64_t> extents;
    for (const view::Form& f : b.extents) {
      extents.push_back(value(f));
      if (extents.back() < 0) return fault("buffer " + b.name + " has the extent " + std::to_string(extents.back()));
    }
    const auto count = product(extents, options_.most_elements);
    if (!count) return fault("buffer " + b.name + " has more than " + std::to_string(options_.most_elements) + " elements");
    storage_[i] = Storage(b.type, extents, b.space != Space::Input);
    if (!is_parameter(b.space)) continue;
    if (parameters >= arguments.size()) return fault("the program has more parameters than the " + std::to_string(arguments.size()) + " arguments given");
    const Argument& a = arguments[parameters++];
    const std::vector<int64_t> places = argument_places(b, extents);
    for (int64_t p : places) {
      if (p < 0 || p >= a.elements) return fault("argument " + b.name + " has " + std::to_string(a.elements) + " elements and its strides reach element " + std::to_string(p));
    }
    if (b.space == Space::Output) continue;
    for (size_t e = 0; e < places.size(); ++e) storage_[i]->put(int64_t(e), scalar::load(b.type, a.data, places[e]));
  }
  if (parameters != arguments.size()) return fault("the program has " + std::to_string(parameters) + " parameters, " + std::to_string(arguments.size()) + " arguments were given");
  return true;
}

void Machine::close(std::span<const Argument> arguments) {
  size_t parameters = 0;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const Buffer& b = program_.buffers[i];
    if (!is_parameter(b.space)) continue;
    const Argument& a = arguments[parameters++];
    if (b.space == Space::Input) continue;
    const std::vector<int64_t> places = argument_places(b, storage_[i]->extents());
    for (size_t e = 0; e < places.size(); ++e) {
      if (storage_[i]->written(int64_t(e))) scalar::store(b.type, a.data, places[e], storage_[i]->at(int64_t(e)));
    }
  }
}

bool Machine::kernel(const Kernel& k) {
  kernel_ = &k;
  path_.clear();
  word_ = "";
  ++who_.kernel;
  std::vector<int64_t> extents;
  for (const GridLoop& g : k.grid) extents.push_back(std::max<int64_t>(0, value(g.extent)));
  const auto count = product(extents, int64_t(1) << 32);
  if (!count) return fault("its grid has more than 2^32 blocks");
  std::vector<int64_t> order;
  bool ordered = false;  // blocks that fold in order keep the grid's
  visit(k.body, [&](const Stmt& s) {
    const auto* combine = std::get_if<Combine>(&s);
    ordered = ordered || (combine && combine->ordered);
  });
  if (options_.seed != 0 && !ordered) {
    order.resize(size_t(*count));
    std::iota(order.begin(), order.end(), int64_t(0));
    std::mt19937_64 random(options_.seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  for (const GridLoop& g : k.grid) scope_.push_back(g.var);
  for (int64_t b = 0; b < *count; ++b) {
    who_.block = order.empty() ? b : order[size_t(b)];
    int64_t rest = who_.block;
    for (size_t d = extents.size(); d-- > 0;) {
      const int64_t at = rest % extents[d];
      rest /= extents[d];
      variables_[size_t(k.grid[d].var)] = k.grid[d].descending ? extents[d] - 1 - at : at;
    }
    if (!block(k.body)) return false;
  }
  scope_.clear();
  return true;
}

bool Machine::block(const Block& body) {
  const size_t depth = scope_.size();
  path_.push_back(0);
  for (const Stmt& stmt : body) {
    ++path_.back();
    if (!execute(stmt)) return false;
  }
  path_.pop_back();
  scope_.resize(depth);
  return true;
}

bool Machine::execute(const Stmt& stmt) {
  word_ = word(stmt);
  ++who_.statement;
  return std::visit([&](const auto& s) { return statement(s); }, static_cast<const Stmt::variant&>(stmt));
}

std::vector<int64_t> Machine::extents(const std::vector<Range>& ranges) const {
  std::vector<int64_t> out;
  for (const Range& r : ranges) out.push_back(value(r.extent));
  return out;
}

int64_t Machine::evaluate(Expr e) const {
  scalar::Leaves leaves;
  leaves.index = [this](int v) { return variables_[size_t(v)]; };
  leaves.size = [this](int s) { return sizes_[size_t(s)]; };
  return scalar::evaluate(e, leaves, options_.arithmetic).i;
}

PointBody& Machine::body_of(const void* key, const std::vector<Range>& points, const PointBody::Parts& parts) {
  std::unique_ptr<PointBody>& body = bodies_[key];
  if (!body) body = std::make_unique<PointBody>(program_, variables_of(points), parts, options_.arithmetic);
  body->begin(*this);
  return *body;
}

bool Machine::statement(const Let& s) {
  static const view::Formula kAlways;
  PointBody::Parts parts;
  parts.reads = &s.reads;
  parts.where = &kAlways;
  parts.roots = {s.value};
  PointBody& body = body_of(&s, {}, parts);
  body.lanes().count = 1;
  if (!body.evaluate(*this, 0)) return false;
  variables_[size_t(s.var)] = body.value(0, 0).i;
  scope_.push_back(s.var);
  return true;
}

std::optional<bool> Machine::condition(const std::vector<Access>& reads, const view::Formula& formula, const void* key) {
  PointBody::Parts parts;
  parts.reads = &reads;
  parts.where = &formula;
  PointBody& body = body_of(key, {}, parts);
  body.lanes().count = 1;
  if (!body.evaluate(*this, 0)) return std::nullopt;
  return body.where()[0] != 0;
}

bool Machine::statement(const If& s) {
  const std::optional<bool> holds = condition(s.reads, s.condition, &s);
  return holds && block(*holds ? s.then : s.otherwise);
}

bool Machine::statement(const Assert& s) {
  const std::optional<bool> holds = condition(s.reads, s.condition, &s);
  if (!holds) return false;
  return *holds || fault((s.assumed ? "what is assumed does not hold: " : "the assertion does not hold: ") + s.message);
}

bool Machine::statement(const For& s) {
  const int64_t begin = evaluate(s.begin), end = evaluate(s.end);
  scope_.push_back(s.var);
  const char* own = word_;
  for (int64_t i = begin; i < end;) {
    variables_[size_t(s.var)] = i;
    if (!block(s.body)) return false;
    word_ = own;
    if (__builtin_add_overflow(i, s.step, &i)) break;
  }
  scope_.pop_back();
  return true;
}

bool Machine::statement(const Alloc& s) {
  const Buffer& b = program_.buffers[size_t(s.buffer)];
  std::vector<int64_t> extents;
  for (const view::Form& f : b.extents) {
    extents.push_back(value(f));
    if (extents.back() < 0) return fault("allocates " + b.name + " with the extent " + std::to_string(extents.back()));
  }
  if (!product(extents, options_.most_elements)) return fault("allocates " + b.name + " with more than " + std::to_string(options_.most_elements) + " elements");
  std::optional<Storage>& storage = storage_[size_t(s.buffer)];
  if (storage && storage->extents() == extents) storage->forget();
  else storage = Storage(b.type, std::move(extents), false);
  return true;
}

bool Machine::statement(const Copy& s) {
  const Columns columns{variables_of(s.box), 0};
  LaneAccess from(s.from, columns), to(s.to, columns);
  from.begin(fixed_);
  to.begin(fixed_);
  const Kind from_kind = scalar::kind_of(storage(s.from.buffer).type()), to_kind = scalar::kind_of(storage(s.to.buffer).type());
  const Scalar fill = scalar::value_of(s.fill);
  const bool same_buffer = s.from.buffer == s.to.buffer;
  const Points points(extents(s.box));
  const std::vector<char> known(columns.variables.size(), 1);
  Lanes lanes;
  lanes.columns.resize(columns.variables.size());
  std::vector<int64_t> sources(kLanes), targets(kLanes);
  std::vector<char> take(kLanes), put(kLanes);
  for (int64_t begin = 0; begin < points.count(); begin += kLanes) {
    points.fill(lanes, 0, begin, int(std::min<int64_t>(kLanes, points.count() - begin)));
    from.locate(storage(s.from.buffer), lanes, sources.data());
    to.locate(storage(s.to.buffer), lanes, targets.data());
    from.guard.evaluate(lanes, known, take.data());
    to.guard.evaluate(lanes, known, put.data());
    for (size_t l = 0; l < size_t(lanes.count); ++l) {
      if (!put[l] || targets[l] < 0) continue;
      Scalar value = fill;
      const int64_t point = begin + int64_t(l);
      if (take[l] && sources[l] >= 0) {
        if (!read(from, sources[l], point, same_buffer, value, columns, lanes, l)) return false;
        value = converted(value, from_kind, to_kind);
      }
      if (!write(to, targets[l], point, true, value, columns, lanes, l)) return false;
    }
  }
  return true;
}

bool Machine::store(const Store& s, LaneAccess& to, size_t root, PointBody& body, int64_t first_point) {
  Lanes& lanes = body.lanes();
  std::vector<int64_t> elements(size_t(lanes.count));
  std::vector<char> guard(size_t(lanes.count));
  to.locate(storage(s.to.buffer), lanes, elements.data());
  to.guard.evaluate(lanes, body.known(), guard.data());
  const Kind kind = scalar::kind_of(storage(s.to.buffer).type());
  const bool watch = !s.combine || body.reads_buffer(s.to.buffer);
  for (size_t l = 0; l < elements.size(); ++l) {
    const bool on = body.where()[l] != 0;
    if (!guard[l] || (!on && !s.otherwise.valid())) continue;
    Scalar value = body.value(on ? root : root + 1, l);
    const int64_t point = first_point + int64_t(l);
    if (s.combine) {
      Scalar both[2] = {scalar::from_int(0), value};
      if (!read(to, elements[l], point, watch, both[0], body.columns(), lanes, l)) return false;
      value = scalar::apply(*s.combine, kind, kind, 0, both, options_.arithmetic);
    }
    if (!write(to, elements[l], point, watch, value, body.columns(), lanes, l)) return false;
  }
  return true;
}

bool Machine::statement(const Map& s) {
  PointBody::Parts parts;
  parts.reads = &s.reads;
  parts.where = &s.where;
  for (const Store& store : s.stores) {
    parts.roots.push_back(store.value);
    if (store.otherwise.valid()) {
      parts.roots.push_back(store.otherwise);
      parts.off_domain.push_back(store.otherwise);
    }
  }
  const bool fresh = !bodies_.count(&s);
  PointBody& body = body_of(&s, s.points, parts);
  std::vector<LaneAccess> targets;
  for (const Store& store : s.stores) {
    if (fresh) body.watch(store.to.buffer);
    targets.emplace_back(store.to, body.columns());
    targets.back().begin(fixed_);
  }
  const Points points(extents(s.points));
  for (int64_t begin = 0; begin < points.count(); begin += kLanes) {
    points.fill(body.lanes(), 0, begin, int(std::min<int64_t>(kLanes, points.count() - begin)));
    if (!body.evaluate(*this, begin)) return false;
    size_t root = 0;
    for (size_t i = 0; i < s.stores.size(); ++i) {
      if (!store(s.stores[i], targets[i], root, body, begin)) return false;
      root += s.stores[i].otherwise.valid() ? 2 : 1;
    }
  }
  return true;
}

bool Machine::statement(const Gemm& s) {
  // The taps and k run as one, the taps outermost.
  std::vector<Range> reduced = s.taps;
  reduced.push_back(s.k);
  int64_t k = 1;
  for (const Range& r : reduced) k *= std::max<int64_t>(0, value(r.extent));
  const int64_t m = value(s.m.extent), n = value(s.n.extent);
  if (m <= 0 || n <= 0) return true;
  const Kind kind = scalar::kind_of(storage(s.acc.buffer).type());
  auto load = [&](const Access& a, const std::vector<Range>& rows, const std::vector<Range>& across,
                  std::vector<Scalar>& table) {
    std::vector<Range> ranges = rows;
    ranges.insert(ranges.end(), across.begin(), across.end());
    Columns columns;
    for (const Range& r : ranges) columns.variables.push_back(r.var);
    LaneAccess access(a, columns);
    access.begin(fixed_);
    const Points points(extents(ranges));
    const Kind from = scalar::kind_of(storage(a.buffer).type());
    table.resize(size_t(points.count()));
    Lanes lanes;
    lanes.columns.resize(ranges.size());
    std::vector<int64_t> elements(kLanes);
    for (int64_t begin = 0; begin < points.count(); begin += kLanes) {
      points.fill(lanes, 0, begin, int(std::min<int64_t>(kLanes, points.count() - begin)));
      access.locate(storage(a.buffer), lanes, elements.data());
      for (size_t l = 0; l < size_t(lanes.count); ++l) {
        Scalar value;
        if (!read(access, elements[l], begin + int64_t(l), false, value, columns, lanes, l)) return false;
        table[size_t(begin) + l] = converted(value, from, kind);
      }
    }
    return true;
  };
  std::vector<Scalar> a, b, acc;  // row-major, widened to the accumulator's kind
  if (!load(s.a, {s.m}, reduced, a) || !load(s.b, reduced, {s.n}, b)) return false;
  if (s.accumulate && !load(s.acc, {s.m}, {s.n}, acc)) return false;
  acc.resize(size_t(m * n), scalar::from_int(0));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t x = 0; x < k; ++x) {
      const Scalar left = a[size_t(i * k + x)];
      const Scalar* right = b.data() + x * n;
      Scalar* out = acc.data() + i * n;
      if (scalar::is_float(kind)) {
        for (int64_t j = 0; j < n; ++j) out[j].f += left.f * right[j].f;
      } else {
        for (int64_t j = 0; j < n; ++j) out[j].i = int64_t(uint64_t(out[j].i) + uint64_t(left.i) * uint64_t(right[j].i));
      }
    }
  }
  const Columns columns{{s.m.var, s.n.var}, 0};
  LaneAccess to(s.acc, columns);
  to.begin(fixed_);
  const Points points({m, n});
  Lanes lanes;
  lanes.columns.resize(2);
  std::vector<int64_t> elements(kLanes);
  for (int64_t begin = 0; begin < points.count(); begin += kLanes) {
    points.fill(lanes, 0, begin, int(std::min<int64_t>(kLanes, points.count() - begin)));
    to.locate(storage(s.acc.buffer), lanes, elements.data());
    for (size_t l = 0; l < size_t(lanes.count); ++l) {
      Scalar value = acc[size_t(begin) + l];
      if (!scalar::is_float(kind)) value.i = scalar::wrapped(kind, value.i);
      if (!write(to, elements[l], begin + int64_t(l), true, value, columns, lanes, l)) return false;
    }
  }
  return true;
}

}  // namespace lemma::tile
