"""PyTorch on the CPU behind server.h's protocol (variant=torch). Needs a Python that can import torch; bench/run.py
--torch makes one in bench/.venv."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
import torch.nn.functional as F

from protocol import byte_values, serve, uniform


def values(request, seed, shape, scale=1.0):
    tensor = torch.from_numpy(uniform(seed, shape, scale))
    return tensor.bfloat16() if request.text("type") == "bf16" else tensor


def matmul(r):
    a, b = values(r, 1, (r.size("m"), r.size("k"))), values(r, 2, (r.size("k"), r.size("n")))
    return lambda: a @ b


def epilogue(r):
    a, b = values(r, 1, (r.size("m"), r.size("k"))), values(r, 2, (r.size("k"), r.size("n")))
    bias, residual = values(r, 3, (r.size("n"),)), values(r, 4, (r.size("m"), r.size("n")))
    return lambda: F.gelu(torch.addmm(bias, a, b)).add_(residual)


def attention(r):
    h, n, d = r.size("h", 1), r.size("n"), r.size("d")
    g = r.size("g", h)
    q, k, v = values(r, 1, (1, h, n, d), 2), values(r, 2, (1, g, n, d), 2), values(r, 3, (1, g, n, d))
    causal = bool(r.size("causal"))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=g != h)


def softmax(r):
    x = values(r, 1, (r.size("rows"), r.size("width")), 4)
    return lambda: torch.softmax(x, 1)


def layer_norm(r):
    width = r.size("width")
    x, weight, bias = values(r, 1, (r.size("rows"), width)), values(r, 2, (width,)), values(r, 3, (width,))
    return lambda: F.layer_norm(x, (width,), weight, bias, 1e-5)


def rms_norm(r):
    width = r.size("width")
    x, weight = values(r, 1, (r.size("rows"), width)), values(r, 2, (width,))
    return lambda: F.rms_norm(x, (width,), weight, 1e-5)


def conv(r):
    batch, c, hw = r.size("batch", 1), r.size("c"), r.size("hw")
    o = r.size("o", c)
    x = values(r, 1, (batch, hw, hw, c)).permute(0, 3, 1, 2)
    w = values(r, 2, (3, 3, c, o)).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda: F.conv2d(x, w, padding=1).permute(0, 2, 3, 1)


def neighbours(r):
    t = torch.from_numpy(byte_values(1, (r.size("r"), r.size("width", 784))))
    q = torch.from_numpy(byte_values(2, (r.size("q"), r.size("width", 784))))

    def call():
        norms = (t * t).sum(1)
        parts = [torch.topk(norms - 2 * (b @ t.T), 5, dim=1, largest=False)[0] for b in q.split(1000)]
        return torch.cat(parts)

    return call


WORKS = {f.__name__: f for f in (matmul, epilogue, attention, softmax, layer_norm, rms_norm, conv, neighbours)}


@torch.inference_mode()
def main():
    def make(request):
        if request.work not in WORKS:
            raise ValueError(f"PyTorch has no {request.work} here")
        torch.set_num_threads(request.size("threads", 1))
        return WORKS[request.work](request), (lambda y: y.float().contiguous().numpy())

    serve(make)


main()
