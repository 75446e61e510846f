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


# The NumPy job in a process of its own, so that its peak memory is its own too.
NUMPY_JOB = """
import json, resource, sys, time
import numpy as np
sys.path.insert(0, sys.argv[1])
def read(path):
    import gzip
    raw = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    extents = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(extents)
t, q = (read(p).reshape(-1, 784).astype(np.float32) for p in sys.argv[2:4])
label = read(sys.argv[4])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
size = np.einsum("rc,rc->r", t, t)
found = np.empty(len(q), np.int64)
for first in range(0, len(q), 500):
    d = size - 2 * (q[first : first + 500] @ t.T)
    near = np.argpartition(d, 5, axis=1)[:, :5]
    for i, row in enumerate(near):
        found[first + i] = np.bincount(label[row], minlength=10).argmax()
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
np.save(sys.argv[5], found)
print(json.dumps({"seconds": seconds, "peak": after * 1024, "beyond": (after - before) * 1024}))
"""


def lemma_with_memory(*arguments):
    """The JSON of a command and the most memory its process held."""
    before = os.times().elapsed
    process = subprocess.Popen([str(LEMMA), "--json", *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"demo: lemma {arguments[0]} failed after {os.times().elapsed - before:.1f} s")
    return json.loads(text), usage.ru_maxrss * 1024


def write_png(path, pixels):
    """An 8-bit grey picture; pixels[height, width]."""
    import struct
    import zlib

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    height, width = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def picture_sheet(queries, references, near, chosen, path):
    """One row a picture: the picture, a gap, its neighbours; three times as large. Also a row in the terminal."""
    lines = []
    for i in chosen:
        gap = np.full((28, 8), 255, np.uint8)
        lines.append(np.hstack([255 - queries[i], gap, *(255 - references[r] for r in near[i])]))
    sheet = np.vstack(lines).repeat(3, 0).repeat(3, 1)
    write_png(path, sheet)
    shades = " .:-=+*#%@"
    small = lines[0][::2]
    for row in small:
        print("    " + "".join(shades[(255 - int(v)) * 9 // 255] for v in row[::1]))
    print(f"    picture {chosen[0]} and its five neighbours; more in {path.relative_to(ROOT)}")


def neighbours():
    program = ROOT / "examples" / "nearest_neighbours.lemma"
    title("The 5 nearest neighbours of 10,000 pictures among 60,000 (Fashion-MNIST, from its own files)")
    show(program)
    print(lemma("show", program, "--explain", as_json=False))
    print(lemma("show", program, "--level", "schedule", as_json=False))
    images, labels = find("train-images-idx3-ubyte"), find("train-labels-idx1-ubyte")
    queries, truth = find("t10k-images-idx3-ubyte"), find("t10k-labels-idx1-ubyte")
    common = ("run", program, "--in", f"t={images}", "--in", f"q={queries}", "--in", f"label={labels}", "--threads", THREADS)
    result, peak = lemma_with_memory(*common, "--out", f"class={OUT}/class.npy", "--out", f"nearest={OUT}/nearest.npy",
                                     "--out", f"near={OUT}/near.npy")
    found, distance, near = (np.load(OUT / f"{name}.npy") for name in ("class", "nearest", "near"))
    accuracy = float((found == read_idx(truth)).mean())
    total = int(distance.astype(np.int64).sum())
    inputs = 60000 * 784 + 10000 * 784 + 60000
    picture_sheet(read_idx(queries), read_idx(images), near, [0, 4, 7, 11, 23, 42], OUT / "neighbours.png")
    print(f"\n    Lemma: {result['seconds']:.2f} s on {THREADS} threads, accuracy {accuracy:.4f}; the nearest distances add up to "
          f"{total:,}\n           peak memory {peak / 1e6:.0f} MB, of which {inputs / 1e6:.0f} MB are the inputs")
    if (round(accuracy, 4), total) != (0.8554, 9270785279):
        sys.exit("demo: expected accuracy 0.8554 and 9,270,785,279")
    print("    NumPy and OpenBLAS in f32, the same job ...", flush=True)
    run = subprocess.run([sys.executable, "-c", NUMPY_JOB, str(ROOT), str(images), str(queries), str(labels),
                          str(OUT / "numpy_class.npy")], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    peer = json.loads(run.stdout)
    same = float((np.load(OUT / "numpy_class.npy") == read_idx(truth)).mean())
    print(f"    NumPy: {peer['seconds']:.2f} s, accuracy {same:.4f}; peak memory {peer['peak'] / 1e6:.0f} MB, of which "
          f"{peer['beyond'] / 1e6:.0f} MB beyond its inputs\n    Lemma is {peer['seconds'] / result['seconds']:.1f} times as fast")


def attention():
    program = ROOT / "examples" / "attention_causal.lemma"
    title("Causal attention: what the compiler derives from the definition")
    show(program)
    print(lemma("show", program, "--explain", as_json=False))
    h, n, d = 8, 4096, 64
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((h, n, d)).astype(np.float32) for _ in range(3))
    for name, value, shape in (("q", q, (1, h, 1, n, d)), ("k", k, (1, h, n, d)), ("v", v, (1, h, n, d))):
        np.save(OUT / f"{name}.npy", value.reshape(shape))
    given = ("--in", f"q={OUT}/q.npy", "--in", f"k={OUT}/k.npy", "--in", f"v={OUT}/v.npy")
    result = lemma("run", program, *given, "--threads", THREADS, "--out", f"o={OUT}/o.npy")
    checked = lemma("check", program, *given)["outputs"][0]
    later = np.triu(np.ones((n, n), bool), 1)
    start = time.perf_counter()
    for head in range(h):
        s = q[head] @ k[head].T * np.float32(d**-0.5)
        s[later] = -np.inf
        e = np.exp(s - s.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        e @ v[head]
    seconds = time.perf_counter() - start
    print(f"    {h} heads, n = {n}, {d} wide: Lemma {1e3 * result['seconds']:.0f} ms, NumPy {1e3 * seconds:.0f} ms")
    print(f"    against the f64 oracle at {checked['compared']:,} points: worst error {checked['worst_error']:.1e}")
    packed, out = 2 * h * n * d * 4, h * n * d * 4
    print(f"    written: {out / 1e6:.1f} MB of result and {packed / 1e6:.1f} MB of packed keys and values; the {n} x {n} scores "
          f"({h * n * n * 4 / 1e6:.0f} MB) never are")


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
