#include "lemma/tile/print.h"

#include "lemma/tile/printer.h"

namespace lemma::tile {

const std::vector<Access> Printer::kNoReads;

std::string print(const Program& program) { return Printer(program).program_text(); }
std::string print(const Program& program, const Kernel& kernel) { return Printer(program).kernel_text(kernel); }

}  // namespace lemma::tile
