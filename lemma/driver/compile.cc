#include "lemma/driver/compile.h"

#include <algorithm>
#include <chrono>

#include "lemma/base/check.h"
#include "lemma/driver/roundings.h"
#include "lemma/emit/c.h"
#include "lemma/lower/lower.h"
#include "lemma/rewrite/passes.h"
#include "lemma/rewrite/round_stores.h"
#include "lemma/schedule/schedule.h"
#include "lemma/tensor/print.h"
#include "lemma/tensor/requirements.h"
#include "lemma/tile/print.h"
#include "lemma/tile/validate.h"

namespace lemma::driver {
namespace {

// Seconds since the last call, and the text only if somebody listens.
class Stages {
 public:
  explicit Stages(const Trace& trace) : trace_(trace), last_(std::chrono::steady_clock::now()) {}

  template <class Text>
  void done(const std::string& stage, const Text& text) {
    const auto now = std::chrono::steady_clock::now();
    if (trace_) trace_(stage, text(), std::chrono::duration<double>(now - last_).count());
    last_ = std::chrono::steady_clock::now();
  }

 private:
  const Trace& trace_;
  std::chrono::steady_clock::time_point last_;
};

// What the sizes must say for reads to stay inside. A rewrite may read where the source would not (a factor that left an
// empty sum), so the derived graph is asked as well; what only its forms leave open the source has answered.
void require_reads(Compiled& out) {
  const tensor::Requirements written = tensor::requirements(out.source), derived = tensor::requirements(out.derived);
  out.reads_decided = written.complete;
  for (const tensor::Requirements* all : {&written, &derived}) {
    for (const tensor::Requirement& r : all->list) {
      const auto same = [&](const tile::Assert& a) { return a.condition == r.condition; };
      std::vector<tile::Assert>& known = out.program.requirements;
      if (std::none_of(known.begin(), known.end(), same)) known.push_back({{}, r.condition, r.message});
    }
  }
}

}  // namespace

base::Result<Compiled> compile(tensor::Graph graph, const CompileOptions& options, const Trace& trace) {
  Compiled out;
  Stages stages(trace);
  const rewrite::Context context{options.allow, &out.decisions};

  out.source = std::move(graph);
  stages.done("maths", [&] { return tensor::print(out.source); });

  out.derived = options.derive ? rewrite::derive(out.source, context, [&](std::string_view pass, const tensor::Graph& g, double) {
    stages.done(std::string(pass), [&] { return tensor::print(g); });
  }) : rewrite::round_stores(out.source, context);

  schedule::Schedule schedule;
  if (options.schedule) {
    LEMMA_TRY(schedule, schedule::parse(*options.schedule, out.derived, options.target, options.schedule_file));
  } else if (options.simple) {
    schedule = schedule::simple(out.derived);
  } else {
    schedule = schedule::defaults(out.derived, context, options.target);
  }
  out.schedule = schedule::print(schedule, out.derived);
  stages.done("schedule", [&] { return out.schedule; });

  LEMMA_TRY(out.program, lower::lower(out.derived, schedule, options.target));
  require_reads(out);
  if (const auto valid = tile::validate(out.program); !valid) {
    LEMMA_CHECK(false, base::render(valid.error()) + tile::print(out.program));
  }
  for (const Kept& k : kept_narrow(out.program)) {
    out.decisions.push_back({"lower", k.buffer, true, "kept in " + std::string(scalar::name(k.type)) + " inside a block, where the target multiplies it: each value is rounded once more"});
  }
  stages.done("tile", [&] { return tile::print(out.program); });

  if (options.target.device) return out;
  tile::Program named = out.program;
  if (named.name.empty()) named.name = options.name;
  LEMMA_TRY(out.c_source, emit::emit_c(named, {.target = options.target}));
  stages.done("c", [&] { return out.c_source; });
  return out;
}

}  // namespace lemma::driver
