#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What communicates is one answer in every output: communication.py TSCOPE-REPORT TESTDATA.

The table of kernels, the overlap, the page, the timeline and the database have the same sums, for every recording in
TESTDATA and for made-up ones of libraries side by side, whose sums are those of their schedule."""
import os
import pathlib
import re
import sqlite3
import sys
import tempfile

from perfetto_slices import Trace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import truth  # noqa: E402
from observed import clean_environment, json_of, run  # noqa: E402
from page_data import data_of  # noqa: E402
from profiler_file import event, write  # noqa: E402
from shared_recordings import profiles  # noqa: E402

REPORT, TESTDATA = sys.argv[1], pathlib.Path(sys.argv[2])
KINDS = ("communication", "communication and compute")
STEP_US, STEPS = 4000, 4


def kernels(*rows):
    """(stream, begin, duration in us, name), of each step."""
    return rows


GEMM = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_TNN"
NORM = "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, float)"
ONE_SHOT = ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(flashinfer::"
            "trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false, true>(int)")
LOW_LATENCY = "void deep_ep::internode_ll::{}<true, false, 7168>(void*, float*, int*, long*)"
WRAPPED = "void ns::kernel_wrapper<vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>, 512>(int)"
USERBUFFERS = "void userbuffers_fp16_sum_inplace_gpu_mc_rs_oop<4>(int, int, int)"
ATOMIC = "void at::native::vectorized_elementwise_kernel<4, ncclKernel_AllReduce_functor<float>, 2ul>(int)"

# name: (how its steps are marked, {rank: kernels of a step}, names of kernels that communicate, and of those that also
# compute)
MADE = {
    "FlashInfer's fused all-reduce beside NVSHMEM's all-to-all": ("ProfilerStep#{}", {
        rank: kernels((7, 100, 900, GEMM), (7, 1000 + late, 500 - late, ONE_SHOT), (7, 1500, 100, NORM),
                      (20, 700 + late, 600 - late, "void allToAllV<false, true>(void*, void*, long*)"),
                      (7, 2000, 800, GEMM)) for rank, late in ((0, 0), (1, 200))}, {"allToAllV"}, {"oneshot_lamport"}),
    "DeepEP, low latency, in an inference server": ("execute_context_0(0)_generation_{}(64)", {
        0: kernels((7, 100, 300, LOW_LATENCY.format("dispatch")), (7, 400, 500, "void deep_gemm::sm90_fp8_gemm_1d2d_impl<1>()"),
                   (7, 900, 250, LOW_LATENCY.format("combine")), (8, 1000, 400, GEMM))}, {"internode_ll"}, set()),
    "RCCL, quick reduce and aiter's fused all-reduce": ("ProfilerStep#{}", {
        0: kernels((1, 100, 700, "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x1"),
                   (2, 500, 600, "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"),
                   (1, 1200, 100, "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<__half, "
                                  "quickreduce::CodecQ4<__half, 8>, true>, __half>(void const*)"),
                   (1, 1300, 50, "void aiter::allreduce_fusion_kernel_1stage<__hip_bfloat16, 8>(int)"))},
        {"ncclDevKernel", "quickreduce"}, {"allreduce_fusion"}),
    "userbuffers under GEMMs, with copies to a peer": ("ProfilerStep#{}", {
        0: kernels((7, 100, 1000, GEMM), (30, 200, 300, "void kuserbuffers_pushsend<2>(int*, int*, int4*)"),
                   (31, 200, 350, "kuserbuffers_pushrecv(int, int, int, int*)"), (32, 1000, 400, USERBUFFERS),
                   (33, 1600, 200, "Memcpy PtoP (Device -> Device)"))}, {"userbuffers", "PtoP"}, set()),
    "one of many ranks, experts by pplx and in one kernel": ("ProfilerStep#{}", {
        5: kernels((7, 100, 80, "void a2a_kernels::a2a_dispatch_send_kernel<true, 16ul, 8ul>(int)"), (8, 100, 500, GEMM),
                   (7, 300, 90, "void a2a_kernels::a2a_dispatch_recv_kernel<16ul, 8ul>(int)"),
                   (7, 1000, 700, "void deep_gemm::sm100_fp8_fp4_mega_moe_impl<128u>(void*)"))},
        {"a2a_"}, {"mega_moe"}),
    "names in templates": ("ProfilerStep#{}", {
        0: kernels((7, 100, 400, WRAPPED), (7, 500, 300, ATOMIC), (8, 450, 200, "void launch<ncclSymkDevKernel_AllGather_LL>()"),
                   (7, 900, 200, "triton_red_fused_all_reduce_native_layer_norm_5"))}, {"cross_device", "ncclSymk"}, set()),
}


def length(spans):
    return truth.length(truth.union(spans))


def events_of(mark, rows):
    for step in range(STEPS):
        at = 1000 + step * STEP_US
        yield event("user_annotation", mark.format(step + 1), at, STEP_US - 100)
        for i, (stream, begin, duration, name) in enumerate(rows):
            link = 1 + step * len(rows) + i
            yield event("cuda_runtime", "cudaLaunchKernel", at + 5 + 3 * i, 2, correlation=link)
            yield event("gpu_memcpy" if name.startswith("Memcpy") else "kernel", name, at + begin, duration, correlation=link,
                        stream=stream)


def truth_of(made):
    """Milliseconds, mean over the ranks: communication, exposed, fused of a step; and in all, over ranks and steps."""
    _, ranks, communicates, fuses = made
    sums = {"comm_ms": 0, "exposed_ms": 0, "fused_ms": 0, "table_ms": 0}
    for rows in ranks.values():
        spans = {True: [], False: []}
        for _, begin, duration, name in sorted(rows, key=lambda row: row[1]):
            fused = any(one in name for one in fuses)
            is_comm = fused or any(one in name for one in communicates)
            earlier = length(spans[is_comm])
            spans[is_comm].append((begin, begin + duration))
            sums["table_ms"] += STEPS * duration * is_comm / 1e3
            sums["fused_ms"] += fused * (length(spans[is_comm]) - earlier) / 1e3 / len(ranks)
        comm, compute = length(spans[True]), length(spans[False])
        sums["comm_ms"] += comm / 1e3 / len(ranks)
        sums["exposed_ms"] += (length(spans[True] + spans[False]) - compute) / 1e3 / len(ranks)
    return sums


def output(form, inputs, path=None):
    return run(REPORT, "--format", form, *inputs, *(["--output", path] if path else []),
               env=clean_environment(COLUMNS="160", LC_ALL="C.UTF-8")).stdout


def of_table(report):
    return sum(row["sum_ms"] for row in report["kernels"]["by_category"] if row["category"] in KINDS)


def of_text(text):
    rows = re.findall(r"^  (communication|communication and compute) +\d+ +<?([\d.]+)", text.partition("Kernels")[2]
                      .partition("\n\n")[0], re.M)
    return sum(float(ms) for _, ms in rows)


def of_database(path):
    """The sum of its table of kernels; and communication and exposed communication of a step, from its single spans."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    kinds = "('" + "', '".join(KINDS) + "')"
    table = database.execute(f"SELECT sum(total_ns) FROM kernels WHERE category IN {kinds}").fetchone()[0] or 0
    by_rank = []
    for rank, in database.execute("SELECT rank FROM ranks").fetchall():
        comm = database.execute("SELECT begin_ns, end_ns FROM gpu_work WHERE rank = ? AND kind = 'collective'",
                                (rank,)).fetchall()
        compute = database.execute("SELECT begin_ns, end_ns FROM gpu_work WHERE rank = ? AND kind = 'kernel'",
                                   (rank,)).fetchall()
        steps = database.execute("SELECT begin_ns, end_ns FROM steps WHERE rank = ? AND warmup = 0", (rank,)).fetchall()
        by_rank.append([sum(length(truth.within(spans, *step)) for step in steps) / max(1, len(steps)) / 1e6
                        for spans in (comm, comm + compute, compute)])
    comm, both, compute = (sum(values) / len(by_rank) for values in zip(*by_rank))
    return table / 1e6, comm, both - compute


