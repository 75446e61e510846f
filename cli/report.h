// Values for people and for programs: JSON documents on standard output, numbers in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lemma/base/diagnostic.h"
#include "lemma/runtime/array.h"

namespace lemma::cli {

nlohmann::json to_json(const base::Diagnostic& diagnostic);
nlohmann::json to_json(const runtime::Array& array);  // type, extents, and a digest of the values

void print_json(const nlohmann::json& document);

std::string number(double value, int digits = 4);     // "1.234e-05"
std::string seconds(double value);                     // "1.23 ms"
std::string bytes(double value);                       // "1.2 MB"

// Sum, sum of absolute values, and counts of nan and infinities: what tells arrays apart at a glance.
struct Digest {
  double sum = 0;
  double absolute = 0;
  int64_t nan = 0;
  int64_t infinite = 0;
};
Digest digest(const runtime::Array& array);
std::string describe(const Digest& digest);

}  // namespace lemma::cli
