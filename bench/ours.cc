// Lemma behind the protocol of server.h (variant=lemma): the same works as the peers', as programs in the language,
// derived, compiled and loaded outside the timing. One timed call is one launch, as a C++ user makes it.
//
// Options beside the sizes: derive=0 (no rewrites), bound=1 (sizes become constants before compiling).
#include <filesystem>

#include "bench/server.h"
#include "lemma/driver/execute.h"
#include "lemma/language/language.h"
#include "lemma/runtime/compiler.h"
#include "lemma/runtime/host.h"
#include "lemma/tensor/bind.h"

namespace {

using namespace lemma;
using bench::Buffer;
using bench::Job;
using bench::Request;

// A work as a program: TYPE stands for the element type; `names` maps the protocol's size names to the program's.
struct Work {
  const char* name;
  const char* text;
  std::vector<std::pair<std::string, std::string>> sizes;  // program's name (in its order), protocol's
  struct Input {
    std::string name;
    int seed;
    float scale = 1;
    bool bytes = false;   // 0 .. 255 instead of [-1, 1)
  };
  std::vector<Input> inputs;
};

const std::vector<Work>& works() {
  static const std::vector<Work> table = {
      {"matmul",
       "dim M, N, K\n"
       "input a[M, K], b[K, N] : TYPE\n"
       "c[m, n] = sum(k) a[m, k] * b[k, n]\n"
       "output c : TYPE\n",
       {{"M", "m"}, {"N", "n"}, {"K", "k"}},
       {{"a", 1}, {"b", 2}}},
      {"epilogue",
       "dim M, N, K\n"
       "input a[M, K], b[K, N], bias[N], residual[M, N]\n"
       "z[m, n] = sum(k) a[m, k] * b[k, n]\n"
       "c[m, n] = gelu(z[m, n] + bias[n]) + residual[m, n]\n"
       "output c\n",
       {{"M", "m"}, {"N", "n"}, {"K", "k"}},
       {{"a", 1}, {"b", 2}, {"bias", 3}, {"residual", 4}}},
      {"attention",
       "dim G, H, N, D\n"
       "input q[G, H, N, D], k[G, N, D], v[G, N, D] : TYPE\n"
       "s[g, h, i, j] = sum(d) q[g, h, i, d] * k[g, j, d] / sqrt(D)\n"
       "p[g, h, i, j] = softmax(jDOMAIN) s[g, h, i, j]\n"
       "o[g, h, i, c] = sum(j) p[g, h, i, j] * v[g, j, c]\n"
       "output o : TYPE\n",
       {{"G", "g"}, {"H", "h"}, {"N", "n"}, {"D", "d"}},
       {{"q", 1, 2}, {"k", 2, 2}, {"v", 3}}},
      {"softmax",
       "dim N, M\n"
       "input x[N, M]\n"
       "y[i, j] = softmax(j) x[i, j]\n"
       "output y\n",
       {{"N", "rows"}, {"M", "width"}},
       {{"x", 1, 4}}},
      {"layer_norm",
       "dim N, M\n"
       "input x[N, M], w[M], b[M]\n"
       "m[i] = mean(j) x[i, j]\n"
       "s[i] = variance(j) x[i, j]\n"
       "y[i, j] = (x[i, j] - m[i]) * rsqrt(s[i] + 1e-5) * w[j] + b[j]\n"
       "output y\n",
       {{"N", "rows"}, {"M", "width"}},
       {{"x", 1}, {"w", 2}, {"b", 3}}},
      {"rms_norm",
       "dim N, M\n"
       "input x[N, M], w[M]\n"
       "s[i] = mean(j) (x[i, j] * x[i, j])\n"
       "y[i, j] = x[i, j] * rsqrt(s[i] + 1e-5) * w[j]\n"
       "output y\n",
       {{"N", "rows"}, {"M", "width"}},
       {{"x", 1}, {"w", 2}}},
      {"copy",
       "dim N, M\n"
       "input x[N, M]\n"
       "y[i, j] = x[i, j]\n"
       "output y\n",
       {{"N", "rows"}, {"M", "width"}},
       {{"x", 1}}},
      {"cumsum",
       "dim N, M\n"
       "input x[N, M]\n"
       "y[i, j] = cumsum(i) x[i, j]\n"
       "output y\n",
       {{"N", "rows"}, {"M", "width"}},
       {{"x", 1}}},
      {"conv",
       "dim B, H, C, O\n"
       "input x[B, H, H, C], w[3, 3, C, O] : TYPE\n"
       "y[b, i < H, j < H, o] = sum(r, s, c) x[b, i + r - 1, j + s - 1, c]? * w[r, s, c, o]\n"
       "output y : TYPE\n",
       {{"B", "batch"}, {"H", "hw"}, {"C", "c"}, {"O", "o"}},
       {{"x", 1}, {"w", 2}}},
      {"neighbours",
       "dim R, Q, C\n"
       "input t[R, C], q[Q, C]\n"
       "norm[r] = sum(c) t[r, c] * t[r, c]\n"
       "dot[i, r] = sum(c) q[i, c] * t[r, c]\n"
       "(far, near)[i, slot] = topk[5](r) (2 * dot[i, r] - norm[r])\n"
       "y[i, slot] = -far[i, slot]\n"
       "output y\n",
       {{"R", "r"}, {"Q", "q"}, {"C", "width"}},
       {{"t", 1, 1, true}, {"q", 2, 1, true}}},
  };
  return table;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The protocol's sizes as the peers default them.
int64_t size_of(const Request& request, const std::string& name) {
  if (request.work == "attention" && (name == "g" || name == "h")) {
    const int64_t heads = request.size("h", 1), groups = request.size("g", heads);
    return name == "g" ? groups : heads / groups;
  }
  if (name == "batch") return request.size(name, 1);
  if (name == "o") return request.size(name, request.size("c"));
  if (name == "width") return request.size(name, 784);
  return request.size(name);
}

base::Result<runtime::Array> input_array(const Work::Input& input, scalar::DType type, std::vector<int64_t> extents) {
  LEMMA_TRY(const runtime::Array array, runtime::allocate(type, std::move(extents), input.name));
  for (int64_t i = 0; i < array.count(); ++i) {
    const float value = input.bytes ? float((bench::hash(uint64_t(input.seed), uint64_t(i)) >> 33) % 256)
                                    : input.scale * bench::uniform(uint64_t(input.seed), uint64_t(i));
    runtime::set_float(array, i, value);
  }
  return array;
}

// Everything a call needs, kept alive by the job.
struct Ready {
  driver::Compiled compiled;
  std::optional<runtime::Module> module;
  driver::Call call;
  runtime::Workspace workspace;
};

base::Result<std::shared_ptr<Ready>> prepare(const Work& work, const Request& request) {
  std::string text = work.text;
  replace_all(text, "TYPE", request.text("type", "f32"));
  replace_all(text, "DOMAIN", request.size("causal", 0) ? " : j <= i" : "");
  LEMMA_TRY(tensor::Graph graph, language::parse(text, work.name));
  std::vector<tensor::Binding> sizes;
  for (const auto& [ours, theirs] : work.sizes) sizes.push_back({ours, size_of(request, theirs)});
  driver::Arguments arguments;
  for (const tensor::Node& node : graph.nodes) {
    const auto* input = std::get_if<tensor::Input>(&node);
    if (!input) continue;
    for (const Work::Input& filled : work.inputs) {
      if (filled.name != input->name) continue;
      LEMMA_TRY(runtime::Array array, input_array(filled, input->type, driver::evaluate_extents(input->extents, sizes)));
      arguments.inputs.push_back({input->name, std::move(array)});
    }
  }
  if (request.size("bound", 0)) {
    LEMMA_TRY(graph, tensor::bind(graph, sizes));
  } else {
    arguments.sizes = sizes;
  }
  driver::CompileOptions options;
  options.target = runtime::host_target();
  options.derive = request.size("derive", 1) != 0;
  auto ready = std::make_shared<Ready>();
  LEMMA_TRY(ready->compiled, driver::compile(graph, options));
  runtime::Cache cache({.directory = std::filesystem::current_path() / "out" / "bench-kernels"});
  const runtime::CompilerOptions compiler_options;
  LEMMA_TRY(const runtime::Compiler compiler, runtime::find_compiler(compiler_options, cache));
  LEMMA_TRY(ready->module,
            runtime::build_module(ready->compiled.c_source, compiler, options.target, compiler_options, cache));
  LEMMA_TRY(ready->call, driver::prepare(ready->compiled, arguments));
  return ready;
}

Job make(const Request& request) {
  Job job;
  for (const Work& work : works()) {
    if (request.work != work.name) continue;
    auto prepared = prepare(work, request);
    if (!prepared.ok()) {
      job.error = prepared.error().message;
      return job;
    }
    const std::shared_ptr<Ready> ready = *prepared;
    const int threads = request.threads();
    job.call = [ready, threads] {
      const base::Result<void> result = driver::launch(*ready->module, ready->call, ready->workspace, threads);
      if (!result.ok()) std::fprintf(stderr, "%s", base::render(result.error()).c_str());
    };
    job.result = [ready] {
      const runtime::Array& array = ready->call.outputs[0].array;
      std::vector<float> values;
      for (int64_t i = 0; i < array.count(); ++i) values.push_back(float(runtime::float_at(array, i)));
      return values;
    };
    return job;
  }
  return job;
}

}  // namespace

int main() { return bench::serve(make); }
