#include "lemma/tile/effects.h"

#include "lemma/base/match.h"
#include "lemma/tile/edit.h"

namespace lemma::tile {

Effects effects(const Stmt& stmt) {
  Effects out;
  const auto read = [&](const std::vector<Access>& accesses) {
    for (const Access& a : accesses) out.reads.insert(a.buffer);
  };
  const auto write = [&](const std::vector<Store>& stores) {
    for (const Store& s : stores) {
      out.writes.insert(s.to.buffer);
      if (s.combine) out.combines.insert(s.to.buffer);
    }
  };
  const auto fold = [&](const auto& s) {
    read(s.reads);
    for (const Access& a : s.states) {
      out.writes.insert(a.buffer);
      if (s.accumulate) out.reads.insert(a.buffer);
    }
  };
  base::match(static_cast<const StmtVariant&>(stmt),
      [&](const Let& s) { read(s.reads); },
      [&](const Copy& s) {
        out.reads.insert(s.from.buffer);
        out.writes.insert(s.to.buffer);
      },
      [&](const Map& s) {
        read(s.reads);
        write(s.stores);
      },
      [&](const Reduce& s) { fold(s); },
      [&](const Scan& s) {
        fold(s);
        write(s.stores);
      },
      [&](const Gemm& s) {
        out.reads.insert({s.a.buffer, s.b.buffer});
        out.writes.insert(s.acc.buffer);
        if (s.accumulate) out.reads.insert(s.acc.buffer);
      },
      [&](const If& s) { read(s.reads); },
      [&](const Assert& s) { read(s.reads); },
      [&](const Print& s) { read(s.reads); },
      [&](const Combine& s) {
        out.reads.insert(s.from.buffer);
        out.writes.insert(s.to.buffer);
        out.combines.insert(s.to.buffer);
      },
      [&](const Extern& s) {
        out.reads.insert(s.reads.begin(), s.reads.end());
        out.writes.insert(s.writes.begin(), s.writes.end());
      },
      [&](const auto&) {});
  return out;
}

Effects effects(const Block& block) {
  Effects out;
  visit(block, [&](const Stmt& stmt) {
    const Effects own = effects(stmt);
    out.reads.insert(own.reads.begin(), own.reads.end());
    out.writes.insert(own.writes.begin(), own.writes.end());
    out.combines.insert(own.combines.begin(), own.combines.end());
  });
  return out;
}

}  // namespace lemma::tile
