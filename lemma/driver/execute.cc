#include "lemma/driver/execute.h"

#include <limits>
#include <optional>

#include "lemma/tensor/bind.h"

namespace lemma::driver {
namespace {

using base::Result;
using runtime::Array;
using runtime::Named;
using tile::Buffer;
using tile::Space;
using view::Atom;
using view::AtomKind;

bool is_parameter(const Buffer& buffer) {
  return buffer.space == Space::Input || buffer.space == Space::Output || buffer.space == Space::Update;
}

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

// The output of the graph that a written parameter is: by its own name, or by that of the input it takes over.
const tensor::GraphOutput* output_of(const tensor::Graph& graph, const std::string& name) {
  for (const tensor::GraphOutput& output : graph.outputs) {
    if (output.name == name) return &output;
  }
  for (const tensor::GraphOutput& output : graph.outputs) {
    if (!output.updates) continue;
    const auto* input = std::get_if<tensor::Input>(&graph.node(*output.updates));
    if (input && input->name == name) return &output;
  }
  return nullptr;
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

// The array that a parameter is given; Update parameters receive a copy of the input.
Result<Array> argument(const tensor::Graph& graph, const Buffer& buffer, const tensor::GraphOutput* output,
                       const std::vector<Named>& inputs, const std::vector<tensor::Binding>& sizes) {
  if (buffer.space == Space::Input) {
    const Array* given = find(inputs, buffer.name);
    LEMMA_CHECK(given, "a program reads a parameter that its graph does not have");
    if (!buffer.strides.empty()) return *given;
    return runtime::contiguous(*given);
  }
  LEMMA_CHECK(output, "a program writes a parameter that its graph does not have");
  const std::vector<int64_t> extents = evaluate_extents(tensor::extents(graph, output->value), sizes);
  LEMMA_TRY(Array fresh, runtime::allocate(buffer.type, extents, "output '" + output->name + "'"));
  if (buffer.space == Space::Update) {
    const std::string& source = std::get<tensor::Input>(graph.node(*output->updates)).name;
    const Array* given = find(inputs, source);
    LEMMA_TRY(const Array plain, runtime::contiguous(*given));
    std::copy(plain.data(), plain.data() + plain.bytes(), fresh.data());
  }
  return fresh;
}

}  // namespace

Result<Call> prepare(const Compiled& compiled, const Arguments& arguments, int threads) {
  (void)threads;
  const tensor::Graph& graph = compiled.source;
  Call call;
  LEMMA_TRY(call.sizes, infer_sizes(graph, arguments));
  // bind checks ranges and divisors; its graph is not needed.
  if (const auto bound = tensor::bind(graph, call.sizes); !bound) return bound.error();
  LEMMA_TRY_VOID(check_memory(graph, call.sizes));
  LEMMA_TRY_VOID(check_inputs(graph, arguments.inputs, call.sizes));
  ProgramSizes sizes(compiled.program, call.sizes);
  for (const Buffer& buffer : compiled.program.buffers) {
    if (!is_parameter(buffer)) continue;
    const tensor::GraphOutput* output = buffer.space == Space::Input ? nullptr : output_of(graph, buffer.name);
    LEMMA_TRY(Array array, argument(graph, buffer, output, arguments.inputs, call.sizes));
    sizes.set_strides(buffer, array);
    if (output) call.outputs.push_back({output->name, array});
    if (buffer.space == Space::Output) call.poisoned.push_back(int(call.arrays.size()));
    call.buffers.push_back(array.data());
    call.arrays.push_back(std::move(array));
  }
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
  LEMMA_TRY(Call call, prepare(compiled, arguments, threads));
  runtime::Workspace workspace;
  LEMMA_TRY_VOID(launch(module, call, workspace, threads));
  return std::move(call.outputs);
}

}  // namespace lemma::driver
