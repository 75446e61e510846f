// Parsing of the comment lines, and the expressions of inputs.
#include "tests/cases/case_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "lemma/syntax/parse.h"

namespace lemma::cases {
namespace {

using base::Result;
using syntax::NodeId;
using syntax::NodeKind;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// NAME=VALUE words; words without `=` are returned.
std::vector<std::string> read_sizes(const std::string& text, std::vector<tensor::Binding>& sizes) {
  std::vector<std::string> others;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const size_t equals = word.find('=');
    const bool number = equals != std::string::npos && equals + 1 < word.size() && std::isdigit(word[equals + 1]);
    if (!number || word.find(',') != std::string::npos) {
      others.push_back(word);
      continue;
    }
    const std::string name = word.substr(0, equals);
    const int64_t value = std::stoll(word.substr(equals + 1));
    std::erase_if(sizes, [&](const tensor::Binding& b) { return b.name == name; });
    sizes.push_back({name, value});
  }
  return others;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  std::string item;
  while (std::getline(stream, item, ',')) {
    if (!trimmed(item).empty()) items.push_back(trimmed(item));
  }
  return items;
}

Expectation parse_expectation(const std::string& text) {
  Expectation e;
  const size_t space = text.find(' ');
  e.output = text.substr(0, space);
  std::string rest = trimmed(text.substr(space));
  if (rest[0] == '(') {
    const size_t close = rest.find(')');
    e.shape.emplace();
    for (const std::string& item : split_list(rest.substr(1, close - 1))) e.shape->push_back(std::stoll(item));
    rest = trimmed(rest.substr(close + 1));
  }
  if (rest[0] == '[' && rest.find("=") == std::string::npos) {
    e.listed = true;
    for (const std::string& item : split_list(rest.substr(1, rest.rfind(']') - 1))) {
      const double value = std::stod(item);
      e.entries.emplace_back(int64_t(e.entries.size()), value);
      if (std::isnan(value)) ++e.nans;
      if (value == infinity) ++e.infinities;
      if (value == -infinity) ++e.minus_infinities;
      if (!std::isfinite(value)) continue;
      e.sum += value;
      e.l1 += std::fabs(value);
    }
    return e;
  }
  std::istringstream words(rest);
  std::string word;
  while (words >> word) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "sum") e.sum = std::stod(value);
    else if (key == "l1") e.l1 = std::stod(value);
    else if (key == "nan") e.nans = std::stoll(value);
    else if (key == "+inf") e.infinities = std::stoll(value);
    else if (key == "-inf") e.minus_infinities = std::stoll(value);
    else e.entries.emplace_back(std::stoll(key.substr(1)), std::stod(value));
  }
  return e;
}

