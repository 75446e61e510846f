// Splicing maps into what reads them: the reader's body gets the maps' bodies, its reads the maps' reads, views compose,
// guards travel along.
//
//     e = [i<n] exp(x[i])              =>     s = [ | sum i<n] exp(x[i]) * w[i]
//     s = [ | sum i<n] e[i] * w[i]
//
// A map's domain needs no place: wherever a read happens, it lies in its source's domain. What a guard lets through is
// what it let through before. This is the mechanism; which maps to splice is the caller's choice.
#pragma once

#include <functional>
#include <optional>

#include "lemma/tensor/graph.h"

namespace lemma::rewrite {

// The map behind a read, if its body can stand in for the read: a map over exactly the read output's dimensions.
// `key`: the reader's forms use the read, which then must stay.
const tensor::Comprehension* map_behind(const tensor::Graph& graph, const tensor::Read& read);

// Whether dropping the store of this value changes values: it is held in fewer bits than it was computed in.
bool stored_narrow(const tensor::Graph& graph, tensor::Value value);
// What a store and a load make of a value, in the kind of the type: integers wrap, floats are rounded.
scalar::Expr round_stored(scalar::Expr value, scalar::DType type);

// Chooses, for read `read` of `owner` (the node itself or a map being spliced into it), whether to splice it.
using Choose = std::function<bool(const tensor::Comprehension& owner, int read)>;

// The node with the chosen maps spliced in, those of spliced maps too. Reads that forms use as keys, and reads of
// anything but a map, stay whatever `choose` says. Nothing if the result would hold more than `limit` reads.
std::optional<tensor::Comprehension> expand(const tensor::Graph& graph, const tensor::Comprehension& node,
                                            const Choose& choose, size_t limit = 256);

}  // namespace lemma::rewrite
