// Random programs: the derived graph must mean what the program means (by the oracle, in f64), and the compiled program
// must give what the oracle gives. A failure prints its seed and the program cut down to the first value that differs.
//
// LEMMA_RANDOM_SEED and LEMMA_RANDOM_COUNT choose others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "lemma/runtime/host.h"
#include "lemma/runtime/random.h"
#include "tests/random_programs/generate.h"
#include "tests/support/programs.h"

namespace lemma::random_programs {
namespace {

using testing_support::NamedValues;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

NamedValues random_inputs(const tensor::Graph& graph, const std::vector<tensor::Binding>& sizes, uint64_t seed) {
  NamedValues inputs = testing_support::declared_inputs(graph, sizes);
  const int64_t keys = std::max<int64_t>(sizes[1].value, 1);
  for (auto& [name, values] : inputs) {
    const uint64_t own = runtime::seed_of(seed, name);
    int64_t count = 1;
    for (int64_t extent : values.extents) count *= extent;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t high = uint64_t(name == "key" ? keys : 3);
      values.data.push_back(scalar::is_float(values.type) ? runtime::uniform(own, uint64_t(i))
                                                          : double(runtime::integer(own, high, uint64_t(i))));
    }
  }
  return inputs;
}

enum class Check { Derived, Compiled };

struct Outcome {
  std::string wrong;         // empty: all is well
  bool unsupported = false;
};

Outcome outcome_of(const Program& program, const std::vector<size_t>& outputs, uint64_t seed, Check check) {
  const std::string text = print(program, outputs);
  auto graph = testing_support::read_program(text, "random.lemma");
  if (!graph.ok()) return {base::render(graph.error())};
  const NamedValues inputs = random_inputs(*graph, program.sizes, seed);
  auto expected = testing_support::evaluate(*graph, program.sizes, inputs);
  if (!expected.ok()) return {"the oracle: " + base::render(expected.error())};
  driver::CompileOptions options;
  options.target = runtime::host_target();
  NamedValues found;
  if (check == Check::Derived) {
    auto compiled = driver::compile(*graph, options);
    if (!compiled.ok()) return {base::render(compiled.error()), compiled.error().failure == base::Failure::Unsupported};
    auto derived = testing_support::evaluate(compiled->derived, program.sizes, inputs);
    if (!derived.ok()) return {"the oracle on the derived graph: " + base::render(derived.error())};
    found = *derived;
  } else {
    auto runner = testing_support::Runner::make(*graph, options);
    if (!runner.ok()) return {base::render(runner.error()), runner.error().failure == base::Failure::Unsupported};
    auto ran = runner->run(program.sizes, inputs, 1 + int(seed % 2));
    if (!ran.ok()) return {base::render(ran.error())};
    found = *ran;
  }
  for (auto& [name, values] : *expected) {
    if (check == Check::Derived) values.type = scalar::DType::F64;  // compared as computed, not as stored
    const std::string wrong = testing_support::difference(values, found.at(name), check == Check::Derived ? 1e-9 : 1e-4);
    if (!wrong.empty()) return {name + ": " + wrong};
  }
  return {};
}

// The program cut down to the first equation that goes wrong by itself.
std::string reduced(const Program& program, uint64_t seed, Check check) {
  for (size_t i = 0; i < program.equations.size(); ++i) {
    const std::string& name = program.equations[i].name;
    if (name.back() == 'p') continue;  // exists on a part of its points: no output
    const Outcome outcome = outcome_of(program, {i}, seed, check);
    if (!outcome.wrong.empty()) return print(program, {i}) + "\n" + outcome.wrong;
  }
  return print(program);
}

void run_seeds(uint64_t count, Check check) {
  const uint64_t first = from_environment("LEMMA_RANDOM_SEED", 1);
  count = from_environment("LEMMA_RANDOM_COUNT", count);
  uint64_t unsupported = 0;
  int failures = 0;
  for (uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const Program program = generate(seed);
    std::vector<size_t> outputs;
    for (size_t output : program.outputs) {
      if (program.equations[output].name.back() != 'p') outputs.push_back(output);
    }
    if (outputs.empty()) outputs = {program.equations.size() - 1};
    const Outcome outcome = outcome_of(program, outputs, seed, check);
    unsupported += outcome.unsupported;
    if (outcome.wrong.empty() || outcome.unsupported) continue;
    ++failures;
    std::string sizes;
    for (const tensor::Binding& size : program.sizes) sizes += " " + size.name + "=" + std::to_string(size.value);
    ADD_FAILURE() << "seed " << seed << sizes << "\n" << outcome.wrong << "\ncut down:\n" << reduced(program, seed, check);
  }
  // A refusal is honest, but programs of this kind are what the compiler is for.
  EXPECT_LE(unsupported * 10, count) << unsupported << " of " << count << " programs were refused";
}

TEST(RandomPrograms, DerivedGraphsMeanTheSame) { run_seeds(300, Check::Derived); }

TEST(RandomPrograms, CompiledProgramsGiveWhatTheOracleGives) { run_seeds(20, Check::Compiled); }

TEST(Generate, IsDeterministicAndVaried) {
  EXPECT_EQ(print(generate(7)), print(generate(7)));
  EXPECT_NE(print(generate(7)), print(generate(8)));
}

}  // namespace
}  // namespace lemma::random_programs
