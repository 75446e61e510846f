#!/usr/bin/env python3
"""Measures Lemma against what its users would call instead, side by side.

    bench/run.py [--only matmul,attention] [--threads 1,2] [--rounds 7] [--span 0.1] [--quick] [--torch] [--list]
                 [--json out/bench.json] [--markdown out/bench.md]

Every contestant of a row is a process of its own that speaks server.h's protocol. Rounds are interleaved: in each round
every contestant is timed once, in an order that rotates. A row reports each contestant's median over the rounds with its
spread (first and third quartile), and Lemma's speed relative to the best peer. Contestants compute the same hashed
inputs, and their digests are compared before anything is timed: a wrong answer is shown and is never a winner.

Fairness: a peer gets the layout, packing and block size it likes best, prepared outside the timing; all threads wait
passively, so that the idle contestants don't take the processor; OPENBLAS_CORETYPE, OPENBLAS_L2_SIZE and OMP_PROC_BIND
are unset in all.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
BUILD = pathlib.Path(os.environ.get("LEMMA_BENCH_BUILD", ROOT / "build" / "bench"))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
TOO_SLOW = 30  # seconds to prepare and call once; such a contestant is named, not timed
VENV = BENCH / ".venv"


def program_of(variant):
    """The command that serves a variant."""
    if variant == "lemma":
        return [str(BUILD / "ours")]
    if variant == "numpy":
        return [PYTHON, str(BENCH / "numpy_peers.py")]
    if variant == "torch":
        return [str(VENV / "bin" / "python"), str(BENCH / "torch_peers.py")]
    return [str(BUILD / "peers")]


# ---- the rows: work, sizes, peers, and the useful operations or bytes of one call

def gemm_flops(s):
    return 2 * s["m"] * s["n"] * s["k"]


def attention_flops(s):
    return 4 * s.get("h", 1) * s["n"] ** 2 * s["d"] // (2 if s.get("causal") else 1)


def conv_flops(s):
    return 2 * 9 * s.get("batch", 1) * s["hw"] ** 2 * s["c"] * s.get("o", s["c"])


def neighbour_flops(s):
    return 2 * s["r"] * s["q"] * s.get("width", 784)


def row_bytes(s):
    return 8 * s["rows"] * s["width"]


def row(work, peers, unit, amount, **sizes):
    return {"work": work, "peers": peers.split(), "unit": unit, "amount": amount(sizes), "sizes": sizes}


def rows():
    gemm = "openblas onednn onednn_packed torch"
    table = []
    for m, n, k in [(512, 512, 512), (1000, 1000, 1000), (1024, 1024, 1024), (2048, 2048, 2048), (8192, 64, 1024),
                    (1, 4096, 4096), (16, 4096, 4096)]:
        table.append(row("matmul", gemm, "GFLOP/s", gemm_flops, m=m, n=n, k=k))
    for m, n, k in [(1024, 1024, 1024), (2048, 2048, 2048)]:
        table.append(row("matmul", gemm, "GFLOP/s", gemm_flops, m=m, n=n, k=k, type="bf16"))
    table.append(row("epilogue", "openblas onednn torch", "GFLOP/s", gemm_flops, m=1024, n=1024, k=1024))
    for n, d, causal in [(1024, 64, 0), (2048, 64, 0), (2048, 128, 0), (1024, 64, 1), (2048, 64, 1), (4096, 64, 1),
                         (2048, 128, 1)]:
        table.append(row("attention", "openblas onednn torch", "GFLOP/s", attention_flops, n=n, d=d, causal=causal))
    table.append(row("attention", "openblas onednn torch", "GFLOP/s", attention_flops, h=9, g=3, n=1024, d=64, causal=1))
    table.append(row("attention", "onednn torch", "GFLOP/s", attention_flops, n=2048, d=64, causal=1, type="bf16"))
    for rows_, width in [(16384, 1024), (4096, 4096), (512, 32768), (128, 131072)]:
        table.append(row("copy", "memcpy", "GB/s", row_bytes, rows=rows_, width=width))
        table.append(row("softmax", "onednn torch", "GB/s", row_bytes, rows=rows_, width=width))
        table.append(row("layer_norm", "onednn torch", "GB/s", row_bytes, rows=rows_, width=width))
        table.append(row("rms_norm", "openblas torch", "GB/s", row_bytes, rows=rows_, width=width))
    for rows_, width in [(65536, 64), (4096, 4096)]:
        table.append(row("cumsum", "loop numpy", "GB/s", row_bytes, rows=rows_, width=width))
    for c, hw, batch in [(64, 56, 1), (128, 28, 1), (256, 14, 1), (512, 7, 1), (64, 56, 8)]:
        table.append(row("conv", "onednn_nhwc onednn_blocked torch", "GFLOP/s", conv_flops, c=c, hw=hw, batch=batch))
    table.append(row("neighbours", "openblas numpy torch", "GFLOP/s", neighbour_flops, r=60000, q=1000))
    return table


def name_of(entry, threads):
    sizes = " ".join(f"{k}={v}" for k, v in entry["sizes"].items())
    return f"{entry['work']} {sizes} threads={threads}"


# ---- contestants

class Contestant:
    def __init__(self, variant, threads):
        self.variant = variant
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_PROC_BIND")}
        environment.update(OMP_WAIT_POLICY="passive", OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
                           MKL_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(program_of(variant), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, cwd=ROOT)

    def ask(self, verb, work, options):
        words = " ".join(f"{k}={v}" for k, v in options.items())
        try:
            self.process.stdin.write(f"{verb} {work} variant={self.variant} {words}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().split()
        except BrokenPipeError:
            answer = []
        if not answer:
            return None, "the process ended"
        if answer[0] == "error":
            return None, " ".join(answer[1:])
        return answer, None

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def digests_agree(a, b, narrow):
    """Same count; sum, sum of magnitudes and samples within the element type's tolerance."""
    if a[1] != b[1]:
        return False
    x, y = [float(v) for v in a[2:]], [float(v) for v in b[2:]]
    relative = 2e-2 if narrow else 1e-4
    mean = max(x[1] / max(int(a[1]), 1), 1e-30)
    close_sum = abs(x[0] - y[0]) <= relative * x[1] and abs(x[1] - y[1]) <= relative * x[1]
    return close_sum and all(abs(p - q) <= relative * max(mean, abs(p)) for p, q in zip(x[2:], y[2:]))


