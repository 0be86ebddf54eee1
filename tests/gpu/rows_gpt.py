# SPDX-License-Identifier: MIT
"""Rows of scripts/gpu-check about the report of a real training, a small GPT in bf16 (gpt.py). They compare
its figures with operations in closed form, the program's own clock and PyTorch's allocator; none of these
comes from tscope."""
import statistics

from judging import expect, near
from machine import CUPTI, NotHere
from findings import ids_of

VARIANTS = ("eager", "fused", "compiled")
STEPS = 30
# Dense bf16 operations per second of NVIDIA's data sheets, which give some with sparsity: those are halved.
PEAKS = {"NVIDIA H200": 1979e12 / 2, "NVIDIA H100 80GB HBM3": 1979e12 / 2, "NVIDIA H100 PCIe": 1513e12 / 2,
         "NVIDIA A100-SXM4-80GB": 312e12, "NVIDIA A100-SXM4-40GB": 312e12, "NVIDIA L40S": 362e12,
         "NVIDIA L4": 121e12}
# Allowed relative differences. Operations of GEMMs are counted exactly; attention works in blocks; times are
# from two clocks in one process.
COUNTED, ATTENTION, TIMED = 0.001, 0.05, 0.03
# The time of a step on the stand-ins is that of the host, which varies from step to step.
STANDIN_TIMED = 0.25
ROUNDING = 1e-3  # for sums of rounded figures


def training(machine, variant, ranks=0):
    arguments = ("--steps", str(STEPS if machine.real else 12))
    settings = {}
    if not machine.real:
        arguments += ("--small",)
        settings["STANDIN_GPU_NAME"] = "NVIDIA H200"  # a GPU whose peak is known
    elif ranks:
        arguments += ("--one-gpu",)
    return machine.run("gpt.py", variant, *arguments, mode=CUPTI, ranks=ranks, limit=240, **settings)


def report_on(machine, variant, *options):
    """The report, which is also kept as text for the archive, and the program's result."""
    run = training(machine, variant)
    if not options:
        machine.keep(f"gpt-{variant}", run)
    return machine.report(run, *options), run.result


def each(check):
    """The results of a check for each variant, in one line."""
    return "; ".join(f"{variant}: {check(variant)}" for variant in VARIANTS)

OWN_WORK = ("KERNEL.FILL", "KERNEL.COPY", "KERNEL.DTYPE_CONVERSION")  # the GPU's own work, within the steps


def timed(machine):
    return TIMED if machine.real else STANDIN_TIMED


def judged_steps(found, result):
    """The program's own times, in seconds, of the steps that the report analysed."""
    return result["took"][found["steps"]["warmup_excluded"]:]


def gpt_steps(machine):
    """GPT: the right number of steps; their time within 3 % of the script's own clock"""
    def check(variant):
        found, result = report_on(machine, variant)
        steps = found["steps"]
        expect(steps["count"] == result["steps"], f"{variant}: {steps['count']} steps, {result['steps']} were made")
        expect(found["quality"]["lost"] == 0, f"{variant}: {found['quality']['lost']} records lost")
        own = 1e3 * statistics.median(judged_steps(found, result))
        difference = near(steps["median_ms"], own, timed(machine), f"{variant}: ms of a step")
        return f"{steps['count']} of {own:.3f} ms ({difference}, by {steps['method']})"
    return each(check)


def step_seconds(found):
    return found["budget"]["wall_s"] / (found["steps"]["count"] - found["steps"]["warmup_excluded"])


def gpt_flops(machine):
    """GPT: operations of GEMMs and of attention against 6N + 12LHQT per token; no estimate without a basis"""
    def check(variant):
        found, result = report_on(machine, variant)
        budget, flops = found["budget"], result["flops"]
        gemms = flops["linear"] + (flops["attention"] if variant == "eager" else 0)
        summary = "GEMMs " + near(budget["gemm_flops"], gemms, COUNTED, f"{variant}: of GEMMs")
        if variant != "eager":
            # FlashAttention computes half of the square, and repeats one of five GEMMs in the backward pass.
            made = flops["attention"] / 2 * 3.5 / 3
            estimate = budget["hfu_attention"] and (budget["hfu_attention"] * budget["peak_flops"] *
                                                    step_seconds(found))
            summary += ", attention " + near(estimate, made, ATTENTION, f"{variant}: of attention")
        # A model without a wrapper has no mark of the forward pass, which the estimate needs.
        expect(budget["flops_per_step"] is None and budget["mfu"] is None and budget["mfu_reason"],
               f"{variant}: MFU {budget['mfu']} without a mark of the forward pass")
        return summary
    return each(check)


