#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps in JAX, with JAX's own profiler if --profiler is given: jax_work.py [--profiler].

The work is not cut into parts: the profiler covers the whole program, which has the same number of steps
without it. Command buffers are off, because XLA does not use them while it is profiled. Exits with 77 and
prints the reason if JAX is missing or has no GPU.
"""
import argparse
import collections
import contextlib
import glob
import gzip
import json
import os
import sys
import tempfile

STEPS = 5
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer="


def kernels_of(folder):
    """The kernels on the GPU's streams in JAX's profile: {name: count}; None if it has none."""
    names = collections.Counter()
    for path in glob.glob(os.path.join(folder, "**", "*.trace.json.gz"), recursive=True):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        streams = {(event["pid"], event["tid"]) for event in events
                   if event.get("name") == "thread_name" and event["args"]["name"].startswith("Stream")}
        for event in events:
            if event.get("ph") == "X" and (event["pid"], event.get("tid")) in streams:
                names[event["name"]] += 1
    return dict(names) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiler", action="store_true", help="under JAX's own profiler")
    options = parser.parse_args()
    try:
        import jax
        import jax.numpy as jnp
        device = jax.devices("gpu")[0]
    except Exception as error:  # JAX is missing or has no GPU
        print(f"JAX: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
        return 77

    def loss(weights, x):
        hidden = jax.nn.gelu(x @ weights[0])
        return jnp.mean((hidden @ weights[1] - x) ** 2)

    @jax.jit
    def step(weights, x):
        value, gradients = jax.value_and_grad(loss)(weights, x)
        return value, [w - 0.1 * g for w, g in zip(weights, gradients)]

    weights = [jnp.full((256, 512), 0.01), jnp.full((512, 256), 0.02)]
    x = jnp.ones((64, 256))
    found = {"losses": []}
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder) if options.profiler else contextlib.nullcontext():
            for _ in range(STEPS):
                value, weights = step(weights, x)
                found["losses"].append(float(value).hex())
        if options.profiler:
            found["kernels"] = kernels_of(folder)
    found.update(jax=jax.__version__, jax_device=device.device_kind)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
