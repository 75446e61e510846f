"""The Python side of server.h's protocol: hashed inputs, timing, digests and the request loop."""
import sys
import time

import numpy as np

MASK = (1 << 64) - 1


def hashed(seed, count):
    z = np.arange(count, dtype=np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) & MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(seed, shape, scale=1.0):
    """f32 multiples of 2^-23 in [-1, 1), times scale; the index is the flat row-major one."""
    count = int(np.prod(shape, dtype=np.int64))
    values = (hashed(seed, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    return (values * np.float32(scale)).reshape(shape)


def byte_values(seed, shape):
    count = int(np.prod(shape, dtype=np.int64))
    return ((hashed(seed, count) >> np.uint64(33)) % np.uint64(256)).astype(np.float32).reshape(shape)


class Request:
    def __init__(self, line):
        self.verb, self.work, *words = line.split()
        self.options = dict(word.split("=", 1) for word in words)
        self.span = float(self.options.pop("span", "0.05"))
        self.key = (self.work, tuple(sorted(self.options.items())))

    def size(self, name, otherwise=0):
        return int(self.options.get(name, otherwise))

    def text(self, name, otherwise=""):
        return self.options.get(name, otherwise)


def time_calls(call, span):
    call()
    calls, start = 0, time.perf_counter()
    while True:
        call()
        calls += 1
        seconds = time.perf_counter() - start
        if seconds >= span:
            return f"seconds {seconds / calls:.9g} calls {calls}"


def digest(values):
    flat = np.asarray(values, np.float64).reshape(-1)
    count = flat.size
    picks = [flat[i] for i in (0, count // 3, 2 * count // 3, count - 1)]
    return "digest %d " % count + " ".join("%.9g" % v for v in [flat.sum(), np.abs(flat).sum(), *picks])


def serve(make):
    """make(request) returns (call, result): result(call()) is the output as an array. It may raise ValueError."""
    current, job = None, None
    for line in sys.stdin:
        request = Request(line)
        try:
            if request.key != current:
                job = None
                job = make(request)
                current = request.key
            call, result = job
            print(time_calls(call, request.span) if request.verb == "time" else digest(result(call())), flush=True)
        except (ValueError, RuntimeError) as failure:
            current = None
            print("error " + " ".join(str(failure).split()), flush=True)
