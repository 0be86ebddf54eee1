# SPDX-License-Identifier: MIT
"""Measures how fast profiler traces are read: kineto.py TSCOPE_REPORT [MEGABYTES].

Writes traces in the layout of PyTorch's profiler (operators with shapes, ranges of Python functions,
calls, flows, kernels with their arguments, collectives), makes a whole report of them, and prints
megabytes of text per second and memory relative to the size of the text. Wanted: 150 MB/s on one core, and
memory of half the size of the text.
"""
import gzip
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from processes import cost_of  # noqa: E402

KERNEL = ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
          "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)")
LAYER = """  {{
    "ph": "X", "cat": "python_function", "name": "nn.Module: Linear_{k}", "pid": 7, "tid": 7,
    "ts": {t}.125, "dur": 60.250,
    "args": {{
      "Python parent id": 11, "Python id": {c}, "Python module id": {k}, "Ev Idx": {c}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 7, "tid": 7,
    "ts": {t}.500, "dur": 50.250,
    "args": {{
      "External id": {c},"Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["c10::BFloat16", "c10::BFloat16", ""], "Input Strides": [[4096, 1], [4096, 1], []], "Input Dims": [[8, 2048, 4096], [4096, 4096], []], "Ev Idx": {c}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 7, "tid": 7,
    "ts": {t}.750, "dur": 40.250,
    "args": {{
      "External id": {c},"Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"], "Input Strides": [[1], [4096, 1], [1, 4096], [], []], "Input Dims": [[4096], [16384, 4096], [4096, 4096], [], []], "Ev Idx": {c}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7,
    "ts": {u}.125, "dur": 6.250,
    "args": {{
      "External id": {c},"cbid": 211, "correlation": {c}
    }}
  }},
  {{
    "ph": "s", "id": {c}, "pid": 7, "tid": 7, "ts": {u}.125,
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": 7,
    "ts": {v}.500, "dur": 70.125,
    "args": {{
      "External id": {c},"queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {c}, "registers per thread": 32, "shared memory": 0, "blocks per SM": 12.5, "warps per SM": 50, "grid": [1650, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 78
    }}
  }},
  {{
    "ph": "f", "id": {c}, "pid": 0, "tid": 7, "ts": {v}.500,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
"""
STEP = """  {{
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{s}", "pid": 7, "tid": 7,
    "ts": {t}.000, "dur": {dur},
    "args": {{
      "External id": 1,"Record function id": 0, "Ev Idx": 0
    }}
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 20,
    "ts": {t}.500, "dur": 50.000,
    "args": {{
      "External id": 1,"queued": 0, "device": 0, "context": 1, "stream": 20, "correlation": 0, "Collective name": "allreduce", "In msg nelems": 1048576, "Out msg nelems": 1048576, "Group size": {ranks}, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "{group}"
    }}
  }},
"""
LAYERS = 1000


def write(path, rank, ranks, megabytes):
    group = str(list(range(ranks)))
    with open(path, "w", encoding="ascii") as out:
        out.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA H100 80GB HBM3"}\n  ],\n'
                  f'  "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {ranks}}},\n'
                  '  "traceEvents": [\n')
        step = 0
        while out.tell() < megabytes * 1e6:
            base = 1000000 + step * LAYERS * 72
            out.write(STEP.format(s=step, t=base, dur=LAYERS * 72, ranks=ranks, group=group))
            for k in range(LAYERS):
                t = base + k * 72
                out.write(LAYER.format(k=k % 50, c=step * LAYERS + k + 1, t=t, u=t + 10, v=t + 30,
                                       kernel=KERNEL.replace("<4,", f"<{k % 50},")))
            step += 1
        out.write('  {"ph": "i", "name": "end"}\n  ],\n  "baseTimeNanoseconds": 1700000000000000000\n}\n')
    return os.path.getsize(path)


def measure(report, paths, threads, text_bytes):
    wall, cpu, peak, _ = cost_of([report, "--format", "json", "--threads", str(threads), *paths],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (f"{text_bytes / 1e6 / cpu:6.0f} MB/s of CPU time, {text_bytes / 1e6 / wall:5.0f} by wall time, "
            f"memory {peak * 2**20 / text_bytes:.2f} x the text")


def main():
    report, megabytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory(prefix="tscope-bench-") as folder:
        plain = os.path.join(folder, "rank0.trace.json")
        size = write(plain, 0, 1, megabytes)
        print(f"one trace, {size / 1e6:.0f} MB     {measure(report, [plain], 1, size)}")
        packed = plain + ".gz"
        with open(plain, "rb") as source, gzip.open(packed, "wb", 6) as target:
            shutil.copyfileobj(source, target)
        os.unlink(plain)
        print(f"the same, gzip          {measure(report, [packed], 1, size)}")
        os.unlink(packed)
        ranks = 4
        size = sum(write(os.path.join(folder, f"rank{r}.trace.json"), r, ranks, megabytes // ranks)
                   for r in range(ranks))
        for threads in (1, 2):
            print(f"{ranks} ranks, {threads} thread{'s' if threads > 1 else ' '}      "
                  f"{measure(report, [folder], threads, size)}")


main()
