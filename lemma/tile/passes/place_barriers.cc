#include "lemma/tile/passes/place_barriers.h"

#include <algorithm>
#include <set>

#include "lemma/tile/edit.h"
#include "lemma/tile/effects.h"
#include "lemma/tile/fragments.h"

namespace lemma::tile {
namespace {

// What has happened since the last barrier.
struct Since {
  std::set<int> written, read;
  void join(const Since& other) {
    written.insert(other.written.begin(), other.written.end());
    read.insert(other.read.begin(), other.read.end());
  }
};

class Placer {
 public:
  explicit Placer(const Program& program) : program_(program) {}

  // Blocks of the grid follow one another on the same threads.
  void kernel(Kernel& k) {
    Since since;
    repeated(k.body, since);
    k.hints.synchronised = true;
  }

 private:
  bool is_common(int b) const {
    const Buffer& buffer = program_.buffers[size_t(b)];
    return !in_registers(buffer) && !buffer.hints.ring && buffer.space != Space::Input;
  }

  // A body that runs again and again: what a turn leaves meets the next one.
  void repeated(Block& body, Since& since) {
    Since after = since;
    Block once = body;
    walk(once, after);
    after.join(since);
    walk(body, after);
    since.join(after);
  }

  void walk(Block& block, Since& since) {
    Block out;
    for (Stmt& stmt : block) {
      if (std::holds_alternative<Barrier>(stmt)) since = {};
      const Effects own = effects(stmt);
      const auto meets = [&](const std::set<int>& touched, const std::set<int>& before) {
        return std::any_of(touched.begin(), touched.end(), [&](int b) { return is_common(b) && before.count(b); });
      };
      if (meets(own.reads, since.written) || meets(own.writes, since.written) || meets(own.writes, since.read)) {
        out.push_back(Barrier{});
        since = {};
      }
      since.read.insert(own.reads.begin(), own.reads.end());
      since.written.insert(own.writes.begin(), own.writes.end());
      if (auto* loop = std::get_if<For>(&stmt)) {
        repeated(loop->body, since);
      } else if (auto* branch = std::get_if<If>(&stmt)) {
        Since other = since;
        walk(branch->then, since);
        walk(branch->otherwise, other);
        since.join(other);
      }
      out.push_back(std::move(stmt));
    }
    block = std::move(out);
  }

  const Program& program_;
};

}  // namespace

Program place_barriers(Program program) {
  Placer placer(program);
  for (Kernel& k : program.kernels) placer.kernel(k);
  return program;
}

}  // namespace lemma::tile