def measure(entry, threads, variants, rounds, span):
    """One row: {variant: {"seconds": [...], "error": ...}}."""
    options = dict(entry["sizes"], threads=threads)
    narrow = entry["sizes"].get("type") in ("bf16", "f16")
    result, live, reference = {}, {}, None
    for variant in variants:
        command = program_of(variant)
        if not os.path.exists(command[0]):
            result[variant] = {"error": "not built" if variant != "torch" else "not installed (bench/run.py --torch)"}
            continue
        contestant = Contestant(variant, threads)
        start = time.monotonic()
        answer, why = contestant.ask("digest", entry["work"], options)
        if answer is not None and time.monotonic() - start > TOO_SLOW:
            answer, why = None, f"more than {TOO_SLOW} s a call"
        if answer is None:
            result[variant] = {"error": why}
            contestant.close()
            continue
        reference = reference or answer
        result[variant] = {"seconds": [], "digest": answer[1:], "agrees": digests_agree(reference, answer, narrow)}
        live[variant] = contestant
    order = list(live)
    for number in range(rounds):
        for variant in order[number % max(len(order), 1):] + order[:number % max(len(order), 1)]:
            answer, why = live[variant].ask("time", entry["work"], dict(options, span=span))
            if answer is None:
                result[variant]["error"] = why
            else:
                result[variant]["seconds"].append(float(answer[1]))
    for contestant in live.values():
        contestant.close()
    return result


# ---- reports

def summary(seconds):
    if len(seconds) < 2:
        return {"median": seconds[0], "low": seconds[0], "high": seconds[0]}
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return {"median": median, "low": low, "high": high}


def report_row(entry, threads, result):
    """The row as data: rates, the best peer and the ratio of speeds."""
    record = {"name": name_of(entry, threads), "unit": entry["unit"], "contestants": {}}
    scale = entry["amount"] / 1e9
    for variant, data in result.items():
        if not data.get("seconds"):
            record["contestants"][variant] = {"error": data.get("error", "no time")}
            continue
        times = summary(data["seconds"])
        record["contestants"][variant] = {"seconds": times["median"], "seconds_low": times["low"],
                                          "seconds_high": times["high"], "rate": scale / times["median"],
                                          "agrees": data["agrees"]}
    timed = {v: c for v, c in record["contestants"].items() if "seconds" in c and c["agrees"]}
    peers = {v: c for v, c in timed.items() if v != "lemma"}
    if peers:
        record["best_peer"] = min(peers, key=lambda v: peers[v]["seconds"])
        if "lemma" in timed:
            best = result[record["best_peer"]]["seconds"]
            ours = result["lemma"]["seconds"]
            ratios = summary([b / o for b, o in zip(best, ours)])
            record["speed"], record["speed_low"], record["speed_high"] = ratios["median"], ratios["low"], ratios["high"]
    return record


