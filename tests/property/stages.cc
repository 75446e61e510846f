#include "tests/property/stages.h"

#include "lemma/language/language.h"
#include "lemma/rewrite/passes.h"
#include "lemma/runtime/random.h"
#include "lemma/scalar/convert.h"
#include "lemma/tensor/equal.h"
#include "lemma/tensor/print.h"
#include "lemma/tensor/validate.h"
#include "lemma/tile/equal.h"
#include "lemma/tile/parse.h"
#include "lemma/tile/print.h"
#include "lemma/tile/run.h"
#include "lemma/tile/validate.h"

namespace lemma::property {

using base::Result;
using rewrite::Claim;
using tensor::Array;
using tensor::Graph;

namespace {

Failure failed(const std::string& stage, const base::Diagnostic& d) {
  return {stage, base::render(d), d.failure == base::Failure::Unsupported};
}

std::string differences(const Graph& graph, const std::vector<Array>& expected, const std::vector<Array>& found,
                        double tolerance, Claim claim) {
  if (expected.size() != found.size()) return "it has other outputs";
  for (size_t o = 0; o < expected.size(); ++o) {
    const std::string wrong = difference(graph.outputs[o].name, expected[o], found[o], tolerance, claim);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// The claim exact is about the arithmetic of a target, so it is checked in single precision, where what a pass computes
// beforehand is what the target would have.
tensor::OracleOptions arithmetic_for(Claim claim) {
  tensor::OracleOptions out;
  out.emulate_single = claim == Claim::Exact;
  return out;
}

struct Reference {
  Graph graph;
  Inputs inputs;
  std::vector<Array> outputs;
};

Failure check_one(const Case& c, const Reference& reference, const std::string& stage, const Rewrite& rewrite,
                  double tolerance, Claim claim = Claim::Real) {
  const Graph after = rewrite(reference.graph);
  if (const auto valid = tensor::validate(after); !valid.ok()) return failed(stage, valid.error());
  const auto found = evaluate(after, c.sizes, reference.inputs, arithmetic_for(claim));
  if (!found.ok()) return failed(stage, found.error());
  std::string wrong = differences(reference.graph, reference.outputs, *found, tolerance, claim);
  if (!wrong.empty()) wrong += "\nafter:\n" + tensor::print(after);
  return {stage, wrong};
}

Result<Reference> reference_of(const Case& c, Claim claim = Claim::Real) {
  Reference out{c.graph(), make_inputs(c), {}};
  LEMMA_TRY(out.outputs, evaluate(out.graph, c.sizes, out.inputs, arithmetic_for(claim)));
  return out;
}

// The text parses back to an equal graph. Where a graph says one thing twice (two equal reads) or several in one node (a
// map of two results, an output stored narrower), text says it once, or in several nodes: then the values stay and the
// text of what was read is a fixed point.
Failure check_text(const Case& c, const Reference& reference) {
  const std::string text = tensor::print(reference.graph);
  language::Options options;
  options.name = reference.graph.name;
  const auto back = language::parse(text, "printed.lemma", options);
  if (!back.ok()) return failed("text", back.error());
  const std::string wrong = tensor::difference(reference.graph, *back);
  if (wrong.empty()) return {};
  const std::string again = tensor::print(*back);
  const auto twice = language::parse(again, "printed_again.lemma", options);
  if (!twice.ok()) return failed("text", twice.error());
  if (tensor::print(*twice) != again) return {"text", wrong + "; it prints again as\n" + again + "and then as\n" + tensor::print(*twice)};
  return check_one(c, reference, "text", [&](const Graph&) { return *back; }, 0);
}

}  // namespace

Failure check_rewrite(const Case& c, const std::string& stage, const Rewrite& rewrite, double tolerance) {
  const auto reference = reference_of(c);
  if (!reference.ok()) return failed("oracle", reference.error());
  return check_one(c, *reference, stage, rewrite, tolerance);
}

Failure check_maths(const Case& c, const std::string& stage) {
  const auto wanted = [&](std::string_view s) { return stage.empty() || stage == s; };
  const Graph graph = c.graph();
  if (const auto valid = tensor::validate(graph); !valid.ok()) return failed("validate", valid.error());
  const auto reference = reference_of(c);
  if (!reference.ok()) return failed("oracle", reference.error());
  if (wanted("text")) {
    if (const Failure f = check_text(c, *reference); !f.ok()) return f;
  }
  const auto in_single = reference_of(c, Claim::Exact);
  if (!in_single.ok()) return failed("oracle", in_single.error());
  for (const rewrite::Pass& pass : rewrite::passes()) {
    if (!wanted(pass.name)) continue;
    for (const Claim claim : {Claim::Exact, c.allow()}) {
      const Reference& by = claim == Claim::Exact ? *in_single : *reference;
      const double tolerance = claim == Claim::Exact ? 0 : oracle_tolerance();
      // Passes meet graphs that state their roundings, as in derive: a pass that drops the last read of a narrow value
      // would else drop the reason to round what leaves as an output.
      const bool first = pass.name == "remove_dead" || pass.name == "round_stores";
      const Rewrite run = [&](const Graph& g) {
        return pass.run(first ? g : rewrite::find_pass("round_stores")->run(g, {claim, nullptr}), {claim, nullptr});
      };
      if (Failure f = check_one(c, by, std::string(pass.name), run, tolerance, claim); !f.ok()) {
        f.message = std::string(claim == Claim::Exact ? "(exact) " : "") + f.message;
        return f;
      }
    }
  }
  if (!wanted("derive")) return {};
  const Rewrite derive = [&](const Graph& g) { return rewrite::derive(g, {c.allow(), nullptr}); };
  return check_one(c, *reference, "derive", derive, oracle_tolerance(), c.allow());
}

Result<driver::Compiled> compile(const Case& c, const tile::Target& target, const driver::Trace& trace) {
  driver::CompileOptions options;
  options.allow = c.allow();
  options.target = target;
  options.derive = c.seed % 5 != 3;
  return driver::compile(c.graph(), options, trace);
}

namespace {

Result<runtime::Array> array_of(const Array& from, bool strided, bool reversed, uint64_t seed) {
  const size_t rank = from.extents.size();
  std::vector<int64_t> strides(rank), extents = from.extents;
  int64_t offset = 0, step = 1;
  // The first dimension is the nearest one; every stride has a gap; some run backwards.
  for (size_t d = 0; d < rank; ++d) {
    const bool backwards = reversed && (seed >> d) % 3 == 0;
    strides[d] = backwards ? -step : step;
    if (backwards) offset += step * std::max<int64_t>(0, extents[d] - 1);
    step *= std::max<int64_t>(1, extents[d]) + 1;
  }
  LEMMA_TRY(runtime::Array out, runtime::allocate(from.type, strided ? std::vector<int64_t>{step + 1} : extents));
  if (strided) {
    runtime::fill_poison(out, 0x55);
    LEMMA_TRY(out, runtime::view(out, offset, extents, strides));
  }
  for (size_t i = 0; i < from.data.size(); ++i) {
    if (scalar::is_float(from.type)) runtime::set_float(out, int64_t(i), from.data[i].f);
    else runtime::set_int(out, int64_t(i), from.data[i].i);
  }
  return out;
}

}  // namespace

Result<driver::Call> prepare(const Case& c, const driver::Compiled& compiled, const Inputs& inputs, bool reversed) {
  driver::Arguments arguments;
  for (const tensor::Node& n : compiled.source.nodes) {
    const auto* input = std::get_if<tensor::Input>(&n);
    if (!input) continue;
    LEMMA_TRY(runtime::Array array, array_of(inputs.at(input->name), input->strided, reversed, c.seed));
    arguments.inputs.push_back({input->name, std::move(array)});
  }
  for (const tensor::Size& s : compiled.source.sizes) {
    for (const tensor::Binding& b : c.sizes) {
      if (b.name == s.name) arguments.sizes.push_back(b);
    }
  }
  return driver::prepare(compiled, arguments);
}

Array result_of(const runtime::Array& array) {
  Array out;
  out.type = array.type;
  out.extents = array.extents;
  for (int64_t i = 0; i < array.count(); ++i) {
    out.data.push_back(scalar::is_float(array.type) ? scalar::from_float(runtime::float_at(array, i))
                                                    : scalar::from_int(runtime::int_at(array, i)));
  }
  return out;
}

namespace {

Failure interpret(const Case& c, const driver::Compiled& compiled) {
  const auto reference = reference_of(c);
  if (!reference.ok()) return failed("oracle", reference.error());
  auto call = prepare(c, compiled, reference->inputs, false);
  if (!call.ok()) return failed("tile_run", call.error());
  std::vector<tile::SizeValue> sizes;
  size_t next = 0;
  for (const tile::SizeDecl& s : compiled.program.sizes) {
    if (!s.definition.valid() && s.name != "threads") sizes.push_back({s.name, call->program_sizes[next++]});
  }
  std::vector<tile::Argument> arguments;
  for (size_t a = 0; a < call->arrays.size(); ++a) {
    const runtime::Array& array = call->arrays[a];
    const int64_t after = array.storage ? array.storage->bytes() * 8 / scalar::bits(array.type) - array.offset : 0;
    arguments.push_back({call->buffers[a], array.contiguous() ? array.count() : after});
  }
  tile::RunOptions options;
  options.seed = c.seed;
  options.threads = 1 + int64_t(c.seed % 2) * 2;
  if (const auto ran = tile::run(compiled.program, sizes, arguments, options); !ran.ok()) return failed("tile_run", ran.error());
  for (size_t o = 0; o < reference->outputs.size(); ++o) {
    const Array found = result_of(call->outputs[o].array);
    const std::string wrong = difference(call->outputs[o].name, reference->outputs[o], found, tolerance(c, found.type), c.allow());
    if (!wrong.empty()) return {"tile_run", wrong + "\nprogram:\n" + tile::print(compiled.program)};
  }
  return {};
}

}  // namespace

Failure check_tiles(const Case& c, bool run) {
  tile::Target target;
  target.vector_bytes = 16 << (c.seed % 3);
  // Every other case is tiled as for a device, small, so that there are edges.
  if (runtime::hash(c.seed, 2) % 2) {
    target.device = true;
    target.tile_rows = target.tile_columns = target.stream_rows = target.stream_columns = 16;
  }
  const auto compiled = compile(c, target);
  if (!compiled.ok()) return failed("tile", compiled.error());
  if (const auto valid = tile::validate(compiled->program); !valid.ok()) return failed("tile", valid.error());
  const std::string text = tile::print(compiled->program);
  const auto back = tile::parse(text);
  if (!back.ok()) return failed("tile", back.error());
  if (!tile::equal(compiled->program, *back)) return {"tile", "the program differs from its text read back:\n" + text};
  return run ? interpret(c, *compiled) : Failure{};
}

}  // namespace lemma::property