def of_timeline(path):
    trace = Trace(pathlib.Path(path).read_bytes())
    return sum(slice.end - slice.begin for process in trace.processes()
               for slice in trace.of_process(process, "5")) / 1e6


def differ(what, one, other, allowed=1e-3):
    if one is not None and abs(one - other) > allowed * abs(other) + 1e-3:
        yield f"{what}: {one:.4f} ms and {other:.4f} ms"


def look_at(inputs, scratch, true=None):
    report = json_of(REPORT, *inputs)
    if not report["kernels"]["by_category"]:
        return
    table = of_table(report)
    rows = data_of(output("html", inputs))["report"]["kernels"]["by_category"]
    yield from differ("text", of_text(output("text", inputs)), table, 0.06)  # as many digits as it shows
    yield from differ("page", sum(row["sum_ms"] for row in rows if row["category"] in KINDS), table)
    database, timeline = os.path.join(scratch, "db"), os.path.join(scratch, "timeline")
    output("sqlite", inputs, database)
    in_table, comm, exposed = of_database(database)
    yield from differ("database's table", in_table, table)
    overlap = report["overlap"]
    if overlap["comm_ms"] is not None and overlap["steps"] and not report["steps"].get("other_work"):
        yield from differ("database's spans and overlap", comm, overlap["comm_ms"])
        yield from differ("exposed in the database and overlap", exposed, overlap["exposed_ms"])
    output("perfetto", inputs, timeline)
    spans = sqlite3.connect(database).execute("SELECT sum(took_ns) FROM gpu_work WHERE kind = 'collective'")
    yield from differ("timeline and database", of_timeline(timeline), (spans.fetchone()[0] or 0) / 1e6)
    other = sum(row["share"] for row in report["kernels"]["by_category"] if row["category"] == "other")
    if other >= 0.02:
        yield f"{other:.1%} of the GPU's time is of no known kind"
    os.unlink(database)
    if true:
        yield from differ("schedule", true["table_ms"], table)
        for field in ("comm_ms", "exposed_ms", "fused_ms"):
            if report["overlap"][field] is None or abs(report["overlap"][field] - true[field]) > 0.01 * true[field]:
                yield f"{field}: {report['overlap'][field]}, by the schedule {true[field]:.4f}"


def main():
    wrong, looked_at = [], 0
    with tempfile.TemporaryDirectory(prefix="communication-") as scratch:
        for name, made in MADE.items():
            folder = os.path.join(scratch, f"made-{looked_at}")
            os.mkdir(folder)
            for rank, rows in made[1].items():
                write(os.path.join(folder, f"rank{rank}.json"), list(events_of(made[0], rows)), rank,
                      max(2, len(made[1]), rank + 1))
            wrong += [f"{name}: {one}" for one in look_at([folder], scratch, truth_of(made))]
            looked_at += 1
        for name, paths in profiles(TESTDATA, scratch).items():
            wrong += [f"{name}: {one}" for one in look_at(paths, scratch)]
            looked_at += 1
    if not TESTDATA.exists():
        print(f"only made-up recordings: there is no {TESTDATA} beside the source")
    print(f"{looked_at} recordings, {len(wrong)} contradictions", *wrong, sep="\n")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
