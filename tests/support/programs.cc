// Programs end to end, for tests.
#include "tests/support/programs.h"

#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "lemma/driver/execute.h"
#include "lemma/language/language.h"
#include "lemma/runtime/compiler.h"
#include "lemma/runtime/host.h"
#include "lemma/runtime/module.h"
#include "lemma/scalar/convert.h"
#include "lemma/tensor/bind.h"

namespace lemma::testing_support {
namespace {

using base::Result;
using scalar::DType;
using tensor::Binding;

// A folder for compiled kernels that goes with the process.
class CacheFolder {
 public:
  CacheFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "lemma-test-XXXXXX";
    path = mkdtemp(pattern.data());
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

runtime::Cache& shared_cache() {
  static CacheFolder folder;
  static runtime::Cache cache({.directory = folder.path});
  return cache;
}

const Binding* find(const std::vector<Binding>& sizes, const std::string& name) {
  for (const Binding& binding : sizes) {
    if (binding.name == name) return &binding;
  }
  return nullptr;
}

scalar::Scalar scalar_of(DType type, double value) {
  return scalar::is_float(type) ? scalar::from_float(value) : scalar::from_int(int64_t(value));
}

tensor::Array oracle_array(const Values& values) {
  tensor::Array array;
  array.type = values.type;
  array.extents = values.extents;
  // f32 inputs stay as exact as they were given; what is narrower is what storage holds.
  const bool narrow = scalar::is_float(values.type) && scalar::bits(values.type) < 32;
  for (double value : values.data) {
    array.data.push_back(scalar_of(values.type, narrow ? scalar::rounded(values.type, value) : value));
  }
  return array;
}

Values values_of(const tensor::Array& array) {
  Values values{array.type, array.extents, {}};
  for (size_t i = 0; i < array.data.size(); ++i) {
    const bool present = array.present.empty() || array.present[i];
    const double value = scalar::is_float(array.type) ? array.data[i].f : double(array.data[i].i);
    values.data.push_back(present ? value : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

double usual_bound(const Values& expected) {
  if (!scalar::is_float(expected.type)) return 0;
  double largest = 1;
  for (double value : expected.data) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  switch (expected.type) {
    case DType::F64: return 1e-5 * largest;  // computed from f32 operands
    case DType::F32: return 2e-5 * largest;
    case DType::F16: return 1e-3 * largest;
    case DType::BF16: return 8e-3 * largest;
    default: return 0.13 * largest;
  }
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return base::system_failure("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<tensor::Graph> read_program(const std::string& text, const std::string& path) {
  return language::parse(text, path);
}

NamedValues declared_inputs(const tensor::Graph& graph, const std::vector<Binding>& sizes) {
  NamedValues inputs;
  for (const tensor::Node& node : graph.nodes) {
    if (const auto* input = std::get_if<tensor::Input>(&node)) {
      Values values{input->type, driver::evaluate_extents(input->extents, in_order(graph, sizes)), {}};
      inputs[input->name] = std::move(values);
    }
  }
  return inputs;
}

Result<NamedValues> evaluate(const tensor::Graph& graph, const std::vector<Binding>& sizes, const NamedValues& inputs) {
  LEMMA_TRY(tensor::Graph bound, tensor::bind(graph, in_order(graph, sizes)));
  LEMMA_TRY(tensor::Oracle oracle, tensor::Oracle::make(bound));
  for (const auto& [name, values] : inputs) LEMMA_TRY_VOID(oracle.set_input(name, oracle_array(values)));
  LEMMA_TRY(const std::vector<tensor::Array> arrays, oracle.outputs());
  NamedValues outputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    outputs[graph.outputs[i].name] = values_of(arrays[i]);
    outputs[graph.outputs[i].name].type = graph.outputs[i].type;
  }
  return outputs;
}

std::vector<Binding> in_order(const tensor::Graph& graph, const std::vector<Binding>& sizes) {
  std::vector<Binding> out;
  for (const tensor::Size& size : graph.sizes) {
    if (const Binding* binding = find(sizes, size.name)) out.push_back(*binding);
  }
  return out;
}

struct Runner::State {
  driver::Compiled compiled;
  runtime::Module module;
};

Result<Runner> Runner::make(const tensor::Graph& graph, const driver::CompileOptions& options) {
  LEMMA_TRY(driver::Compiled compiled, driver::compile(graph, options));
  return load(std::move(compiled), options.target);
}

Result<Runner> Runner::load(driver::Compiled compiled, const tile::Target& target) {
  const runtime::CompilerOptions compiler_options;
  LEMMA_TRY(const runtime::Compiler compiler, runtime::find_compiler(compiler_options, shared_cache()));
  LEMMA_TRY(runtime::Module module, runtime::build_module(compiled.c_source, compiler, target, compiler_options,
                                                          shared_cache()));
  Runner runner;
  runner.state_ = std::make_shared<const State>(State{std::move(compiled), std::move(module)});
  return runner;
}

const driver::Compiled& Runner::compiled() const { return state_->compiled; }

Result<runtime::Array> guarded_array(const Values& values) {
  constexpr int64_t band = 64;
  int64_t count = 1;
  for (int64_t extent : values.extents) count *= extent;
  LEMMA_TRY(const runtime::Array whole, runtime::allocate(values.type, {count + 2 * band}));
  runtime::fill_poison(whole, 0x55);
  LEMMA_TRY(runtime::Array inner, runtime::view(whole, band, values.extents, runtime::row_major(values.extents)));
  for (int64_t i = 0; i < count; ++i) {
    if (scalar::is_float(values.type)) runtime::set_float(inner, i, values.data[size_t(i)]);
    else runtime::set_int(inner, i, int64_t(values.data[size_t(i)]));
  }
  return inner;
}

Values values_of(const runtime::Array& array) {
  Values values{array.type, array.extents, {}};
  for (int64_t i = 0; i < array.count(); ++i) {
    values.data.push_back(scalar::is_float(array.type) ? runtime::float_at(array, i) : double(runtime::int_at(array, i)));
  }
  return values;
}

Result<std::vector<runtime::Named>> Runner::run_arrays(const std::vector<Binding>& sizes, const NamedValues& inputs,
                                                       int threads) const {
  driver::Arguments arguments;
  arguments.sizes = in_order(state_->compiled.source, sizes);
  for (const auto& [name, values] : inputs) {
    LEMMA_TRY(runtime::Array array, guarded_array(values));
    arguments.inputs.push_back({name, std::move(array)});
  }
  return driver::execute(state_->compiled, state_->module, arguments, threads);
}

Result<NamedValues> Runner::run(const std::vector<Binding>& sizes, const NamedValues& inputs, int threads) const {
  LEMMA_TRY(const std::vector<runtime::Named> arrays, run_arrays(sizes, inputs, threads));
  NamedValues outputs;
  for (const runtime::Named& named : arrays) outputs[named.name] = values_of(named.array);
  return outputs;
}

std::string difference(const Values& expected, const Values& found, double bound, bool stored_found) {
  if (expected.data.size() != found.data.size()) return "the counts of elements differ";
  if (bound < 0) bound = usual_bound(expected);
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    const double stored = stored_found && scalar::is_float(expected.type) ? scalar::rounded(expected.type, expected.data[i]) : expected.data[i];
    const double got = found.data[i];
    double error = std::fabs(stored - got);
    if (std::isnan(stored) && std::isnan(got)) error = 0;
    else if (stored == got) error = 0;
    else if (!std::isfinite(stored) || !std::isfinite(got)) error = std::numeric_limits<double>::infinity();
    if (error > worst) {
      worst = error;
      where = i;
    }
  }
  if (worst <= bound) return "";
  std::ostringstream text;
  text.precision(9);
  text << "element " << where << " is " << found.data[where] << ", expected " << expected.data[where] << " (bound " << bound
       << ")";
  return text.str();
}

}  // namespace lemma::testing_support
