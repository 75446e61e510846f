#include "tests/property/campaign.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

#include <unistd.h>

#include "tests/property/batch.h"
#include "tests/property/reduce.h"

namespace lemma::property {
namespace {

// A check that fails ends the process: the handler says on which case.
char current_case[64];
void say_case(int) {
  const auto written = write(2, current_case, sizeof current_case);
  (void)written;
  _exit(134);
}

class Campaign {
 public:
  explicit Campaign(const Plan& plan) : plan_(plan), builds_(builds()) {}

  Report run() {
    const auto start = std::chrono::steady_clock::now();
    for (const int number : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(number, say_case);
    for (uint64_t i = 0; (plan_.count == 0 || i < plan_.count) && going(); ++i) one(i);
    flush();
    flush();
    for (const int number : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(number, SIG_DFL);
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  bool going() const { return int(report_.failures.size()) < plan_.most_failures; }
  bool wanted(const std::string& stage) const { return plan_.stage.empty() || plan_.stage == stage; }
  bool maths_wanted() const { return plan_.stage != "tile" && plan_.stage != "tile_run" && plan_.stage != "c"; }

  void one(uint64_t i) {
    const Case c = make_case(plan_.family, plan_.seed + i * plan_.step);
    ++report_.cases;
    std::snprintf(current_case, sizeof current_case, "in case --family %s --seed %llu\n", std::string(name(plan_.family)).c_str(), (unsigned long long)c.seed);
    if (plan_.stage == "print") {
      std::printf("%s\n", describe(c, plan_.stage).c_str());
      const auto compiled = compile(c, builds_.back().target, [](const std::string& stage, const std::string& text, double) {
        if (stage != "c") std::printf("==== %s\n%s\n", stage.c_str(), text.c_str());
        std::fflush(stdout);
      });
      if (!compiled.ok()) std::printf("%s\n", base::render(compiled.error()).c_str());
      return;
    }
    if (maths_wanted() && i % plan_.maths_share == 0) {
      const Check check = [this](const Case& each) { return check_maths(each, plan_.stage); };
      if (note(c, check(c), [this](const Case& each, const std::string& stage) {
            return check_maths(each, stage == "validate" || stage == "oracle" ? plan_.stage : stage);
          })) return;
    }
    if ((wanted("tile") && i % plan_.tile_share == 0) || (wanted("tile_run") && i % plan_.run_share == 0)) {
      const bool run = wanted("tile_run") && i % plan_.run_share == 0;
      report_.interpreted += run;
      if (note(c, check_tiles(c, run), [run](const Case& each, const std::string&) { return check_tiles(each, run); })) return;
    }
    if (!wanted("c")) return;
    if (!filling_) {
      build_ = builds_[batches_++ % builds_.size()];
      filling_ = std::make_unique<Batch>(build_);
    }
    const Failure f = filling_->add(c);
    if (!f.ok()) note(c, f, c_check(build_));
    if (filling_->size() >= plan_.batch) flush();
  }

  using StageCheck = std::function<Failure(const Case&, const std::string&)>;
  static StageCheck c_check(const Build& build) {
    return [build](const Case& each, const std::string&) { return check_c(each, build); };
  }

  // The batch that compiles is awaited and run while the next one begins to compile.
  void flush() {
    std::unique_ptr<Batch> done = std::move(compiling_);
    const Build build = compiling_build_;
    if (filling_) filling_->start();
    compiling_ = std::move(filling_);
    compiling_build_ = build_;
    if (!done) return;
    report_.compiled += done->size();
    const auto failures = done->finish();
    report_.compiler_seconds += done->compile_seconds();
    for (const auto& [c, f] : failures) {
      if (going()) note(c, f, c_check(build));
    }
    if (plan_.progress) {
      std::fprintf(stderr, "%llu cases, %llu compiled, %llu refused, %zu failures, %.1f s of C compiler\n", (unsigned long long)report_.cases,
                   (unsigned long long)report_.compiled, (unsigned long long)report_.refused, report_.failures.size(), report_.compiler_seconds);
    }
  }

  // Counts and shrinks a failure; true if there is one.
  bool note(const Case& c, const Failure& f, const StageCheck& check) {
    if (f.ok()) return false;
    if (f.unsupported) {
      ++report_.refused;
      if (plan_.progress && report_.refused < 20) std::fprintf(stderr, "refused: seed %llu: %s\n", (unsigned long long)c.seed, f.message.c_str());
      return true;
    }
    std::string text = "seed " + std::to_string(c.seed) + ", stage " + f.stage + ": " + f.message + "\n";
    if (plan_.reduce) {
      const Reduced small = reduce(c, [&](const Case& each) { return check(each, f.stage); });
      if (!small.failure.ok()) text += "shrunk in " + std::to_string(small.attempts) + " attempts to\n" + describe(small.c, f.stage) + small.failure.message + "\n";
      else text += "it does not fail alone\n" + describe(c, f.stage);
    } else {
      text += describe(c, f.stage);
    }
    if (plan_.progress) std::fprintf(stderr, "%s\n", text.c_str());
    report_.failures.push_back(std::move(text));
    return true;
  }

  const Plan plan_;
  const std::vector<Build> builds_;
  Report report_;
  size_t batches_ = 0;
  Build build_, compiling_build_;
  std::unique_ptr<Batch> filling_, compiling_;
};

}  // namespace

Report run(const Plan& plan) { return Campaign(plan).run(); }

}  // namespace lemma::property
