// One equation at a time, each over some of the sizes A, B, C, reading what was defined before it.
#include "tests/random_programs/generate.h"

#include <algorithm>

namespace lemma::random_programs {
namespace {

const std::vector<std::string> size_names = {"A", "B", "C"};
const std::vector<int64_t> size_values = {0, 1, 2, 3, 5, 8, 17};

struct Tensor {
  std::string name;
  std::vector<int> dims;       // of size_names
  bool partial = false;        // exists on some of its points only
  int equation = -1;           // -1: an input
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}

  Program run() {
    declare();
    const int count = 2 + below(7);
    for (int i = 0; i < count; ++i) add_equation();
    std::vector<size_t> order;
    for (size_t i = 0; i < program_.equations.size(); ++i) order.push_back(i);
    // The last, and sometimes one or two more: a value may be an output and be read on.
    program_.outputs = {order.back()};
    while (chance(3) && program_.outputs.size() < 3) {
      const size_t extra = size_t(below(int(order.size())));
      if (std::find(program_.outputs.begin(), program_.outputs.end(), extra) == program_.outputs.end()) {
        program_.outputs.push_back(extra);
      }
    }
    return program_;
  }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  int below(int bound) { return int(next() % uint64_t(bound)); }
  bool chance(int one_in) { return below(one_in) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& items) { return items[size_t(below(int(items.size())))]; }

  void declare() {
    program_.declarations = "dim A, B, C\n";
    for (const std::string& name : size_names) program_.sizes.push_back({name, pick(size_values)});
    const std::vector<std::vector<int>> shapes = {{0}, {1}, {0, 1}, {1, 0}, {0, 1, 2}, {2, 1}, {0, 0}};
    for (int i = 0; i < 4; ++i) {
      Tensor t{"x" + std::to_string(i), pick(shapes), false, -1};
      program_.declarations += "input " + t.name + "[" + extents(t) + "] : f32\n";
      tensors_.push_back(std::move(t));
    }
    // Keys: into B, and labels to compare.
    program_.declarations += "input key[A] : i32 in 0..B\ninput label[A] : i32 in 0..3\n";
    // Keys into nothing cannot exist.
    if (program_.sizes[1].value == 0) program_.sizes[0].value = 0;
  }

  std::string extents(const Tensor& t) const {
    std::string text;
    for (int d : t.dims) text += (text.empty() ? "" : ", ") + size_names[size_t(d)];
    return text;
  }

  // ---- one equation ----
  struct Scope {
    std::vector<std::string> indices;  // names, with their sizes
    std::vector<int> sizes;
  };

  void add_equation() {
    current_ = Equation{};
    current_.name = "t" + std::to_string(program_.equations.size());
    Tensor made{current_.name, {}, false, int(program_.equations.size())};
    Scope scope;
    const int rank = below(3) + (chance(3) ? 0 : 1);
    for (int i = 0; i < std::min(rank, 3); ++i) {
      const int size = below(3);
      made.dims.push_back(size);
      scope.indices.push_back(std::string(1, char('i' + i)));
      scope.sizes.push_back(size);
    }
    std::string left = current_.name;
    std::string bounds;
    for (size_t i = 0; i < scope.indices.size(); ++i) {
      bounds += (i ? ", " : "") + scope.indices[i] + " < " + size_names[size_t(scope.sizes[i])];
    }
    const int kind = below(10);
    std::string right;
    if (kind < 4) {
      right = expression(scope, 2);
      if (!bounds.empty() && chance(4)) {
        const std::string where = condition(scope);
        if (!where.empty()) {
          bounds += " : " + where;
          made.partial = true;
        }
      }
    } else if (kind < 9 || scope.indices.empty()) {
      right = fold(scope);
    } else {
      right = "scan sum(" + scope.indices.back() + pick<std::string>({"", ", exclusive", ", reverse"}) + ") (" +
              expression(scope, 1) + ")";
      right = "tanh(" + right + ")";
    }
    if (!bounds.empty()) left += "[" + bounds + "]";
    current_.text = left + " = " + right;
    program_.equations.push_back(current_);
    tensors_.push_back(std::move(made));
    // A partial value gets a total one beside it, so that either may be an output.
    if (tensors_.back().partial) add_total(tensors_.size() - 1);
  }

  // Outputs must be total: the equation is replaced by a hidden one and its completion.
  void add_total(size_t which) {
    Equation& part = program_.equations.back();
    const Tensor tensor = tensors_[which];
    const std::string hidden = tensor.name + "p";
    part.text = hidden + part.text.substr(tensor.name.size());
    part.name = hidden;
    tensors_[which].name = hidden;
    tensors_[which].equation = int(program_.equations.size()) - 1;
    Equation total;
    total.name = tensor.name;
    total.reads = {program_.equations.size() - 1};
    std::string indices, bounds;
    for (size_t i = 0; i < tensor.dims.size(); ++i) {
      const std::string index(1, char('i' + int(i)));
      indices += (i ? ", " : "") + index;
      bounds += (i ? ", " : "") + index + " < " + size_names[size_t(tensor.dims[i])];
    }
    total.text = total.name + "[" + bounds + "] = " + hidden + "[" + indices + "] else 0.25";
    program_.equations.push_back(total);
    Tensor made{total.name, tensor.dims, false, int(program_.equations.size()) - 1};
    tensors_.push_back(std::move(made));
  }

