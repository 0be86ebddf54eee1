# SPDX-License-Identifier: MIT
"""Cuts a recording of a GPU into the parts of work.py."""
MARKER = "spin_kernel"
# A fill in a graph may run as a kernel of the driver's. On an H100 CUPTI reported one of 68 so to torch.profiler, and
# all 68 as fills to a client that asked for graphs by node.
FILLING_KERNELS = "memset"


def cut(spans):
    """Cuts spans (name, seconds, kind), in order of their start, at the markers. Returns for each part and
    kind the number of spans of each name and their time. Spans before the first marker and after the last
    are left out."""
    parts, inside = [], None
    for name, seconds, kind in spans:
        if MARKER in name:
            if inside is not None:
                parts.append(inside)
            inside = {}
            continue
        if inside is None:
            continue
        if kind == "kernels" and name.startswith(FILLING_KERNELS):
            kind = "fills"
        of_kind = inside.setdefault(kind, {"seconds": 0.0, "names": {}})
        of_kind["seconds"] += seconds
        of_kind["names"][name] = of_kind["names"].get(name, 0) + 1
    return parts


def difference(ours, theirs):
    """The differences between two counts by name, as a short text."""
    differences = [f"{ours.get(name, 0)} for {theirs.get(name, 0)} of {name[:80]}"
                   for name in sorted(set(ours) | set(theirs)) if ours.get(name, 0) != theirs.get(name, 0)]
    return "; ".join(differences[:5]) + (f" and {len(differences) - 5} more" if len(differences) > 5 else "")
