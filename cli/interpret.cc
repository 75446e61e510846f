#include "cli/interpret.h"

#include <cstdio>

#include "lemma/driver/tile_program.h"
#include "lemma/scalar/convert.h"
#include "lemma/tensor/bind.h"
#include "lemma/tensor/eval.h"

namespace lemma::cli {
namespace {

using base::Result;
using runtime::Named;
using tensor::Graph;
using tensor::Oracle;

// The oracle over the caller's arrays, which must stay.
Result<Oracle> make_oracle(const Graph& graph, const driver::Arguments& arguments) {
  LEMMA_TRY(Graph bound, tensor::bind(graph, arguments.sizes));
  LEMMA_TRY(Oracle oracle, Oracle::make(std::move(bound)));
  for (const Named& input : arguments.inputs) {
    tensor::InputBuffer buffer;
    buffer.name = input.name;
    buffer.type = input.array.type;
    buffer.data = input.array.storage->data();
    buffer.strides = input.array.strides;
    buffer.offset = input.array.offset;
    LEMMA_TRY_VOID(oracle.set_input(buffer));
  }
  return oracle;
}

driver::Reference reference(scalar::DType type, int64_t flat, scalar::Scalar value) {
  driver::Reference out;
  out.flat = flat;
  if (scalar::is_float(type)) {
    out.real = value.f;
  } else {
    out.integer = scalar::wrapped(type, value.i);
  }
  return out;
}

std::vector<int64_t> index_of(const std::vector<int64_t>& extents, int64_t flat) {
  std::vector<int64_t> index(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    index[d] = flat % extents[d];
    flat /= extents[d];
  }
  return index;
}

}  // namespace

Result<std::vector<Named>> interpret(const Context& context, const Source& source, const ProgramOptions& options,
                                     const driver::Arguments& arguments) {
  if (source.tiles) {
    LEMMA_TRY(const driver::Compiled compiled, compile_program(context, source, options));
    return driver::interpret_tiles(compiled, arguments, [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  }
  const Graph& graph = source.graph;
  LEMMA_TRY(const Oracle oracle, make_oracle(graph, arguments));
  LEMMA_TRY(const std::vector<tensor::Array> values, oracle.outputs());
  std::vector<Named> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const tensor::GraphOutput& output = graph.outputs[i];
    LEMMA_TRY(runtime::Array array, runtime::allocate(output.type, values[i].extents, "output '" + output.name + "'"));
    for (size_t e = 0; e < values[i].data.size(); ++e) {
      scalar::store(output.type, array.storage->data(), int64_t(e), values[i].data[e]);
    }
    out.push_back({output.name, std::move(array)});
  }
  return out;
}

namespace {

// Of a tile program: every element, by the block interpreter.
Result<std::vector<Expected>> expect_tiles(const Context& context, const Source& source, const ProgramOptions& program,
                                           const driver::Arguments& arguments) {
  LEMMA_TRY(const std::vector<Named> outputs, interpret(context, source, program, arguments));
  std::vector<Expected> out;
  for (const Named& output : outputs) {
    Expected expected{output.name, output.array.extents, {}, true};
    for (int64_t i = 0; i < output.array.count(); ++i) {
      driver::Reference r;
      r.flat = i;
      if (scalar::is_float(output.array.type)) r.real = runtime::float_at(output.array, i);
      else r.integer = runtime::int_at(output.array, i);
      expected.references.push_back(r);
    }
    out.push_back(std::move(expected));
  }
  return out;
}

}  // namespace

Result<std::vector<Expected>> expect(const Context& context, const Source& source, const ProgramOptions& program,
                                     const driver::Arguments& arguments, const SampleOptions& options) {
  if (source.tiles) return expect_tiles(context, source, program, arguments);
  const Graph& graph = source.graph;
  LEMMA_TRY(const Oracle oracle, make_oracle(graph, arguments));
  std::vector<Expected> out;
  if (tensor::operation_count(oracle.graph()) <= options.most_operations) {
    LEMMA_TRY(const std::vector<tensor::Array> values, oracle.outputs());
    for (size_t i = 0; i < values.size(); ++i) {
      Expected expected{graph.outputs[i].name, values[i].extents, {}, true};
      for (size_t e = 0; e < values[i].data.size(); ++e) {
        expected.references.push_back(reference(graph.outputs[i].type, int64_t(e), values[i].data[e]));
      }
      out.push_back(std::move(expected));
    }
    return out;
  }
  std::vector<tensor::Sample> samples;
  std::vector<std::vector<int64_t>> positions;
  for (const tensor::GraphOutput& output : graph.outputs) {
    const std::vector<int64_t> extents =
        driver::evaluate_extents(tensor::extents(graph, output.value), arguments.sizes);
    positions.push_back(driver::sample_positions(extents, options.tiles, options.points, options.seed));
    tensor::Sample sample;
    sample.value = output.value;
    for (const int64_t flat : positions.back()) sample.points.push_back(index_of(extents, flat));
    samples.push_back(std::move(sample));
    out.push_back({output.name, extents, {}, false});
  }
  LEMMA_TRY(const auto values, oracle.at(samples));
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t p = 0; p < positions[i].size(); ++p) {
      out[i].references.push_back(reference(graph.outputs[i].type, positions[i][p], values[i][p]));
    }
  }
  return out;
}

}  // namespace lemma::cli
