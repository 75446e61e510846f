"""What a Python user writes today, with NumPy over OpenBLAS, behind server.h's protocol (variant=numpy)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np

from protocol import byte_values, serve, uniform


def matmul(r):
    a, b = uniform(1, (r.size("m"), r.size("k"))), uniform(2, (r.size("k"), r.size("n")))
    return (lambda: a @ b), (lambda y: y)


def softmax(r):
    x = uniform(1, (r.size("rows"), r.size("width")), 4)

    def call():
        e = np.exp(x - x.max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        return e

    return call, (lambda y: y)


def attention(r):
    h, n, d = r.size("h", 1), r.size("n"), r.size("d")
    g = r.size("g", h)
    q, k, v = uniform(1, (h, n, d), 2), uniform(2, (g, n, d), 2), uniform(3, (g, n, d))
    later = np.triu(np.ones((n, n), bool), 1)

    def call():
        out = np.empty((h, n, d), np.float32)
        for head in range(h):
            s = q[head] @ k[head * g // h].T * np.float32(d**-0.5)
            if r.size("causal"):
                s[later] = -np.inf
            e = np.exp(s - s.max(1, keepdims=True))
            e /= e.sum(1, keepdims=True)
            out[head] = e @ v[head * g // h]
        return out

    return call, (lambda y: y)


def cumsum(r):
    x = uniform(1, (r.size("rows"), r.size("width")))
    y = np.empty_like(x)
    return (lambda: np.cumsum(x, axis=0, out=y)), (lambda y: y)


def neighbours(r):
    """The 5 smallest |t|² - 2 q·t, by blocks of 500 queries."""
    t = byte_values(1, (r.size("r"), r.size("width", 784)))
    q = byte_values(2, (r.size("q"), r.size("width", 784)))

    def call():
        norms = np.einsum("rc,rc->r", t, t)
        best = []
        for first in range(0, len(q), 500):
            distance = norms - 2 * (q[first : first + 500] @ t.T)
            best.append(np.sort(np.partition(distance, 5, axis=1)[:, :5], axis=1))
        return np.concatenate(best)

    return call, (lambda y: y)


WORKS = {"matmul": matmul, "softmax": softmax, "attention": attention, "cumsum": cumsum, "neighbours": neighbours}


def make(request):
    if request.work not in WORKS or request.text("type", "f32") != "f32":
        raise ValueError(f"NumPy has no {request.text('type', 'f32')} form of {request.work} here")
    return WORKS[request.work](request)


serve(make)
