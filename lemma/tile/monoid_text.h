// How a program's text names the library's monoids: `sum[f32]`, `topk[f32, 8]`, `rescaled_sum[f32, 2, 0.125]`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lemma/monoid/monoid.h"

namespace lemma::tile {

// The text of a monoid the library makes, or nothing for any other.
std::optional<std::string> library_text(const monoid::Monoid& monoid);

// The monoid of that name; `numbers` are the parameters after the kind. Null for a name or parameters the library does
// not have.
monoid::MonoidRef library_monoid(const std::string& name, std::optional<scalar::Kind> kind,
                                 const std::vector<double>& numbers);

// The shortest text that reads back as this double (or, with `single`, this float); always with a point or exponent.
std::string number_text(double value, bool single);

}  // namespace lemma::tile
