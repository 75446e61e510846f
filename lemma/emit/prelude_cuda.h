// The CUDA that emitted GPU text stands on: the names LM_... and lm_... for the device, as CUDA built-ins and inline PTX,
// without any header of a toolkit. emulator/kernel/cuda.h gives the same names to the CPU, so that one text serves both.
#pragma once

#include <string_view>

namespace lemma::emit {

// The whole text. Each piece begins with a line "//: names it defines" and mentions what it needs of others, so a unit
// may take the pieces it mentions and no more. Copies and mma need sm_80; mbarriers and bulk copies need sm_90.
std::string_view cuda_prelude();

}  // namespace lemma::emit
