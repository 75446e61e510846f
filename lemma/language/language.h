// The language: text to graph.
//
//     base::Result<tensor::Graph> graph = language::parse(text, "attention.lemma");
//
// Any text gives a graph or a Diagnostic that says where, what was found, what was expected and what would mend it.
// docs/language.md is the reference.
#pragma once

#include <string>
#include <string_view>

#include "lemma/base/result.h"
#include "lemma/tensor/graph.h"

namespace lemma::language {

// The text of prelude/prelude.lemma, as built in.
std::string_view prelude();

struct Options {
  std::string_view prelude_text = prelude();
  std::string prelude_file = "prelude.lemma";
  std::string name;                // of the graph
};

base::Result<tensor::Graph> parse(std::string_view text, const std::string& file, const Options& options = {});

}  // namespace lemma::language
