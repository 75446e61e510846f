// Stacks of fibres, kept from run to run: mapping and first touching one takes longer than most small kernels run.
#pragma once

#include <boost/context/protected_fixedsize_stack.hpp>
#include <map>
#include <mutex>
#include <vector>

namespace lemma::emulator {

// Every stack has a page below it that stops the process when a thread's locals overflow. Safe among threads.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  boost::context::stack_context take(size_t bytes);
  void give_back(size_t bytes, boost::context::stack_context stack);

 private:
  std::mutex mutex_;
  std::map<size_t, std::vector<boost::context::stack_context>> free_;  // by the bytes asked for
};

// As Boost.Context wants it: copied into the fibre, whose end calls deallocate.
struct StackAllocator {
  Stacks* stacks;
  size_t bytes;
  boost::context::stack_context allocate() { return stacks->take(bytes); }
  void deallocate(boost::context::stack_context& stack) { stacks->give_back(bytes, stack); }
};

}  // namespace lemma::emulator