def cell(contestant):
    if "error" in contestant:
        return "—"
    spread = max(contestant["seconds_high"] - contestant["seconds"], contestant["seconds"] - contestant["seconds_low"])
    wrong = "" if contestant["agrees"] else " (wrong answer)"
    return f"{contestant['rate']:.4g} ±{100 * spread / contestant['seconds']:.0f}%{wrong}"


def markdown(records, machine):
    variants = []
    for record in records:
        variants += [v for v in record["contestants"] if v not in variants]
    lines = [f"{machine['processor']}, {machine['cores']} cores, {machine['date']}, load {machine['load']:.1f} at the start. "
             "Medians, ± the larger quartile distance; speed is best peer's time over Lemma's.", "",
             "| work | unit | " + " | ".join(variants) + " | speed |",
             "|---|---|" + "---|" * (len(variants) + 1)]
    for record in records:
        cells = [cell(record["contestants"][v]) if v in record["contestants"] else "" for v in variants]
        speed = f"{record['speed']:.2f} ({record['speed_low']:.2f}–{record['speed_high']:.2f})" if "speed" in record else "—"
        lines.append(f"| {record['name']} | {record['unit']} | " + " | ".join(cells) + f" | {speed} |")
    return "\n".join(lines) + "\n"


def machine_facts():
    processor = "unknown processor"
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
        if line.startswith("flags"):
            wide = "AVX-512" if " avx512f " in line else "AVX2" if " avx2 " in line else "SSE"
            processor += f" ({wide})"
            break
    return {"processor": processor, "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d"), "load": os.getloadavg()[0]}


def prepare_torch():
    """PyTorch's own wheel in bench/.venv; it brings several GB with it."""
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    have = subprocess.run([str(VENV / "bin" / "python"), "-c", "import torch"], capture_output=True).returncode == 0
    if not have:
        print("installing torch into bench/.venv (several GB)", file=sys.stderr)
        subprocess.run([str(VENV / "bin" / "pip"), "install", "-q", "torch", "numpy"], check=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="works, comma-separated")
    parser.add_argument("--match", default="", help="only rows whose name contains this")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--span", type=float, default=0.1, help="seconds a timed repetition lasts at least")
    parser.add_argument("--variants", default="", help="only these contestants, comma-separated")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.03 s")
    parser.add_argument("--torch", action="store_true", help="install PyTorch for the benchmarks if it is missing")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", default=str(ROOT / "out" / "bench.json"))
    parser.add_argument("--markdown", default=str(ROOT / "out" / "bench.md"))
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.quick:
        arguments.rounds, arguments.span = 3, 0.03
    if arguments.torch:
        prepare_torch()
    works = set(filter(None, arguments.only.split(",")))
    allowed = set(filter(None, arguments.variants.split(",")))
    machine = machine_facts()
    if machine["load"] > 0.7:
        print(f"bench: load {machine['load']:.1f}: other work runs here; take the figures with care", file=sys.stderr)
    records = []
    for threads in [int(t) for t in arguments.threads.split(",")]:
        for entry in rows():
            name = name_of(entry, threads)
            if (works and entry["work"] not in works) or arguments.match not in name:
                continue
            if arguments.list:
                print(name)
                continue
            variants = [v for v in ["lemma", *entry["peers"]] if not allowed or v in allowed]
            records.append(report_row(entry, threads, measure(entry, threads, variants, arguments.rounds, arguments.span)))
            cells = [f"{v} {cell(c)}" for v, c in records[-1]["contestants"].items() if "error" not in c]
            speed = f"  speed {records[-1]['speed']:.2f}" if "speed" in records[-1] else ""
            print(f"{name}  [{entry['unit']}]  " + "  ".join(cells) + speed, flush=True)
    if arguments.list:
        return
    pathlib.Path(arguments.json).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(arguments.markdown).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(arguments.json).write_text(json.dumps({"machine": machine, "rows": records}, indent=1) + "\n")
    pathlib.Path(arguments.markdown).write_text(markdown(records, machine))
    print(f"wrote {arguments.json} and {arguments.markdown}")


main()
