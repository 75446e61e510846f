#!/usr/bin/env python3
"""./run demo: three programs on real data, checked, beside what one would write in NumPy.

Each part prints the program, what the compiler made of it, the answer and the time. Files go to out/demo.
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ.pop("OPENBLAS_CORETYPE", None)  # NumPy's matrix product must be the one for this processor
os.environ.pop("OPENBLAS_L2_SIZE", None)

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEMMA = ROOT / "build" / "cli" / "lemma"
OUT = ROOT / "out" / "demo"
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
THREADS = os.cpu_count()


def title(text):
    print(f"\n== {text}\n", flush=True)


def show(path, lines=40):
    for line in path.read_text().splitlines()[:lines]:
        print("    " + line)
    print(flush=True)


def lemma(*arguments, as_json=True):
    command = [str(LEMMA), *(["--json"] if as_json else []), *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stdout + result.stderr)
        sys.exit(f"demo: {' '.join(command)} failed")
    return json.loads(result.stdout) if as_json else result.stdout


def find(name):
    for candidate in (DATA / f"{name}.gz", DATA / name):
        if candidate.exists():
            return candidate
    sys.exit(f"demo: {DATA / name}.gz is not there; the package dataset-fashion-mnist brings it")


def read_idx(path):
    raw = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
    rank = raw[3]
    extents = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank)]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(extents)


def neighbours():
    program = ROOT / "examples" / "nearest_neighbours.lemma"
    title("The 5 nearest neighbours of 10,000 pictures among 60,000 (Fashion-MNIST, from its own files)")
    show(program)
    images, labels = find("train-images-idx3-ubyte"), find("train-labels-idx1-ubyte")
    queries, truth = find("t10k-images-idx3-ubyte"), find("t10k-labels-idx1-ubyte")
    result = lemma("run", program, "--in", f"t={images}", "--in", f"q={queries}", "--in", f"label={labels}", "--threads",
                   THREADS, "--out", f"class={OUT}/class.npy", "--out", f"nearest={OUT}/nearest.npy")
    found, distance = np.load(OUT / "class.npy"), np.load(OUT / "nearest.npy")
    accuracy = float((found == read_idx(truth)).mean())
    total = int(distance.astype(np.int64).sum())
    print(f"    Lemma: {result['seconds']:.2f} s on {THREADS} threads; accuracy {accuracy:.4f}; nearest distances add up to {total:,}")
    if (round(accuracy, 4), total) != (0.8554, 9270785279):
        sys.exit("demo: expected accuracy 0.8554 and 9,270,785,279")
    part = 2000
    t, q = (read_idx(p).reshape(-1, 784).astype(np.float32) for p in (images, queries))
    start = time.perf_counter()
    size = np.einsum("rc,rc->r", t, t)
    for first in range(0, part, 500):
        np.argpartition(size - 2 * (q[first : first + 500] @ t.T), 5, axis=1)[:, :5]
    seconds = time.perf_counter() - start
    print(f"    NumPy: {seconds:.2f} s for the first {part:,} of the 10,000, so about {seconds * 10000 / part:.1f} s for all")


def attention():
    program = ROOT / "examples" / "attention_causal.lemma"
    title("Causal attention: what the compiler derives from the definition")
    show(program)
    print(lemma("show", program, "--explain", as_json=False))
    n, d = 2048, 64
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((n, d)).astype(np.float32) for _ in range(3))
    for name, value, shape in (("q", q, (1, 1, 1, n, d)), ("k", k, (1, 1, n, d)), ("v", v, (1, 1, n, d))):
        np.save(OUT / f"{name}.npy", value.reshape(shape))
    result = lemma("run", program, "--in", f"q={OUT}/q.npy", "--in", f"k={OUT}/k.npy", "--in", f"v={OUT}/v.npy",
                   "--threads", THREADS, "--out", f"o={OUT}/o.npy")
    later = np.triu(np.ones((n, n), bool), 1)
    start = time.perf_counter()
    s = q @ k.T * np.float32(d**-0.5)
    s[later] = -np.inf
    e = np.exp(s - s.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    o = e @ v
    seconds = time.perf_counter() - start
    error = float(np.abs(np.load(OUT / "o.npy").reshape(n, d) - o).max())
    print(f"    {n} queries of {d}: Lemma {1e3 * result['seconds']:.1f} ms, NumPy {1e3 * seconds:.1f} ms; largest difference {error:.1e}")
    if not error < 1e-4:
        sys.exit("demo: the two differ")


def checks():
    title("Every example against the f64 oracle")
    for path in sorted((ROOT / "examples").glob("*.lemma")):
        sizes = next((line[9:].split() for line in path.read_text().splitlines() if line.startswith("# sizes: ")), [])
        arguments = [word for size in sizes for word in ("--size", size)]
        command = [str(LEMMA), "--quiet", "check", str(path), "--random", "1", *arguments]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        print(f"    {'ok      ' if result.returncode == 0 else 'DIFFERS '} {path.name}", flush=True)
        if result.returncode != 0:
            sys.exit(result.stdout + result.stderr)


OUT.mkdir(parents=True, exist_ok=True)
neighbours()
attention()
checks()
print("\ndone")
