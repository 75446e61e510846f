// One lowering a strategy: each appends the group's kernels to the program.
#pragma once

#include "lemma/lower/context.h"

namespace lemma::lower {

base::Result<void> lower_rows(Context& context, const schedule::Group& group);
base::Result<void> lower_product(Context& context, const schedule::Group& group);
base::Result<void> lower_streamed(Context& context, const schedule::Group& group);
base::Result<void> lower_device_product(Context& context, const schedule::Group& group);
base::Result<void> lower_device_streamed(Context& context, const schedule::Group& group);
base::Result<void> lower_scatter(Context& context, const schedule::Group& group);

// Whether a loop must have an axis in local buffers even where it has one point: states keep their axes.
bool is_state_axis(const Context& context, const schedule::Group& group, int loop);

// Expressions of sizes, folded where they are constants.
Expr size_min(Context& context, Expr a, Expr b);
Expr size_max(Context& context, Expr a, Expr b);
Expr size_mul(Context& context, Expr a, Expr b);
Expr size_floor_div(Context& context, Expr a, Expr b);
Expr size_ceil_div(Context& context, Expr a, Expr b);
Expr size_round_up(Context& context, Expr a, int64_t multiple);

// `let name = value` in the block; its form.
Form let(Context& context, tile::Block& block, const std::string& name, Expr value);

// The tile of a grid loop: a grid variable over ceil(extent / tile) and, in the block, its base and count.
LoopPlace tile_grid_loop(Context& context, tile::Kernel& kernel, const schedule::Loop& loop, const Form& tile);

}  // namespace lemma::lower
