#include "tests/property/batch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "lemma/emit/c.h"
#include "lemma/emit/prelude.h"
#include "lemma/runtime/host.h"
#include "lemma/scalar/convert.h"

namespace lemma::property {

using tensor::Array;

std::vector<Build> builds() {
  std::vector<Build> out;
  Build plain{"plain", {}, "-DLEMMA_SCALAR"};
  plain.target.vector_bytes = 16;
  out.push_back(plain);
  for (const char* name : {"sse2", "avx2", "avx512"}) {
    const auto target = runtime::named_target(name);
    if (target.ok() && runtime::runs_here(*target).ok()) out.push_back({name, *target, target->compiler_flags});
  }
  return out;
}

namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether a unit defines this word itself; all else comes from the prelude or is local.
bool defined_by_unit(const std::string& word) {
  for (const char* name : {"lm_env", "lm_bind_sizes", "lm_scratch_bytes", "lm_slice_bytes", "lm_run", "lemma_run",
                           "lemma_workspace", "lemma_message"}) {
    if (word == name) return true;
  }
  return word.starts_with("lm_block_") || word.starts_with("lm_tile_f32_") || word.starts_with("lm_tile_bf16_") ||
         word.starts_with("lm_tile_i16_") || word.starts_with("lm_taps_f32_") ||
         word == "lm_tile_edge_f32";
}

// A unit's own part, every global name ending in _u<number>.
std::string own_part(const std::string& unit, size_t number) {
  const size_t begin = unit.find("typedef struct lm_env");
  LEMMA_CHECK(begin != std::string::npos, "a unit has no environment");
  std::string out;
  for (size_t i = begin; i < unit.size();) {
    if (!in_word(unit[i])) {
      out += unit[i++];
      continue;
    }
    size_t end = i;
    while (end < unit.size() && in_word(unit[end])) ++end;
    const std::string word = unit.substr(i, end - i);
    out += word;
    if (defined_by_unit(word)) out += "_u" + std::to_string(number);
    i = end;
  }
  return out;
}

struct Job {
  Case c;
  std::vector<Array> expected;
  driver::Call call;
};

// Memory that ends at a page nobody may touch.
struct Fenced {
  explicit Fenced(int64_t bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), body = (size_t(bytes) + page - 1) / page * page;
    char* base = static_cast<char*>(mmap(nullptr, body + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    LEMMA_CHECK(base != MAP_FAILED, "no memory for a test's buffer");
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + body, page, PROT_NONE);
    data = base + page + body - size_t(bytes);
  }
  char* data;  // never freed: the process ends soon
};

std::string run_job(const Job& job, void* library, size_t number, int threads, int fill) {
  const std::string suffix = "_u" + std::to_string(number);
  using Run = int32_t (*)(const int64_t*, void* const*, void*, int32_t);
  using Workspace = int64_t (*)(const int64_t*, int32_t);
  const auto run = reinterpret_cast<Run>(dlsym(library, ("lemma_run" + suffix).c_str()));
  const auto workspace = reinterpret_cast<Workspace>(dlsym(library, ("lemma_workspace" + suffix).c_str()));
  if (!run || !workspace) return "the unit lacks its entry points";
  const driver::Call& call = job.call;
  std::vector<void*> buffers;
  for (size_t b = 0; b < call.arrays.size(); ++b) {
    const runtime::Array& a = call.arrays[b];
    if (!a.contiguous()) {
      buffers.push_back(call.buffers[b]);
      continue;
    }
    buffers.push_back(Fenced(a.bytes()).data);
    const bool output = std::find(call.poisoned.begin(), call.poisoned.end(), int(b)) != call.poisoned.end();
    if (a.bytes() == 0) continue;
    if (!output) std::memcpy(buffers.back(), a.data(), size_t(a.bytes()));
    else std::memset(buffers.back(), scalar::is_float(a.type) ? 0xff : a.type == scalar::DType::Bool ? fill & 1 : fill, size_t(a.bytes()));
  }
  const int64_t bytes = workspace(call.program_sizes.data(), threads);
  if (bytes < 0 || bytes > (int64_t(1) << 31)) return "the workspace is " + std::to_string(bytes) + " bytes";
  Fenced space((bytes + 63) / 64 * 64);
  std::memset(space.data, 0xff, size_t(bytes));
  const int32_t code = run(call.program_sizes.data(), buffers.data(), space.data, threads);
  if (code) return "it ended with code " + std::to_string(code);
  for (size_t o = 0; o < call.outputs.size(); ++o) {
    const runtime::Array& array = call.outputs[o].array;
    size_t buffer = 0;
    while (buffer < call.arrays.size() && call.arrays[buffer].data() != array.data()) ++buffer;
    if (buffer == call.arrays.size()) return "output " + call.outputs[o].name + " is no parameter";
    Array found;
    found.type = array.type;
    found.extents = array.extents;
    for (int64_t i = 0; i < array.count(); ++i) found.data.push_back(scalar::load(array.type, buffers[buffer], i));
    const std::string wrong = difference(call.outputs[o].name, job.expected[o], found, tolerance(job.c, array.type),
                                         job.c.allow());
    if (!wrong.empty()) return wrong + " (" + std::to_string(threads) + " threads)";
  }
  return {};
}

std::string run_all_ways(const Job& job, void* library, size_t number) {
  for (const int threads : {1, 3}) {
    const std::string wrong = run_job(job, library, number, threads, threads == 1 ? 0xff : 0x5a);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

double child_seconds() {
  rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace

struct Batch::State {
  Build build;
  std::vector<Job> jobs;
  std::string body, folder;
  pid_t compiler = -1;
  double seconds = 0;

  // Runs jobs from `first` in a child; returns where to go on.
  size_t run_from(size_t first, std::vector<std::pair<Case, Failure>>& failures) {
    int ends[2];
    LEMMA_CHECK(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    LEMMA_CHECK(child >= 0, "no process");
    if (child == 0) {
      close(ends[0]);
      run_child(first, ends[1]);
    }
    close(ends[1]);
    FILE* in = fdopen(ends[0], "r");
    size_t last = first;
    char line[1024];
    while (std::fgets(line, sizeof line, in)) {
      size_t number = 0;
      int at = 0;
      if (std::sscanf(line, "start %zu", &number) == 1) last = number;
      if (std::sscanf(line, "wrong %zu %n", &number, &at) == 1) failures.push_back({jobs[number].c, {"c", "(" + build.name + ") " + (line + at)}});
    }
    std::fclose(in);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return jobs.size();
    const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "exit code " + std::to_string(WEXITSTATUS(status));
    failures.push_back({jobs[last].c, {"c", "(" + build.name + ") the process ended with " + how}});
    return last + 1;
  }

  [[noreturn]] void run_child(size_t first, int out) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    void* library = dlopen((folder + "/batch.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) dprintf(out, "wrong %zu %s\n", first, dlerror());
    for (size_t i = first; library && i < jobs.size(); ++i) {
      dprintf(out, "start %zu\n", i);
      alarm(60);
      const std::string wrong = run_all_ways(jobs[i], library, i);
      if (!wrong.empty()) dprintf(out, "wrong %zu %s\n", i, wrong.c_str());
    }
    _exit(0);
  }
};

Batch::Batch(Build build) : state_(std::make_unique<State>()) {
  state_->build = std::move(build);
  std::string pattern = "/tmp/lemma-batch-XXXXXX";
  LEMMA_CHECK(mkdtemp(pattern.data()) != nullptr, "no folder for a batch");
  state_->folder = pattern;
}

Batch::~Batch() {
  if (std::getenv("LEMMA_KEEP")) return;
  for (const char* file : {"/batch.c", "/batch.so", "/batch.log"}) std::remove((state_->folder + file).c_str());
  rmdir(state_->folder.c_str());
}

size_t Batch::size() const { return state_->jobs.size(); }
double Batch::compile_seconds() const { return state_->seconds; }

Failure Batch::add(Case c) {
  const auto failed = [](const char* stage, const base::Diagnostic& d) {
    return Failure{stage, base::render(d), d.failure == base::Failure::Unsupported};
  };
  const Inputs inputs = make_inputs(c);
  auto expected = evaluate(c.graph(), c.sizes, inputs);
  if (!expected.ok()) return failed("oracle", expected.error());
  auto compiled = compile(c, state_->build.target);
  if (!compiled.ok()) return failed("c", compiled.error());
  auto call = prepare(c, *compiled, inputs);
  if (!call.ok()) return failed("c", call.error());
  state_->body += own_part(compiled->c_source, state_->jobs.size());
  state_->jobs.push_back({std::move(c), *std::move(expected), *std::move(call)});
  return {};
}

void Batch::start() {
  State& s = *state_;
  if (s.jobs.empty()) return;
  std::ofstream file(s.folder + "/batch.c");
  file << "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
       << "#if defined(_OPENMP)\nint omp_get_thread_num(void);\n#endif\n"
       << emit::prelude_for(s.body, s.build.target.vector_bytes) << "\n" << s.body;
  file.close();
  std::string().swap(s.body);
  s.compiler = fork();
  LEMMA_CHECK(s.compiler >= 0, "no process");
  if (s.compiler != 0) return;
  const std::string command = std::string("exec gcc -std=gnu11 -O") + (s.build.name == "plain" ? "0" : "1") + " -fno-math-errno -fno-trapping-math -ffp-contract=fast -fPIC -shared -w -fopenmp " +
                              s.build.flags + " -o " + s.folder + "/batch.so " + s.folder + "/batch.c -lm > " + s.folder + "/batch.log 2>&1";
  execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  _exit(127);
}

std::vector<std::pair<Case, Failure>> Batch::finish() {
  State& s = *state_;
  std::vector<std::pair<Case, Failure>> failures;
  if (s.jobs.empty()) return failures;
  const double before = child_seconds();
  int status = 0;
  waitpid(s.compiler, &status, 0);
  s.seconds = child_seconds() - before;
  if (status != 0) {
    std::ifstream log(s.folder + "/batch.log");
    std::string said((std::istreambuf_iterator<char>(log)), {});
    // Every global name ends in _u<job>.
    size_t job = 0;
    if (const size_t at = said.find("_u"); at != std::string::npos) job = std::strtoull(said.c_str() + at + 2, nullptr, 10);
    if (job >= s.jobs.size()) job = 0;
    failures.push_back({s.jobs[job].c, {"c", "(" + s.build.name + ") the C compiler refuses it: " + said.substr(0, 2000)}});
    return failures;
  }
  for (size_t at = 0; at < s.jobs.size();) at = s.run_from(at, failures);
  return failures;
}

Failure check_c(const Case& c, const Build& build) {
  Batch batch(build);
  if (Failure f = batch.add(c); !f.ok()) return f;
  batch.start();
  const auto failures = batch.finish();
  return failures.empty() ? Failure{} : failures[0].second;
}

}  // namespace lemma::property