uint64_t hash(uint64_t seed, uint64_t index) {
  uint64_t z = index + seed * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// One element at a time, straight over the tree: the texts are small and our own.
class Generator {
 public:
  Generator(const syntax::Source& source, const syntax::Tree& tree) : source_(source), tree_(tree) {}

  std::vector<int64_t> indices;
  int64_t flat = 0;
  std::optional<base::Diagnostic> failure;

  double value(NodeId id) {
    const syntax::Node& n = tree_[id];
    switch (n.kind) {
      case NodeKind::Number: return n.integer_literal ? double(n.integer) : n.real;
      case NodeKind::Name: return name(n);
      case NodeKind::Call: return call(n);
      case NodeKind::Chain: return chain(n);
      case NodeKind::Compare: return compare(n);
      case NodeKind::Negate: return -value(n.items[0]);
      case NodeKind::Not: return value(n.items[0]) == 0;
      default: return fail(n, "found an expression that inputs do not have");
    }
  }

 private:
  double fail(const syntax::Node& n, const std::string& message) {
    if (!failure) failure = source_.error(n.place, message);
    return 0;
  }

  double name(const syntax::Node& n) {
    if (n.text == "flat") return double(flat);
    if (n.text == "inf") return infinity;
    if (n.text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (n.text.size() == 2 && n.text[0] == 'i' && std::isdigit(n.text[1])) {
      const size_t dimension = size_t(n.text[1] - '0');
      if (dimension < indices.size()) return double(indices[dimension]);
    }
    return fail(n, "found `" + n.text + "`, expected i0, i1 ..., flat, inf or nan");
  }

  double call(const syntax::Node& n) {
    const auto argument = [&](size_t i) { return value(n.items[i]); };
    const size_t count = n.items.size();
    if (n.text == "select" && count == 3) return argument(0) != 0 ? argument(1) : argument(2);
    if (n.text == "pick" && size_t(flat) < count) return argument(size_t(flat));
    if (n.text == "pow" && count == 2) return std::pow(argument(0), argument(1));
    if (n.text == "f32" && count == 1) return double(float(argument(0)));
    if (n.text == "U" && (count == 1 || count == 2)) {
      const uint64_t index = count == 2 ? uint64_t(argument(1)) : uint64_t(flat);
      return double(hash(uint64_t(argument(0)), index) >> 40) * 0x1p-23 - 1;
    }
    if (n.text == "I" && (count == 2 || count == 3)) {
      const uint64_t index = count == 3 ? uint64_t(argument(2)) : uint64_t(flat);
      return double((hash(uint64_t(argument(0)), index) >> 33) % uint64_t(argument(1)));
    }
    return fail(n, "found a call of `" + n.text + "` with " + std::to_string(count) + " arguments");
  }

  double chain(const syntax::Node& n) {
    double left = value(n.items[0]);
    for (size_t i = 0; i < n.operators.size(); ++i) {
      const std::string& op = n.operators[i];
      const double right = value(n.items[i + 1]);
      if (op == "+") left += right;
      else if (op == "-") left -= right;
      else if (op == "*") left *= right;
      else if (op == "/") left /= right;
      else if (op == "//") left = std::floor(left / right);
      else if (op == "%") left -= right * std::floor(left / right);
      else if (op == "and") left = left != 0 && right != 0;
      else if (op == "or") left = left != 0 || right != 0;
      else return fail(n, "found the operator `" + op + "`");
    }
    return left;
  }

  double compare(const syntax::Node& n) {
    double left = value(n.items[0]);
    for (size_t i = 0; i < n.operators.size(); ++i) {
      const std::string& op = n.operators[i];
      const double right = value(n.items[i + 1]);
      const bool holds = op == "==" ? left == right : op == "!=" ? left != right : op == "<" ? left < right
                         : op == "<=" ? left <= right : op == ">" ? left > right : left >= right;
      if (!holds) return 0;
      left = right;
    }
    return 1;
  }

  const syntax::Source& source_;
  const syntax::Tree& tree_;
};

bool same_value(double expected, double found, double bound) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return expected == found;
  return std::fabs(expected - found) <= bound;
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

}  // namespace

Result<CaseFile> parse_case(const std::string& path, const std::string& text) {
  CaseFile file;
  file.path = path;
  file.text = text;
  CaseRun common;  // what stands before the first run belongs to all
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind("# ", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(2, colon - 2), rest = trimmed(line.substr(colon + 2));
    CaseRun& run = file.runs.empty() ? common : file.runs.back();
    if (key == "sizes") {
      read_sizes(rest, run.sizes);
    } else if (key == "input") {
      const size_t equals = rest.find(" = ");
      if (equals == std::string::npos) return base::invalid(path + ": an input line lacks ` = `: " + line);
      run.inputs[rest.substr(0, equals)] = rest.substr(equals + 3);
    } else if (key == "run") {
      CaseRun next = common;
      next.expectations.clear();
      const std::vector<std::string> words = read_sizes(rest, next.sizes);
      next.name = words.empty() ? "run" : words[0];
      file.runs.push_back(std::move(next));
    } else if (key == "expect") {
      run.expectations.push_back(parse_expectation(rest));
    } else if (key == "bits" || key == "absolute") {
      const size_t space = rest.find(' ');
      if (key == "bits") file.bits[rest.substr(0, space)] = rest.substr(space + 1);
      else file.absolute[rest.substr(0, space)] = std::stod(rest.substr(space + 1));
    } else if (key == "oracle") {
      file.oracle = std::stod(rest);
    } else if (key == "heavy") {
      file.heavy = rest;
    }
  }
  if (file.runs.empty()) file.runs.push_back(std::move(common));
  return file;
}

Result<std::vector<double>> generate(const std::string& expression, const std::vector<int64_t>& extents) {
  const syntax::Source source(expression, "input");
  LEMMA_TRY(const std::vector<syntax::Token> tokens, syntax::tokenize(source));
  syntax::Tree tree;
  syntax::Parser parser(source, tokens, tree);
  LEMMA_TRY(const NodeId root, parser.expression());
  Generator generator(source, tree);
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  std::vector<double> values(static_cast<size_t>(count));
  generator.indices.assign(extents.size(), 0);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t left = flat;
    for (size_t d = extents.size(); d-- > 0;) {
      generator.indices[d] = left % extents[d];
      left /= extents[d];
    }
    generator.flat = flat;
    values[size_t(flat)] = generator.value(root);
    if (generator.failure) return *generator.failure;
  }
  return values;
}

std::string unmet(const Expectation& expectation, const std::vector<int64_t>& shape, const std::vector<double>& values,
                  double relative) {
  // Expected numbers are printed with nine digits.
  const auto bound = [&](double expected, double size) { return relative * size + 5.1e-9 * std::fabs(expected); };
  if (expectation.shape && *expectation.shape != shape) return "the shape differs";
  if (expectation.listed && values.size() != expectation.entries.size()) {
    return "found " + std::to_string(values.size()) + " elements, expected " + std::to_string(expectation.entries.size());
  }
  double sum = 0, l1 = 0, largest = 0;
  int64_t nans = 0, infinities = 0, minus_infinities = 0;
  for (double value : values) {
    nans += std::isnan(value);
    infinities += value == infinity;
    minus_infinities += value == -infinity;
    if (!std::isfinite(value)) continue;
    sum += value;
    l1 += std::fabs(value);
    largest = std::max(largest, std::fabs(value));
  }
  if (nans != expectation.nans || infinities != expectation.infinities || minus_infinities != expectation.minus_infinities) {
    return "found " + std::to_string(nans) + " nan, " + std::to_string(infinities) + " inf and " +
           std::to_string(minus_infinities) + " -inf, expected " + std::to_string(expectation.nans) + ", " +
           std::to_string(expectation.infinities) + " and " + std::to_string(expectation.minus_infinities);
  }
  for (const auto& [flat, expected] : expectation.entries) {
    if (flat >= int64_t(values.size())) return "there is no element " + std::to_string(flat);
    const double found = values[size_t(flat)];
    if (!same_value(expected, found, bound(expected, std::max(largest, std::fabs(expected))))) {
      return "element " + std::to_string(flat) + " is " + number(found) + ", expected " + number(expected);
    }
  }
  if (!same_value(expectation.sum, sum, bound(expectation.sum, l1))) {
    return "the sum is " + number(sum) + ", expected " + number(expectation.sum);
  }
  if (!same_value(expectation.l1, l1, bound(expectation.l1, l1))) {
    return "the sum of magnitudes is " + number(l1) + ", expected " + number(expectation.l1);
  }
  return "";
}

}  // namespace lemma::cases
