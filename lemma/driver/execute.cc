#include "lemma/driver/execute.h"

#include <algorithm>
#include <optional>

#include "lemma/tensor/bind.h"
#include "lemma/tensor/validate.h"
#include "lemma/tile/space.h"

namespace lemma::driver {
namespace {

using base::Result;
using runtime::Array;
using runtime::Named;
using tile::Buffer;
using tile::Space;
using view::Atom;
using view::AtomKind;

const Array* find(const std::vector<Named>& arrays, const std::string& name) {
  for (const Named& named : arrays) {
    if (named.name == name) return &named.array;
  }
  return nullptr;
}

// Sizes of the program by id, as far as they are known: the graph's by name; strides from the arrays that have them.
class ProgramSizes {
 public:
  ProgramSizes(const tile::Program& program, const std::vector<tensor::Binding>& sizes)
      : program_(program), values_(program.sizes.size()) {
    for (size_t i = 0; i < program.sizes.size(); ++i) {
      for (const tensor::Binding& binding : sizes) {
        if (binding.name == program.sizes[i].name) values_[i] = binding.value;
      }
    }
  }
  void set_strides(const Buffer& buffer, const Array& array) {
    for (size_t d = 0; d < buffer.strides.size(); ++d) {
      const std::optional<int> size = buffer.strides[d].as_size();
      if (size && !values_[size_t(*size)]) values_[size_t(*size)] = array.strides[d];
    }
  }
  // Requirements over sizes that are known; the program asks again about the others.
  Result<void> require() const {
    for (const tile::Assert& a : program_.requirements) {
      const std::vector<int> used = a.condition.ids(AtomKind::Size);
      const bool known = std::all_of(used.begin(), used.end(), [&](int s) { return values_[size_t(s)].has_value(); });
      if (!known || a.condition.evaluate([&](const Atom& s) { return *values_[size_t(s.id)]; })) continue;
      return base::invalid(a.message);
    }
    return {};
  }
  // Those that the caller passes: without a definition, "threads" left out.
  Result<std::vector<int64_t>> passed() const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < values_.size(); ++i) {
      const tile::SizeDecl& size = program_.sizes[i];
      if (size.definition.valid() || size.name == "threads") continue;
      if (!values_[i]) return base::invalid("the program's size '" + size.name + "' has no value");
      out.push_back(*values_[i]);
    }
    return out;
  }

 private:
  const tile::Program& program_;
  std::vector<std::optional<int64_t>> values_;
};

// What each parameter of the program is to the graph, by order: the inputs, then the outputs that take over none.
struct Parameter {
  const tensor::Input* input = nullptr;
  const tensor::GraphOutput* output = nullptr;
};
std::vector<Parameter> parameters(const tensor::Graph& graph) {
  std::vector<Parameter> out;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* input = std::get_if<tensor::Input>(&graph.nodes[n]);
    if (!input) continue;
    out.push_back({input, nullptr});
    for (const tensor::GraphOutput& output : graph.outputs) {
      if (output.updates && size_t(output.updates->index) == n) out.back().output = &output;
    }
  }
  for (const tensor::GraphOutput& output : graph.outputs) {
    if (!output.updates) out.push_back({nullptr, &output});
  }
  return out;
}

Result<void> check_memory(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes) {
  int64_t total = 0;
  for (const tensor::GraphOutput& output : graph.outputs) {
    const auto extents = evaluate_extents(tensor::extents(graph, output.value), sizes);
    const auto bytes = runtime::checked_bytes(output.type, extents);
    if (!bytes || __builtin_add_overflow(total, *bytes, &total)) {
      return base::invalid("the outputs have more bytes than 63 bits can count: '" + output.name + "' is " +
                           runtime::describe(output.type, extents));
    }
  }
  return {};
}

// The array that a parameter is given; one that is read and written receives a copy of the input.
Result<Array> argument(const tensor::Graph& graph, const Buffer& buffer, const Parameter& parameter,
                       const std::vector<Named>& inputs, const std::vector<tensor::Binding>& sizes) {
  const Array* given = parameter.input ? find(inputs, parameter.input->name) : nullptr;
  if (parameter.input && !given) return base::invalid("input '" + parameter.input->name + "' is not given");
  if (buffer.space == Space::Input) return buffer.strides.empty() ? runtime::contiguous(*given) : *given;
  const std::vector<int64_t> extents = evaluate_extents(tensor::extents(graph, parameter.output->value), sizes);
  LEMMA_TRY(Array fresh, runtime::allocate(buffer.type, extents, "output '" + parameter.output->name + "'"));
  if (buffer.space == Space::Update) {
    LEMMA_TRY(const Array plain, runtime::contiguous(*given));
    std::copy(plain.data(), plain.data() + plain.bytes(), fresh.data());
  }
  return fresh;
}

}  // namespace

Result<Call> prepare(const Compiled& compiled, const Arguments& arguments) {
  const tensor::Graph& graph = compiled.derived;
  Call call;
  LEMMA_TRY(call.sizes, infer_sizes(compiled.source, arguments));
  // bind checks ranges and divisors.
  LEMMA_TRY(const tensor::Graph bound, tensor::bind(compiled.source, call.sizes));
  if (!compiled.reads_decided) LEMMA_TRY_VOID(tensor::check_bounds(bound));
  LEMMA_TRY_VOID(check_memory(compiled.source, call.sizes));
  LEMMA_TRY_VOID(check_inputs(compiled.source, arguments.inputs, call.sizes));
  ProgramSizes sizes(compiled.program, call.sizes);
  const std::vector<Parameter> roles = parameters(graph);
  call.outputs.resize(graph.outputs.size());
  for (const Buffer& buffer : compiled.program.buffers) {
    if (!is_parameter(buffer.space)) continue;
    LEMMA_CHECK(call.arrays.size() < roles.size(), "a program has parameters that its graph has not");
    const Parameter& role = roles[call.arrays.size()];
    LEMMA_CHECK((buffer.space == Space::Output) == !role.input, "a program's parameters are not in its graph's order");
    LEMMA_TRY(Array array, argument(graph, buffer, role, arguments.inputs, call.sizes));
    sizes.set_strides(buffer, array);
    if (role.output) call.outputs[size_t(role.output - graph.outputs.data())] = {role.output->name, array};
    if (buffer.space == Space::Output) call.poisoned.push_back(int(call.arrays.size()));
    call.buffers.push_back(array.data());
    call.arrays.push_back(std::move(array));
  }
  LEMMA_TRY_VOID(sizes.require());
  LEMMA_TRY(call.program_sizes, sizes.passed());
  poison(call, 0xff);
  return call;
}

void poison(Call& call, uint8_t bits) {
  for (const int parameter : call.poisoned) runtime::fill_poison(call.arrays[size_t(parameter)], bits);
}

Result<void> launch(const runtime::Module& module, Call& call, runtime::Workspace& workspace, int threads) {
  return module.run(call.program_sizes, call.buffers, workspace, threads);
}

Result<std::vector<Named>> execute(const Compiled& compiled, const runtime::Module& module, const Arguments& arguments,
                                   int threads) {
  LEMMA_TRY(Call call, prepare(compiled, arguments));
  runtime::Workspace workspace;
  LEMMA_TRY_VOID(launch(module, call, workspace, threads));
  return std::move(call.outputs);
}

}  // namespace lemma::driver
