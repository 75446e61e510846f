// The command as its users meet it: exit codes and exact texts.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "lemma/runtime/file.h"
#include "lemma/runtime/npy.h"
#include "lemma/runtime/random.h"
#include "lemma/runtime/temporary_directory.h"

namespace lemma {
namespace {

using runtime::Array;
using runtime::TemporaryDirectory;

struct Result {
  int code = -1;
  std::string out, err;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A folder of its own, with a cache of its own and a few programs.
struct Workplace {
  TemporaryDirectory folder;
  Workplace() {
    write("twice.lemma", "dim N\ninput x[N] : f32\ny[i] = x[i] + x[i]\noutput y : f32\n");
    write("keys.lemma", "dim N, E\ninput e[N] : i32 in 0..E\ny[i] = e[i] + 1\noutput y : i32\n");
    write("matmul.lemma",
          "dim M, N, K\ninput a[M, K], b[K, N] : f32\nc[i, j] = sum(k) a[i, k] * b[k, j]\noutput c : f32\n");
  }
  std::string file(const std::string& name) const { return folder.file(name); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(file(name)) << text; }
  Result run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command = "cd '" + folder.path() + "' && env XDG_CACHE_HOME='" + folder.path() + "' " + environment +
                                " " LEMMA_PROGRAM " " + arguments + " >out 2>err";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), text_of(file("out")), text_of(file("err"))};
  }
};

Array counting(std::vector<int64_t> extents, scalar::DType type = scalar::DType::F32) {
  Array array = *runtime::allocate(type, std::move(extents));
  for (int64_t i = 0; i < array.count(); ++i) runtime::set_int(array, i, i);
  return array;
}

TEST(Cli, RunsOnFilesAndWritesFiles) {
  const Workplace w;
  ASSERT_TRUE(runtime::write_npy(w.file("x.npy"), counting({5})).ok());
  const Result r = w.run("--quiet run twice.lemma --in x=x.npy --out y=y.npy");
  EXPECT_EQ(r.err, "");
  ASSERT_EQ(r.code, 0);
  EXPECT_EQ(r.out, "y f32[5]: sum 20, sum of absolute values 20\n");
  const Array y = *runtime::read_array(*runtime::parse_place(w.file("y.npy")));
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(runtime::float_at(y, i), double(2 * i));
}

TEST(Cli, InterpreterAndKernelsAgree) {
  const Workplace w;
  const std::string arguments = "--quiet run matmul.lemma --size M=7 --size N=9 --size K=33 --random 5 ";
  const Result kernels = w.run(arguments + "--out c=c.npy --threads 2");
  const Result oracle = w.run(arguments + "--interpret --out c=d.npy");
  ASSERT_EQ(kernels.code, 0) << kernels.err;
  ASSERT_EQ(oracle.code, 0) << oracle.err;
  const Array c = *runtime::read_array(*runtime::parse_place(w.file("c.npy")));
  const Array d = *runtime::read_array(*runtime::parse_place(w.file("d.npy")));
  ASSERT_EQ(c.extents, (std::vector<int64_t>{7, 9}));
  for (int64_t i = 0; i < c.count(); ++i) EXPECT_NEAR(runtime::float_at(c, i), runtime::float_at(d, i), 1e-4);
}