def model_flops(result):
    """The operations of the model per step: FlashAttention computes half of the square."""
    return result["flops"]["linear"] + result["flops"]["attention"] / (1 if result["variant"] == "eager" else 2)


def gpt_utilisation(machine):
    """GPT: MFU and HFU against closed form / (script's own step time x the data sheet's peak)"""
    def check(variant):
        result = training(machine, variant).result
        flops = model_flops(result)
        found, _ = report_on(machine, variant, "--flops-per-step", f"{flops:.0f}")
        peak = PEAKS.get(machine.gpus[0] if machine.real else "NVIDIA H200")
        if not peak:
            raise NotHere(f"no peak from a data sheet is known here for {machine.gpus[0]}")
        near(found["budget"]["peak_flops"], peak, 0.001, f"{variant}: the device's peak")
        mean = statistics.mean(judged_steps(found, result))
        mfu, hfu = found["budget"]["mfu"], found["budget"]["hfu"]
        difference = near(mfu, flops / (mean * peak), timed(machine), f"{variant}: MFU")
        gemms = result["flops"]["linear"] + (result["flops"]["attention"] if variant == "eager" else 0)
        near(hfu, gemms / (mean * peak), timed(machine), f"{variant}: HFU")
        expect(0 < hfu < 0.9, f"{variant}: HFU {hfu:.3f} is more than any GPU reaches")
        return f"MFU {mfu:.2%} ({difference}), HFU {hfu:.2%} of {found['budget']['hfu_coverage'] or 0:.0%} of GPU time"
    return each(check)


def categories(found):
    return {row["category"]: row for row in found["kernels"]["by_category"]}


def gpt_kernels(machine):
    """GPT: attention, Triton's kernels and GEMMs have the right categories; `other` at most 2 %"""
    def check(variant):
        found, result = report_on(machine, variant)
        kinds, top = categories(found), found["kernels"]["top"]
        wrong = []
        for row in top:
            if "flash_" in row["name"] and row["category"] != "attention":
                wrong.append(row)
            elif row["name"].startswith("triton_") and row["category"] in ("other", "GEMM", "attention", "communication"):
                wrong.append(row)
        expect(not wrong, f"{variant}: wrong categories: " + ", ".join(
            f"{row['short_name']} as {row['category']}" for row in wrong[:5]))
        wanted = result["shape"]["layers"] * result["steps"]
        if variant != "eager":
            forward = sum(row["count"] for row in top if "flash_fwd" in row["name"])
            expect(forward == wanted, f"{variant}: {forward} forward kernels of attention, not {wanted}")
        if variant == "compiled":
            expect("fused/Triton" in kinds, f"{variant}: no kernel of Triton's among {sorted(kinds)}")
        expect("GEMM" in kinds, f"{variant}: no GEMMs among {sorted(kinds)}")
        unknown = [row["short_name"] for row in top if row["category"] == "other"]
        share = kinds.get("other", {"share": 0})["share"]
        expect(share <= 0.02, f"{variant}: {share:.1%} of kernel time has no known category: {unknown[:5]}")
        return ", ".join(f"{row['category']} {row['share']:.0%}" for row in found["kernels"]["by_category"][:5])
    return each(check)


def gpt_memory(machine):
    """GPT: peaks of tensor memory, out-of-memory errors and the device's size are those of PyTorch"""
    def check(variant):
        found, result = report_on(machine, variant)
        memory, stats = found["memory"], result["memory"]
        for name, wanted in (("peak_allocated_bytes", stats["allocated_bytes.all.peak"]),
                             ("peak_reserved_bytes", stats["reserved_bytes.all.peak"]),
                             ("out_of_memory", stats["num_ooms"]),
                             ("capacity_bytes", result["device_bytes"])):
            expect(memory[name] == wanted, f"{variant}: {name} {memory[name]}, PyTorch says {wanted}")
        return f"{memory['peak_allocated_bytes']} B of {memory['peak_reserved_bytes']} B"
    return each(check)


