// Macros are expanded before anything is parsed: a call is replaced by the macro's lines, with arguments for parameters
// and new names for what the lines bind themselves.
//
//     macro scale_rows(t, s) { map (i < 128, j < 64) t[i, j] = t[i, j] * s[i] }
//     scale_rows(acc, rescale)
//
// A parameter that the macro binds (`def r = ...`) hands a value out under the caller's name. Macros call others and
// those of prelude/prelude.tile, never themselves. What an expansion does wrong is said at the macro's line, or, for the
// prelude's, at the call.
#pragma once

#include <string_view>
#include <vector>

#include "lemma/base/result.h"
#include "lemma/syntax/token.h"

namespace lemma::tile {

// The text of prelude/prelude.tile, as built in.
std::string_view prelude();

base::Result<std::vector<syntax::Token>> expand_macros(const syntax::Source& source, const std::vector<syntax::Token>& tokens);

}  // namespace lemma::tile