TEST(Cli, ChecksAgainstTheOracle) {
  const Workplace w;
  const Result r = w.run("check matmul.lemma --size M=70 --size N=65 --size K=33 --random 5 --threads 2");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_TRUE(r.out.starts_with("seed  5\nok    c f32[70, 65]: every element, worst error ")) << r.out;
  const Result sampled =
      w.run("check matmul.lemma --size M=200 --size N=165 --size K=33 --random 5 --whole-below 1000");
  EXPECT_EQ(sampled.code, 0) << sampled.out << sampled.err;
  EXPECT_NE(sampled.out.find(" sampled elements"), std::string::npos) << sampled.out;
  EXPECT_NE(sampled.out.find("every element against plain loops: worst difference "), std::string::npos) << sampled.out;
  const Result differs = w.run("check " LEMMA_SOURCE_DIR "/examples/softmax.lemma --size N=30 --size M=1000 --random 5 --whole-below 1000 --tolerance 1e-10");
  EXPECT_EQ(differs.code, 1);
  EXPECT_NE(differs.out.find(" elements differ from plain loops; worst at ["), std::string::npos) << differs.out;
  // No tolerance at all: f32 sums differ from f64 ones somewhere.
  const Result strict = w.run("check matmul.lemma --size M=70 --size N=65 --size K=333 --random 5 --tolerance 0");
  EXPECT_EQ(strict.code, 1);
  EXPECT_NE(strict.out.find("WRONG c f32[70, 65]: "), std::string::npos) << strict.out;
  // The number that is allowed, and the rule behind it.
  w.write("steps.lemma", "dim N\ninput x[N] : f32\ny[i] = (scan sum(i) x[i]) * 0 + 4096\noutput y : f32\n");
  EXPECT_NE(w.run("check steps.lemma --size N=9 --random 1").out.find(", allowed 0.082 (2e-05 * max(1, largest))\n"), std::string::npos);
  EXPECT_NE(w.run("--json check steps.lemma --size N=9 --random 1").out.find("\"allowed\": 0.0819"), std::string::npos);
}

TEST(Cli, RefusesSizesAtWhichReadsLeave) {
  const Workplace w;
  w.write("ring.lemma", "dim N, M\ninput x[N]\ny[i < M] = x[i % N]\noutput y\n");
  w.write("longer.lemma", "dim N, M\ninput x[N]\ny[i < M] = x[i]\noutput y\n");
  for (const char* command : {"run", "check"}) {
    const std::string start = "--quiet " + std::string(command) + " ";
    const Result ring = w.run(start + "ring.lemma --random 1 --size N=0 --size M=300");
    EXPECT_EQ(ring.code, 2);
    EXPECT_EQ(ring.err, "error: y reads x[i % N], which needs N > 0\n");
    EXPECT_EQ(w.run(start + "ring.lemma --random 1 --size N=0 --size M=0").code, 0);
    EXPECT_EQ(w.run(start + "longer.lemma --random 1 --size N=3 --size M=3000000").code, 2);
    EXPECT_EQ(w.run(start + "longer.lemma --random 1 --size N=300 --size M=3").code, 0);
  }
}

TEST(Cli, ChecksATileProgramByItsInterpreterFirst) {
  const Workplace w;
  w.write("leaves.tile",
          "program {\n  size N\n  input x f32[N]\n  output y f32[N]\n  kernel k {\n    map (i < N) {\n"
          "      y[i] = x[i + 100000000000]\n    }\n  }\n}\n");
  const Result r = w.run("--quiet check leaves.tile --random 1 --size N=5");
  EXPECT_EQ(r.code, 2) << r.out << r.err;
  EXPECT_NE(r.err.find("x"), std::string::npos) << r.err;
}

TEST(Cli, RefusesWhatSaysNothingOrTwoThings) {
  const Workplace w;
  w.write("empty.lemma", "");
  w.write("marked.lemma", "\xEF\xBB\xBF" "dim N\ninput x[N] : f32\ny[i] = x[i]\noutput y\n");
  const Result empty = w.run("check empty.lemma");
  EXPECT_EQ(empty.code, 2);
  EXPECT_EQ(empty.err, "error: the program has no output, so there is nothing to check\n  help: name one: output y\n");
  EXPECT_EQ(w.run("run twice.lemma --random 1 --size N=3 --out y=a.npy --out y=b.npy").code, 2);
  EXPECT_EQ(w.run("check marked.lemma --random 1 --size N=3").code, 0);
  ASSERT_TRUE(runtime::write_npy(w.file("x.npy"), counting({5})).ok());
  EXPECT_EQ(w.run("run twice.lemma --in x=x.npy:i32").code, 2);
  EXPECT_EQ(w.run("run twice.lemma --in x=x.npy:f32").code, 0);
}

TEST(Cli, SaysThatLawsWereTested) {
  const Workplace w;
  const Result r = w.run("check " LEMMA_SOURCE_DIR "/examples/user_monoid.lemma --size N=9 --size M=70 --random 5");
  EXPECT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_NE(r.out.find("triples of random and special values; a test, no proof\n"), std::string::npos) << r.out;
}