def gpt_times_add_up(machine):
    """GPT: the lines of the budget sum to the step, those of the GPU to its time; one rank has no communication"""
    def check(variant):
        found, _ = report_on(machine, variant)
        budget, gpu = found["budget"], found["gpu_timeline"]
        lines = sum(line["seconds"] for line in budget["lines"])
        near(lines + budget["residual_s"], budget["wall_s"], ROUNDING, f"{variant}: the budget's lines")
        expect(all(line["seconds"] >= 0 for line in budget["lines"]), f"{variant}: {budget['lines']}")
        expect(abs(budget["residual_s"]) <= 0.02 * budget["wall_s"],
               f"{variant}: {budget['residual_s']:.3g} s of {budget['wall_s']:.3g} s are in no line")
        four = [gpu[f"{name}_ms"] for name in ("compute", "exposed_comm", "exposed_memcpy", "idle")]
        expect(min(four) >= 0, f"{variant}: {gpu}")
        near(sum(four), gpu["total_ms"], ROUNDING, f"{variant}: the GPU's lines")
        near(sum(gpu["idle_by_cause"].values()) + 1e-9, gpu["idle_ms"] + 1e-9, ROUNDING, f"{variant}: idle, by cause")
        expect(not gpu["exposed_comm_ms"] and not found["overlap"]["comm_ms"],
               f"{variant}: one rank communicates: {found['overlap']}")
        return f"GPU busy {gpu['busy_fraction']:.1%}"
    return each(check)


def gpt_findings(machine):
    """GPT: each finding has evidence and an action; none is about other ranks, or worth more than the time
    that it concerns"""
    def check(variant):
        found, _ = report_on(machine, variant)
        worked = sum(line["seconds"] for line in found["budget"]["lines"]
                     if line["name"] in ("compute", "memory copies"))
        for finding in found["findings"]:
            expect(finding["evidence"] and finding["action"], f"{variant}: {finding}")
            others = finding["id"].startswith("DIST.") and finding["id"] != "DIST.FAIL_SLOW"
            expect(not others, f"{variant}, one rank: {finding['title']}")
            most = worked if finding["id"] in OWN_WORK else found["steps"]["analysed_s"]
            expect((finding["saving_s"] or 0) <= most * (1 + ROUNDING),
                   f"{variant}: worth more than the {most:.3g} s that it concerns: {finding}")
        return ", ".join(f"{one['id']} ({one['evidence']})" for one in found["findings"]) or "none"
    return each(check)


def gpt_communication(machine):
    """GPT, two ranks: the bytes of gradients and the estimate of operations are right; exposed and overlapped
    communication sum to all communication, which fits into the step"""
    run = training(machine, "fused", ranks=2)
    machine.keep("gpt-two-ranks", run)
    found, result = machine.report(run), run.result
    looked_at = found["steps"]["count"] - found["steps"]["warmup_excluded"]
    expect(found["steps"]["count"] == result["steps"], f"{found['steps']['count']} steps, not {result['steps']}")
    sent = sum(row["count"] * row["bytes"] for row in found["collectives"] if row["op"] == "all_reduce")
    wanted = 2 * result["parameters"] * looked_at  # two bytes per parameter
    expect(sent == wanted, f"{sent} B were summed in {looked_at} steps, the gradients are {wanted} B")
    model = near(found["budget"]["flops_per_step"], 2 * model_flops(result), ATTENTION, "operations of a step")
    overlap, step = found["overlap"], 1e3 * step_seconds(found)
    comm, exposed = overlap["comm_ms"], overlap["exposed_ms"]
    expect(comm and 0 <= exposed <= comm * (1 + ROUNDING) and comm <= step * (1 + TIMED), f"{overlap}, step {step}")
    near(exposed + overlap["overlapped_ms"], comm, ROUNDING, "exposed and overlapped")
    near(overlap["exposed_wait_ms"] + overlap["exposed_transfer_ms"] + 1e-9, exposed + 1e-9, 0.01, "wait and transfer")
    return (f"{sent // looked_at:.0f} B and {model} operations a step; of {step:.1f} ms {comm:.2f} ms communicate, {exposed:.2f} ms exposed; "
            + (", ".join(ids_of(found)) or "no findings"))


def gpt_graphed(machine):
    """GPT, compiled with CUDA graphs: steps, operations of the GEMMs and tensor memory are right; all of the critical
    path has a reason"""
    found, result = report_on(machine, "graphed")
    expect(found["steps"]["count"] == result["steps"], f"{found['steps']['count']} steps, not {result['steps']}")
    gemms = found["budget"]["gemm_flops"]
    summary = near(gemms, result["flops"]["linear"], COUNTED, "of GEMMs")
    expect(found["memory"]["peak_allocated_bytes"] == result["memory"]["allocated_bytes.all.peak"], "tensor memory")
    path = found["critical_path"]["by_category"]
    expect(path["unknown"] <= 0.01 * sum(path.values()), f"the critical path: {path}")
    return f"GEMMs {summary}; {found['steps']['median_ms']:.3f} ms a step"