  // ---- expressions ----
  std::string expression(const Scope& scope, int depth) {
    if (depth == 0) return leaf(scope);
    const std::string a = expression(scope, depth - 1);
    switch (below(9)) {
      case 0: return "(" + a + " + " + expression(scope, depth - 1) + ") * 0.5";
      case 1: return "(" + a + " - " + expression(scope, depth - 1) + ") * 0.5";
      case 2: return a + " * " + leaf(scope);
      case 3: return "tanh(" + a + ")";
      case 4: return "exp(-abs(" + a + "))";
      case 5: return "max(" + a + ", " + leaf(scope) + ")";
      case 6: return "select(" + comparison(scope) + ", " + a + ", " + leaf(scope) + ")";
      case 7: return "sigmoid(" + a + ")";
      default: return a;
    }
  }

  std::string leaf(const Scope& scope) {
    if (chance(8)) return pick<std::string>({"0.5", "-1.25", "0.125"});
    // Recent values more often, so that chains form.
    const int count = int(tensors_.size());
    return read(scope, tensors_[size_t(chance(2) ? count - 1 - below(std::min(count, 3)) : below(count))]);
  }

  // A read of `tensor` at some function of the scope's indices.
  std::string read(const Scope& scope, const Tensor& tensor) {
    bool guarded = tensor.partial;
    std::string coords;
    for (int d : tensor.dims) {
      std::vector<std::string> fitting;
      for (size_t i = 0; i < scope.indices.size(); ++i) {
        if (scope.sizes[i] == d) fitting.push_back(scope.indices[i]);
      }
      std::string coord;
      const std::string& size = size_names[size_t(d)];
      if (fitting.empty() || chance(12)) {
        // An index of another size, or the first element: both may lie outside.
        coord = scope.indices.empty() || chance(2) ? "0" : pick(scope.indices);
        guarded = true;
      } else {
        const std::string index = pick(fitting);
        switch (below(8)) {
          case 0: coord = size + " - 1 - " + index; break;
          case 1: coord = index + " + 1"; guarded = true; break;
          case 2: coord = index + " - 2"; guarded = true; break;
          case 3: coord = "2*" + index; guarded = true; break;
          case 4: coord = index + " // 2"; break;
          default: coord = index;
        }
      }
      if (d == 1 && chance(6)) {
        for (size_t i = 0; i < scope.indices.size(); ++i) {
          if (scope.sizes[i] == 0) coord = "key[" + scope.indices[i] + "]";
        }
      }
      coords += (coords.empty() ? "" : ", ") + coord;
    }
    note(tensor);
    const std::string text = tensor.dims.empty() ? tensor.name : tensor.name + "[" + coords + "]";
    return guarded ? "(" + text + "? else " + pick<std::string>({"0", "0.75"}) + ")" : text;
  }

  void note(const Tensor& tensor) {
    if (tensor.equation >= 0) current_.reads.push_back(size_t(tensor.equation));
  }

  // Of inputs only: exact on both sides.
  std::string comparison(const Scope& scope) {
    const Tensor& a = tensors_[size_t(below(4))];
    const std::string op = pick<std::string>({" < ", " >= ", " == ", " != "});
    return read(scope, a) + op + (chance(2) ? "0.25" : read(scope, tensors_[size_t(below(4))]));
  }

  // Of indices, and of labels where an index can read them.
  std::string condition(const Scope& scope) {
    if (scope.indices.empty()) return "";
    const std::string a = pick(scope.indices), b = pick(scope.indices);
    std::vector<std::string> choices = {a + " % 2 == 0", a + " <= " + b, a + " + " + b + " != 3", a + " < 4 or " + b + " > 6"};
    for (size_t i = 0; i < scope.indices.size(); ++i) {
      if (scope.sizes[i] == 0) choices.push_back("label[" + scope.indices[i] + "] != 1");
    }
    return pick(choices);
  }

  std::string fold(const Scope& outer) {
    Scope scope = outer;
    const int count = chance(4) ? 2 : 1;
    std::string items;
    for (int i = 0; i < count; ++i) {
      const int size = below(3);
      const std::string index(1, char('r' + i));
      scope.indices.push_back(index);
      scope.sizes.push_back(size);
      items += (i ? ", " : "") + index + " < " + size_names[size_t(size)];
    }
    if (chance(2)) items += " : " + condition(scope);
    const std::string body = "(" + expression(scope, 1 + below(2)) + ")";
    switch (below(7)) {
      case 0: return "max(max(" + items + ") " + body + ", -1)";
      case 1: return "min(min(" + items + ") " + body + ", 1)";
      case 2: return "tanh(sum(" + items + ") " + body + ")";
      case 3: return "(count(" + items + ") " + body + ") * 0.125";
      case 4: return count == 1 ? "max(logsumexp(" + items + ") " + body + ", -2)" : "tanh(sum(" + items + ") " + body + ")";
      case 5: {
        if (count != 1) return "tanh(sum(" + items + ") " + body + ")";
        // A softmax folded at once with something else over the same index.
        const std::string weighted = expression(scope, 1);
        return "sum(" + items + ") softmax(" + items + ") " + body + " * (" + weighted + ")";
      }
      default: return "(sum(" + items + ") " + body + ") / 32";
    }
  }

  uint64_t state_;
  Program program_;
  std::vector<Tensor> tensors_;
  Equation current_;
};

}  // namespace

Program generate(uint64_t seed) { return Generator(seed).run(); }

std::string print(const Program& program, const std::vector<size_t>& outputs) {
  std::vector<bool> needed(program.equations.size(), false);
  for (size_t output : outputs) needed[output] = true;
  for (size_t i = program.equations.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (size_t read : program.equations[i].reads) needed[read] = true;
  }
  std::string text = program.declarations;
  for (size_t i = 0; i < program.equations.size(); ++i) {
    if (needed[i]) text += program.equations[i].text + "\n";
  }
  for (size_t output : outputs) text += "output " + program.equations[output].name + " : f32\n";
  return text;
}

}  // namespace lemma::random_programs