TEST(Cli, TakesTileProgramsWhereverItTakesMaths) {
  const Workplace w;
  w.write("twice.tile",
          "# twice\nprogram twice {\n  size N like 9\n  input x f32[N]\n  output y f32[N]\n  kernel main grid (b < ceildiv(N, 4)) {\n"
          "    fragment t f32[4]\n    copy x[b*4 +: 4] -> t\n    map t = t + t\n    copy t -> y[b*4 +: 4]\n  }\n}\n");
  ASSERT_TRUE(runtime::write_npy(w.file("x.npy"), counting({5})).ok());
  for (const char* how : {"", "--interpret "}) {
    const Result r = w.run(std::string("--quiet run twice.tile --in x=x.npy ") + how);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, "y f32[5]: sum 20, sum of absolute values 20\n");
  }
  const Result checked = w.run("check twice.tile --size N=203 --random 5 --threads 2");
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_TRUE(checked.out.starts_with("seed  5\nok    y f32[203]: every element, worst error 0")) << checked.out;
  const Result measured = w.run("bench twice.tile --repetitions 2");
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_NE(measured.out.find("72 B"), std::string::npos) << measured.out;
  EXPECT_TRUE(w.run("show twice.tile").out.starts_with("program twice {\n  size N like 9\n"));
  EXPECT_NE(w.run("show twice.tile --level c").out.find("lemma_run"), std::string::npos);
  EXPECT_NE(w.run("emit twice.tile").out.find("lemma_run"), std::string::npos);
  EXPECT_EQ(w.run("build twice.tile -o made").out, "made/twice.h\nmade/twice.c\nmade/twice.npz\n");
  EXPECT_EQ(w.run("show twice.tile --explain").code, 2);
  EXPECT_EQ(w.run("show twice.tile --dialect cuda").code, 2);
  const Result short_input = w.run("run twice.tile --size N=7 --in x=x.npy");
  EXPECT_EQ(short_input.code, 2);
  EXPECT_NE(short_input.err.find("size 'N' is 7 by the caller, and 5 by dimension 0 of input 'x'"), std::string::npos) << short_input.err;
  w.write("late.tile", "program late {\n  output y f32[4]\n  input x f32[4]\n  kernel main { copy x -> y }\n}\n");
  EXPECT_NE(w.run("run late.tile --random 1").err.find("stands after the output `y`"), std::string::npos);
}

// A wrong program differs from what its blocks say in no order: the interpreter names the race.
TEST(Cli, SaysWhereATileProgramRaces) {
  const Workplace w;
  w.write("race.tile", "program race {\n  input x f32[4]\n  output y f32[1]\n  kernel main grid (b < 4) { copy x[b +: 1] -> y }\n}\n");
  const Result r = w.run("check race.tile --random 1");
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("writes y[0], which another block of the grid writes"), std::string::npos) << r.err;
}

TEST(Cli, SecondRunIsAHit) {
  const Workplace w;
  const std::string command = "--json run twice.lemma --size N=3 --random 1";
  EXPECT_NE(w.run(command).out.find("\"compiles\": 1"), std::string::npos);
  EXPECT_NE(w.run(command).out.find("\"hits\": 1"), std::string::npos);
  const Result stats = w.run("cache stats");
  EXPECT_TRUE(stats.out.starts_with(w.file("lemma") + ": 1 kernels, ")) << stats.out;
  EXPECT_EQ(w.run("cache verify").code, 0);
  EXPECT_EQ(w.run("cache clear").out, "1 kernels removed\n");
}

TEST(Cli, WithoutACompilerItInterprets) {
  const Workplace w;
  const Result r = w.run("run twice.lemma --size N=3 --random 1", "PATH=");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_TRUE(r.err.starts_with(
      "lemma: there is no C compiler (none of gcc, cc, clang); the program is interpreted, which is slow\n"))
      << r.err;
  const Result check = w.run("check twice.lemma --size N=3 --random 1", "PATH=");
  EXPECT_EQ(check.code, 4);
}

