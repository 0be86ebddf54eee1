# SPDX-License-Identifier: MIT
"""A recording of a GPU, cut into the parts of work.py."""
MARKER = "spin_kernel"


def cut(spans):
    """Spans (name, seconds, kind) in order of their start, cut at the markers: for each part, by
    kind, the number of each name and the time. What lies before the first marker and after the last
    is left out."""
    parts, inside = [], None
    for name, seconds, kind in spans:
        if MARKER in name:
            if inside is not None:
                parts.append(inside)
            inside = {}
            continue
        if inside is None:
            continue
        of_kind = inside.setdefault(kind, {"seconds": 0.0, "names": {}})
        of_kind["seconds"] += seconds
        of_kind["names"][name] = of_kind["names"].get(name, 0) + 1
    return parts


def difference(ours, theirs):
    """Where two counts by name differ, in few words."""
    apart = [f"{ours.get(name, 0)} for {theirs.get(name, 0)} of {name[:80]}"
             for name in sorted(set(ours) | set(theirs)) if ours.get(name, 0) != theirs.get(name, 0)]
    return "; ".join(apart[:5]) + (f" and {len(apart) - 5} more" if len(apart) > 5 else "")
