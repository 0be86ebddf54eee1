#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes how much memory and time each module of a model needs, for tscope-report.

    python3 export_modules.py FILE.py:FUNCTION [-o modules.json]
    python3 export_modules.py package.module:FUNCTION [-o modules.json]

FUNCTION takes no arguments and returns (model, inputs) or (model, inputs, loss): a torch.nn.Module on the device on
which it should run, a tuple of its arguments (or one argument), and a function from its output to a scalar (by default
the sum of the output's floats). A few training steps are run: one under PyTorch's memory tracker, the others with a
clock at each module. Nothing is sharded or recomputed unless the model does this itself. In your own script:

    from export_modules import export_modules
    export_modules(model, (batch,), loss_of, "modules.json")

The document is the ModuleInfo of torch.distributed._tools.ilp_utils. Needs PyTorch 2.5 or newer.
"""
import argparse
import importlib
import importlib.util
import json
import sys
import time


def sum_of(output):
    import torch
    from torch.utils._pytree import tree_flatten

    parts = [value.float().sum() for value in tree_flatten(output)[0]
             if isinstance(value, torch.Tensor) and value.is_floating_point()]
    if not parts:
        raise SystemExit("the model's output has no floating-point tensor; return a loss function too")
    return sum(parts)


def run_step(model, inputs, loss):
    loss(model(*inputs)).backward()
    model.zero_grad(set_to_none=True)


def device_of(model):
    import torch

    tensors = list(model.parameters()) + list(model.buffers())
    return tensors[0].device if tensors else torch.device("cpu")


def measure_memory(model, inputs, loss):
    """Statistics of each module: [(name, statistics)], in the order of the forward pass."""
    from torch.distributed._tools.mem_tracker import MemTracker, _MemRefType, _ModState

    tracker, device = MemTracker(), device_of(model)
    tracker.track_external(model)
    with tracker:
        run_step(model, inputs, loss)
    out = []
    for stats in tracker.memory_tracking.values():
        def at(state, kind, stats=stats):
            seen = stats.snapshots.get(state)
            return seen[-1].get(device, {}).get(kind, 0) if seen else 0

        out.append({
            "fqn": stats.mod_fqn,
            "param_per_module": stats.parameter_mem,
            "grad_per_module": stats.parameter_mem,
            "grad_total": at(_ModState.PRE_BW, _MemRefType.GRAD),
            "act_fw_per_module": max(0, at(_ModState.POST_FW, _MemRefType.ACT)
                                     - at(_ModState.PRE_FW, _MemRefType.ACT) - stats.output_mem),
            "act_bw_per_module": at(_ModState.PEAK_BW, _MemRefType.ACT),
            "act_grad_per_module": max(0, at(_ModState.PEAK_BW, _MemRefType.TEMP)
                                       - at(_ModState.PRE_BW, _MemRefType.TEMP)),
            "act_total": at(_ModState.POST_FW, _MemRefType.ACT),
            "input_per_module": stats.input_mem,
            "output_per_module": stats.output_mem,
        })
    return out


class Clock:
    """Time from a module's first to its last hook in a pass, summed over its calls."""

    def __init__(self, device):
        import torch

        self.wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
        self.begun, self.spent, self.orders = {}, {}, {}

    def now(self):
        self.wait()
        return time.perf_counter()

    def begin(self, key):
        self.order(key, "pre")
        self.begun.setdefault(key, []).append(self.now())

    def end(self, key):
        if self.begun.get(key):
            self.order(key, "post")
            self.spent[key] = self.spent.get(key, 0.0) + (self.now() - self.begun[key].pop()) * 1e3

    def order(self, key, when):
        order = self.orders.setdefault((key[0], when), [])
        if key[1] not in order:
            order.append(key[1])


def measure_time(model, inputs, loss, steps):
    from torch.distributed._tools.mod_tracker import ModTracker

    clocks = []
    for _ in range(steps):
        clock, tracker = Clock(device_of(model)), ModTracker()

        def hook(method, which, tracker=tracker):
            def mark(module, *_):
                name = tracker.get_known_fqn(module) if module is not None else None
                if name:
                    method((which, name))
            return mark

        tracker.register_user_hooks(hook(clock.begin, "fw"), hook(clock.end, "fw"),
                                    hook(clock.begin, "bw"), hook(clock.end, "bw"))
        with tracker:
            run_step(model, inputs, loss)
        clocks.append(clock)
    # All times are from one step, so that they add up: the step that was disturbed least.
    root = clocks[0].orders[("fw", "pre")][0]
    best = min(clocks, key=lambda clock: clock.spent[("fw", root)] + clock.spent.get(("bw", root), 0.0))
    times = {name: {which: best.spent.get((which, name), 0.0) for which in ("fw", "bw")}
             for name in best.orders[("fw", "pre")]}
    orders = {f"{which}_{when}_order": best.orders.get((which, when), [])
              for which in ("fw", "bw") for when in ("pre", "post")}
    return times, orders


def export_modules(model, inputs, loss=None, path="modules.json", steps=5):
    """Runs 2 + `steps` training steps and writes the document; returns it, too."""
    try:
        import torch.distributed._tools.mem_tracker  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"PyTorch 2.5 or newer is needed: {error}") from error
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    loss = loss or sum_of
    model.train()
    run_step(model, inputs, loss)  # initializes what is made only once
    stats = measure_memory(model, inputs, loss)
    times, orders = measure_time(model, inputs, loss, steps)
    names = [one["fqn"] for one in stats]
    for one in stats:
        spent = times.get(one["fqn"], {})
        one["fw_runtime_per_module"] = spent.get("fw", 0.0)
        one["bw_runtime_per_module"] = spent.get("bw", 0.0)
        one["is_leaf"] = not any(name.startswith(one["fqn"] + ".") for name in names)
    document = {"mod_order": orders, "mod_stats": stats}
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
    return document


def function_of(what):
    where, _, name = what.rpartition(":")
    if not where:
        raise SystemExit(f"{what}: give FILE.py:FUNCTION or package.module:FUNCTION")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location("job", where)
        if spec is None:
            raise SystemExit(f"{where}: cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        sys.modules["job"] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(where)
    return getattr(module, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", metavar="FILE.py:FUNCTION", help="returns (model, inputs[, loss])")
    parser.add_argument("-o", "--output", default="modules.json")
    parser.add_argument("--steps", type=int, default=5, help="to take times of; the shortest counts")
    arguments = parser.parse_args()
    made = function_of(arguments.what)()
    document = export_modules(*made, path=arguments.output, steps=max(1, arguments.steps))
    print(f"{arguments.output}: {len(document['mod_stats'])} modules; tscope-report reads it")


if __name__ == "__main__":
    main()