TEST(Cli, ErrorsAreExact) {
  const Workplace w;
  ASSERT_TRUE(runtime::write_npy(w.file("x.npy"), counting({5})).ok());
  ASSERT_TRUE(runtime::write_npy(w.file("d.npy"), counting({5}, scalar::DType::F64)).ok());
  ASSERT_TRUE(runtime::write_npy(w.file("e.npy"), counting({5}, scalar::DType::I32)).ok());
  w.write("torn.npy", std::string("\x93NUMPY\x01\x00\x76", 9));
  struct Case {
    std::string arguments;
    int code;
    std::string err;
  };
  const Case cases[] = {
      {"run none.lemma", 4, "system error: cannot open 'none.lemma': No such file or directory\n"},
      {"run twice.lemma", 2,
       "twice.lemma:2:7: error: input 'x' is not given\n"
       "  help: give it with --in x=file.npy, or --random 1 for random values, whose sizes are what --size N=128 or a `dim N like 128` says\n"},
      {"run twice.lemma --random 1", 2,
       "twice.lemma:1:5: error: size 'N' has no value: no input's shape tells it\n"
       "  help: state it: --size N=128, or for random inputs in the program: dim N like 128\n"},
      {"run twice.lemma --size N=3", 2,
       "twice.lemma:2:7: error: input 'x' is not given\n"
       "  help: give it with --in x=file.npy, or --random 1 for random values, whose sizes are what --size N=128 or a `dim N like 128` says\n"},
      {"run twice.lemma --in x=none.npy", 4, "system error: cannot open 'none.npy': No such file or directory\n"},
      {"run twice.lemma --in q=x.npy", 2, "error: the program has no input 'q'\n  help: its inputs are x\n"},
      {"run twice.lemma --in x=x.npy --in x=x.npy", 2, "error: input 'x' is given twice\n"},
      {"run twice.lemma --in x=x.npy --size N=6", 2,
       "twice.lemma:1:5: error: size 'N' is 6 by the caller, and 5 by dimension 0 of input 'x'\n"},
      {"run twice.lemma --in x=x.npy --size K=6", 2, "error: the program has no size 'K'\n  help: its sizes are N\n"},
      {"run twice.lemma --size N", 2, "error: '--size N' is not a size\n  help: write it as --size N=128\n"},
      {"run twice.lemma --size N=-1", 2, "error: '--size N=-1' is not a size\n  help: write it as --size N=128\n"},
      {"run twice.lemma --in x=d.npy", 2,
       "twice.lemma:2:7: error: input 'x' is f32, and 'd.npy' holds f64[5]\n  help: add --convert to convert it\n"},
      {"run twice.lemma --in x=torn.npy", 2,
       "error: 'torn.npy' is truncated: the header takes 2 bytes, and 1 are left\n"},
      {"run twice.lemma --in x=x.npy --out z=z.npy", 2,
       "error: the program has no output 'z'\n  help: its outputs are y\n"},
      {"run twice.lemma --in x=x.npy --out y", 2, "error: '--out y' names no output\n  help: write it as --out y=file.npy\n"},
      {"run twice.lemma --in x=x.npy --out y=y.txt", 2,
       "error: 'y.txt' does not say which format to write\n  help: end it in .npy, .npz, .idx, .raw or .bin\n"},
      {"run twice.lemma --in x=x.npy --out y=no/such/y.npy", 4,
       "system error: cannot write 'no/such/y.npy': there is no folder 'no/such'\n  help: make it first\n"},
      {"run keys.lemma --in e=e.npy --size E=4", 2,
       "keys.lemma:2:7: error: input 'e' states the range 0..4, and holds 4 at [4]\n"},
      {"run twice.lemma --in x=x.npy --target vax", 2,
       "error: there is no target 'vax'\n  help: one of host generic sse2 avx2 avx512 neon\n"},
      {"run twice.lemma --in x=x.npy --cc no-such-compiler", 4, "system error: there is no compiler 'no-such-compiler'\n"},
      {"show twice.lemma --pass nothing", 2, ""},
      {"fly", 64, "error: there is no command 'fly'\n  help: see lemma --help\n"},
      {"run", 64, "error: program is required\n  help: see lemma run --help\n"},
      {"cache fly", 64, "error: there is no command 'fly'\n  help: see lemma cache --help\n"},
      {"cache", 64, "error: a subcommand is required\n  help: see lemma cache --help\n"},
      {"show twice.lemma --level x", 64,
       "error: --level: x not in {maths,derived,schedule,tile,threads,c}\n  help: see lemma show --help\n"},
      {"help fly", 64, "error: there is no command 'fly'\n  help: see lemma help\n"},
  };
  for (const Case& c : cases) {
    const Result r = w.run("--quiet " + c.arguments);
    EXPECT_EQ(r.code, c.code) << c.arguments;
    if (c.err.empty()) {
      EXPECT_TRUE(r.err.starts_with("error: there is no pass 'nothing'\n  help: the passes are ")) << r.err;
    } else {
      EXPECT_EQ(r.err, c.err) << c.arguments;
    }
  }
}

