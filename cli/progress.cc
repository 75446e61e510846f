#include "cli/progress.h"

#include <chrono>
#include <cstdio>

namespace lemma::cli {

Progress::Progress(const Context& context, std::string what) : context_(context), what_(std::move(what)) {
  if (!context.quiet) thread_ = std::thread([this] { tick(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::step(int64_t done, int64_t of) {
  done_ = done;
  of_ = of;
}

void Progress::tick() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const bool terminal = context_.environment.terminal;
  bool printed = false;
  auto next = start + std::chrono::seconds(1);
  std::unique_lock lock(mutex_);
  while (!ended_.wait_until(lock, next, [this] { return end_; })) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    std::string text = what_ + " ... " + std::to_string(int(elapsed)) + " s";
    if (of_ > 0) text += ", " + std::to_string(100 * done_ / of_) + "%";
    std::fprintf(stderr, terminal ? "\r%s  " : "%s\n", text.c_str());
    std::fflush(stderr);
    printed = true;
    next = Clock::now() + (terminal ? std::chrono::milliseconds(250) : std::chrono::milliseconds(10000));
  }
  if (printed && terminal) std::fprintf(stderr, "\r%*s\r", int(what_.size()) + 24, "");
}

}  // namespace lemma::cli
