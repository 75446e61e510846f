// lemma_fuzz [--family wide|plain|small] [--seed S] [--count N] [--stage NAME] [--batch N] [--keep-going N] [--raw]
//
// Random graphs through the stages of stages.h, N of them from seed S on (0: without end). Exit code 1 on a failure.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/property/campaign.h"

int main(int argc, char** argv) {
  lemma::property::Plan plan;
  plan.progress = true;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--raw") {
      plan.reduce = false;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--family") plan.family = value == "plain" ? lemma::property::Family::Plain : value == "small" ? lemma::property::Family::Small : lemma::property::Family::Wide;
    else if (flag == "--seed") plan.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--count") plan.count = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--stage") plan.stage = value;
    else if (flag == "--batch") plan.batch = std::strtoull(value.c_str(), nullptr, 10);
    else if (flag == "--keep-going") plan.most_failures = std::atoi(value.c_str());
    else return std::fprintf(stderr, "lemma_fuzz: unknown option '%s'\n", flag.c_str()), 2;
  }
  const lemma::property::Report report = lemma::property::run(plan);
  std::printf("%llu cases, %llu compiled, %llu refused, %zu failures in %.1f s (%.1f s of C compiler)\n", (unsigned long long)report.cases,
              (unsigned long long)report.compiled, (unsigned long long)report.refused, report.failures.size(), report.seconds, report.compiler_seconds);
  return report.failures.empty() ? 0 : 1;
}
