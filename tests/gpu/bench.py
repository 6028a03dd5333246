#!/usr/bin/env python3
"""One training program of the GPU suite: trains a model for some steps and prints how long one
took, as a JSON line. Needs nothing but PyTorch.

  bench.py MODEL [VARIANT] [--steps N] [--warmup N] [--profile FILE] [--endless] [--rehearse]

VARIANT is "base" or words joined by "+": amp, fused, foreach, channels_last, sdpa, pinned, graph,
half_batch, profiler. With --rehearse it runs on the CPU, tiny, and launches kernels of a fake
driver; the times then mean nothing.
"""
import argparse
import contextlib
import ctypes
import json
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mlp(nn.Module):
    """Launch-bound: many small layers."""

    def __init__(self, width=512, depth=24):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = x + F.gelu(norm(layer(x)))
        return self.head(x)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet50(nn.Module):
    """He et al. 2016, figure 5 and table 1."""

    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        inputs, stages = 64, []
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            stage = []
            for i in range(blocks):
                stage.append(Bottleneck(inputs, width, stride if i == 0 else 1))
                inputs = 4 * width
            stages.append(nn.Sequential(*stage))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.stages(self.stem(x))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width, heads, sdpa):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.sdpa = heads, sdpa

    def attention(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if self.sdpa:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = ((q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5).softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Transformer(nn.Module):
    """The sizes of BERT-base (Devlin et al. 2019)."""

    def __init__(self, sdpa, layers=12, width=768, heads=12, vocabulary=30522):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, sdpa) for _ in range(layers))
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def build(name, words, rehearse):
    """Model, inputs and targets on the CPU."""
    scale = (lambda n, tiny: tiny) if rehearse else (lambda n, tiny: n)
    half = 2 if "half_batch" in words else 1
    if name == "mlp":
        model = Mlp(scale(512, 16), scale(24, 3))
        batch = scale(256, 8) // half
        return model, torch.randn(batch, scale(512, 16)), torch.randint(0, 10, (batch,))
    if name == "resnet50":
        model = ResNet50(scale(1000, 10))
        batch, side = scale(64, 2) // half, scale(224, 32)
        images = torch.randn(batch, 3, side, side)
        return model, images, torch.randint(0, scale(1000, 10), (batch,))
    if name == "transformer":
        sizes = (2, 16, 2, 50) if rehearse else (12, 768, 12, 30522)
        model = Transformer("sdpa" in words, *sizes)
        tokens = torch.randint(0, sizes[3], (scale(32, 2) // half, scale(128, 8)))
        return model, tokens, tokens
    sys.exit("bench.py: there is no model " + name)


class Training:
    def __init__(self, name, words, rehearse):
        torch.manual_seed(0)
        self.words, self.device = words, "cpu" if rehearse else "cuda"
        torch.backends.cudnn.benchmark = True
        model, x, y = build(name, words, rehearse)
        self.model = model.to(self.device)
        self.host = None
        if "pinned" in words or "pageable" in words:
            keep = (lambda t: t.pin_memory()) if "pinned" in words else (lambda t: t)
            self.host = keep(x), keep(y)
        self.x, self.y = x.to(self.device), y.to(self.device)
        if "channels_last" in words:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        options = {"foreach": "foreach" in words}
        if "fused" in words:
            options = {"fused": True}
        if "graph" in words:
            options["capturable"] = True
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, **options)
        self.graph = None
        self.fake = FakeGpu() if rehearse else None
        if rehearse:  # within the layer
            self.model.register_forward_pre_hook(lambda *_: self.fake.launch(20))

    def step(self):
        if self.graph is not None:
            self.graph.replay()
        else:
            self.eager()

    def eager(self):
        x, y = self.x, self.y
        if self.host is not None:
            asynchronous = "pinned" in self.words
            x, y = (t.to(self.device, non_blocking=asynchronous) for t in self.host)
        self.optimizer.zero_grad(set_to_none=self.graph is None and "graph" not in self.words)
        amp = contextlib.nullcontext()
        if "amp" in self.words:
            amp = torch.autocast(self.device, dtype=torch.bfloat16)
        with amp:
            output = self.model(x)
            loss = F.cross_entropy(output.flatten(0, -2).float(), y.flatten())
        loss.backward()
        self.optimizer.step()
        self.loss = loss

    def capture(self):
        """The whole step as one CUDA graph, as PyTorch's notes on CUDA graphs do it."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.eager()
        self.graph = graph

    def sync(self):
        if self.device == "cuda":
            torch.cuda.synchronize()
        elif self.fake is not None:
            self.fake.sync()


class FakeGpu:
    """Calls a driver directly, so that a recorder has something to record without a GPU."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.driver.cuInit(0)
        self.context, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0)
        self.driver.cuModuleGetFunction(ctypes.byref(self.function), None, b"rehearsed")

    def launch(self, n):
        for _ in range(n):
            self.driver.cuLaunchKernel(
                self.function, 1, 1, 1, 32, 1, 1, 0, None, None, None
            )

    def sync(self):
        self.driver.cuCtxSynchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("variant", nargs="?", default="base")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=12)
    parser.add_argument("--profile")
    parser.add_argument("--endless", action="store_true")
    parser.add_argument("--rehearse", action="store_true")
    a = parser.parse_args()
    words = set(a.variant.split("+"))
    begin = time.perf_counter()
    training = Training(a.model, words, a.rehearse)
    if "RANK" in os.environ:
        # Two ranks on one GPU: NCCL refuses that, gloo does not.
        torch.distributed.init_process_group("gloo")
        training.model = nn.parallel.DistributedDataParallel(training.model)
    if "graph" in words and not a.rehearse:
        training.capture()
    for _ in range(a.warmup):
        training.step()
    training.sync()
    first = time.perf_counter() - begin
    while a.endless:
        training.step()
        print("step", flush=True)
    profiler = contextlib.nullcontext()
    if a.profile:
        both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        profiler = torch.profiler.profile(activities=both[: 1 if a.rehearse else 2])
    each = []
    with profiler:
        training.sync()
        start = time.perf_counter()
        for _ in range(a.steps):
            t = time.perf_counter()
            training.step()
            each.append(time.perf_counter() - t)
        training.sync()
        total = time.perf_counter() - start
    if a.profile:
        profiler.export_chrome_trace(a.profile)
    result = {
        "model": a.model,
        "variant": a.variant,
        "steps": a.steps,
        "step_ms": total / a.steps * 1e3,  # free running, synchronised at both ends
        "host_ms": statistics.median(each) * 1e3,
        "start_up_s": first,
        "loss": float(training.loss.detach()),
        "torch": torch.__version__,
        "rank": int(os.environ.get("RANK", "-1")),
    }
    print(json.dumps(result), flush=True)


main()
