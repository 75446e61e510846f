// Accesses that go on one by one with an index, made 16 bytes at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/emit/device/scope.h"

namespace lemma::emit::device {

class Vectors {
 public:
  // What of the reads `which` names, and of the stores, runs along an index; nothing if none does. The others are made
  // element by element. A store that does not run along it is none of these: then there is nothing either.
  static std::optional<Vectors> find(Text& text, const std::vector<tile::Access>& reads, const std::vector<bool>& which,
                                     const std::vector<const tile::Access*>& stores, tile::Var along);

  int width() const { return width_; }
  // A test, the same for all threads where `others` are the indices that differ between them: every run begins at a whole
  // vector whatever the others are.
  std::string aligned(const Scope& scope, const std::vector<tile::Var>& others) const;
  // Loads the vectors that begin at the index' value in the scope. Several may be under way, each with a number.
  void load(const Scope& scope, int number = 0);
  // Makes the reads of element `u` of them.
  void element(Scope& scope, const std::string& u, int number = 0) const;
  // Declares what the stores write, sets an element of it, and writes it.
  void begin_stores();
  void set(size_t store, const std::string& u, const std::string& value, scalar::Kind kind);
  void end_stores(const Scope& scope);

 private:
  struct Run {
    const tile::Access* access = nullptr;
    size_t number = 0;         // of the read or store
    std::string name;          // of the vector
  };
  Vectors(Text& text, tile::Var along) : text_(text), along_(along) {}
  bool runs(const tile::Access& access) const;
  std::string type(const Run& run) const;

  Text& text_;
  tile::Var along_;
  int width_ = 4;
  std::vector<Run> reads_, stores_;
};

}  // namespace lemma::emit::device