// Schedules are files of their own, and errors in them say where.
TEST(Cli, SaysWhereAScheduleIsWrong) {
  const Workplace w;
  const auto said = [&](const std::string& text) {
    w.write("s.txt", text);
    return w.run("--quiet check matmul.lemma --schedule s.txt --size M=9 --size N=9 --size K=9 --random 1").err;
  };
  EXPECT_EQ(said("schedule {\n  kernel d\n}\n"),
            "s.txt:2:10: error: no node is called `d`\n    kernel d\n           ^\n"
            "  help: `lemma show --level derived` lists the nodes a schedule may name\n");
  EXPECT_EQ(said("schedule {\n}\n"),
            "s.txt:1:1: error: the schedule does not name `c`\n  schedule {\n  ^^^^^^^^\n"
            "  help: each node that computes stands in one kernel; `lemma show --level schedule` prints the default\n");
  EXPECT_EQ(said("schedule {\n  kernel c tile rows=99999\n}\n"),
            "s.txt:2:22: error: the tile rows of c is `99999`, expected a size from 1 to 16384\n"
            "    kernel c tile rows=99999\n                       ^^^^^\n"
            "  help: a block keeps a tile near; leave it out for the target's default\n");
  EXPECT_EQ(said("schedule {\n  kernel c tile rows=16384 columns=16384 depth=16384\n}\n"), "");
}

// The seed is named where inputs were made from it, and not for what fails before.
TEST(Cli, NamesTheSeedWhereItMatters) {
  const Workplace w;
  EXPECT_EQ(w.run("check twice.lemma").err,
            "twice.lemma:1:5: error: size 'N' has no value: no input's shape tells it\n"
            "  help: state it: --size N=128, or for random inputs in the program: dim N like 128\n");
  EXPECT_TRUE(w.run("check twice.lemma --size N=3 --random 7 --cc no-such-compiler").err.starts_with("lemma: the seed was 7\n"));
}

TEST(Cli, ErrorsAreJsonWhereAsked) {
  const Workplace w;
  const Result r = w.run("--json run twice.lemma --size N=3");
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(r.err, "");
  EXPECT_NE(r.out.find("\"message\": \"input 'x' is not given\""), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\"kind\": \"invalid\""), std::string::npos);
}

TEST(Cli, DrawsLayouts) {
  const Workplace w;
  const std::string program = std::string(LEMMA_SOURCE_DIR) + "/examples/tile/matmul_persistent.tile";
  const std::string all = w.run("show " + program + " --layout").out;
  EXPECT_NE(all.find("shared as bf16: layout [128, 64] offset"), std::string::npos) << all;
  EXPECT_NE(all.find("loads of right fragments: 128 wavefronts, at least 128, no bank conflicts"), std::string::npos) << all;
  EXPECT_NE(all.find("fragment acc f32: layout [128, 128] register (0,1) (8,0)"), std::string::npos) << all;
  EXPECT_NE(w.run("show " + program + " --layout acc").out.find("T4:0"), std::string::npos);
  EXPECT_EQ(w.run("show " + program + " --layout acc --svg").out.substr(0, 4), "<svg");
  const auto wrong = w.run("show " + program + " --layout nothing");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("placed are as, bs, acc"), std::string::npos) << wrong.err;
  EXPECT_NE(w.run("show " + program + " --level threads").out.find("synchronised"), std::string::npos);
  EXPECT_NE(w.run("check " + program + " --emulate cuda --random 1 --size M=64 --size N=70 --size K=40").out.find("ok "), std::string::npos);
}

