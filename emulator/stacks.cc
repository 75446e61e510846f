#include "emulator/stacks.h"

namespace lemma::emulator {

using boost::context::protected_fixedsize_stack;
using boost::context::stack_context;

Stacks::~Stacks() {
  for (auto& [bytes, stacks] : free_) {
    for (stack_context& stack : stacks) protected_fixedsize_stack(bytes).deallocate(stack);
  }
}

stack_context Stacks::take(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<stack_context>& stacks = free_[bytes];
    if (!stacks.empty()) {
      const stack_context stack = stacks.back();
      stacks.pop_back();
      return stack;
    }
  }
  return protected_fixedsize_stack(bytes).allocate();
}

void Stacks::give_back(size_t bytes, stack_context stack) {
  const std::lock_guard lock(mutex_);
  free_[bytes].push_back(stack);
}

}  // namespace lemma::emulator
