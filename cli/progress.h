// Says on standard error what a long step is doing: nothing within the first second, then the seconds, over and over on
// one line of a terminal, or a line now and then in a log.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "cli/command.h"

namespace lemma::cli {

class Progress {
 public:
  Progress(const Context& context, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(int64_t done, int64_t of);  // from the thread that works

 private:
  void tick();
  const Context& context_;
  std::string what_;
  std::atomic<int64_t> done_{0}, of_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace lemma::cli