TEST(Cli, ShowsEveryLevel) {
  const Workplace w;
  EXPECT_EQ(w.run("show twice.lemma --level maths").out, text_of(w.file("twice.lemma")));
  EXPECT_NE(w.run("show twice.lemma --level c").out.find("lemma_run"), std::string::npos);
  EXPECT_NE(w.run("show twice.lemma --level tile").out.find("kernel"), std::string::npos);
  EXPECT_NE(w.run("show twice.lemma --level tile --dialect cuda").out.find("kernel"), std::string::npos);
  EXPECT_EQ(w.run("show twice.lemma --level c --dialect cuda").code, 2);
  EXPECT_NE(w.run("show twice.lemma --level derived").out.find("x["), std::string::npos);
  EXPECT_EQ(w.run("show twice.lemma --level schedule").code, 0);
  EXPECT_NE(w.run("show twice.lemma --all").out.find("==== tile"), std::string::npos);
  EXPECT_EQ(w.run("emit twice.lemma").out, w.run("show twice.lemma --level c").out);
}

TEST(Cli, BuildsWhatCompilesAlone) {
  const Workplace w;
  const Result r = w.run("build twice.lemma -o made --size N=6");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, "made/twice.h\nmade/twice.c\nmade/twice.npz\n");
  const std::string compile = "cc -std=c99 -Wall -c -o '" + w.file("made/twice.o") + "' '" + w.file("made/twice.c") + "'";
  EXPECT_EQ(std::system(compile.c_str()), 0);
  EXPECT_NE(text_of(w.file("made/twice.h")).find("/* To compile: cc -std=gnu11 -O3 "), std::string::npos);
  EXPECT_NE(w.run("emit twice.lemma").out.find("/* Made by Lemma from the program twice for "), std::string::npos);
  const Array x = *runtime::read_npz(w.file("made/twice.npz"), "in_x");
  const Array y = *runtime::read_npz(w.file("made/twice.npz"), "out_y");
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(runtime::float_at(y, i), 2 * runtime::float_at(x, i));
}

TEST(Cli, ExplainsWhyAScanKeepsOneThread) {
  const Workplace w;
  w.write("sums.lemma", "dim T, C\ninput x[T, C]\ny[t, c] = scan sum(t) x[t, c]\noutput y\n");
  EXPECT_NE(w.run("show sums.lemma --explain").out.find("declined schedule at y: not split along t: threads share its points"), std::string::npos);
}

TEST(Cli, BenchesEveryThreadCount) {
  const Workplace w;
  const Result r = w.run("--json bench matmul.lemma --size M=64 --size N=64 --size K=64 --threads 1,2 --repetitions 3");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\"operations\": 524288.0"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\"threads\": 2"), std::string::npos) << r.out;
}

TEST(Cli, SaysWhatItIs) {
  const Workplace w;
  EXPECT_EQ(w.run("--version").code, 0);
  EXPECT_TRUE(w.run("--version").out.starts_with("lemma 0."));
  EXPECT_NE(w.run("help run").out.find("--in"), std::string::npos);
  const std::string devices = w.run("devices").out, json = w.run("--json devices").out;
  for (const char* name : {"host", "CUDA", "OpenCL", "Vulkan", "WebGPU"}) {
    EXPECT_NE(devices.find(name), std::string::npos) << name << " in " << devices;
    EXPECT_NE(json.find("\"" + std::string(name) + "\""), std::string::npos) << name << " in " << json;
  }
  EXPECT_EQ(w.run("").code, 64);
}

TEST(Cli, CtrlCStopsAtOnce) {
  const Workplace w;
  const auto start = std::chrono::steady_clock::now();
  // The oracle would take minutes.
  const std::string command = "cd '" + w.folder.path() + "' && timeout --preserve-status -s INT 1 " LEMMA_PROGRAM
                              " run matmul.lemma --interpret --size M=3000 --size N=3000 --size K=3000 --random 1 "
                              "--out c=c.npy >out 2>err";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(w.folder.path())) {
    files += entry.path().filename().string().starts_with("c.npy");
  }
  EXPECT_EQ(files, 0);
}

TEST(Cli, FullOutputIsAFailure) {
  const Workplace w;
  const std::string command = "cd '" + w.folder.path() + "' && " LEMMA_PROGRAM " devices >/dev/full 2>err";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 4);
  EXPECT_EQ(text_of(w.file("err")), "system error: cannot write to standard output\n");
}

}  // namespace
}  // namespace lemma
