# SPDX-License-Identifier: MIT
"""The recordings of other tools in the folder `testdata` beside the source: {name: paths}; none where it does not exist."""
import collections
import glob
import gzip
import json
import os
import tarfile


def unpack(path, folder):
    with tarfile.open(path) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return sorted(name for name in glob.glob(folder + "/**", recursive=True) if os.path.isfile(name))


def profiles(testdata, scratch):
    """Of PyTorch's profiler; those of the ranks of a job together, unpacked below `scratch`."""
    data, found = os.path.join(testdata, "kineto"), {}
    for path in sorted(glob.glob(data + "/**/*.gz", recursive=True)):
        packed = path.endswith(".tar.gz")
        found["kineto-" + os.path.relpath(path, data).replace("/", "-")] = \
            unpack(path, os.path.join(scratch, "unpacked-" + os.path.basename(path))) if packed else [path]
    return found


def ranks_of_a_job(testdata, scratch):
    return next((paths for paths in profiles(testdata, scratch).values() if len(paths) > 1), [])


def recordings(testdata, scratch):
    flights = {"flight-" + os.path.basename(path[:-1]): sorted(glob.glob(path + "_dump_*"))
               for path in sorted(glob.glob(os.path.join(testdata, "flight_recorder", "*", "")))}
    snapshots = {"snapshot-" + os.path.basename(path): [path]
                 for path in sorted(glob.glob(os.path.join(testdata, "memory_snapshot", "*.pickle")))}
    return {**flights, **snapshots, **profiles(testdata, scratch)}


def document_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        document = json.load(file)
    return document if isinstance(document, dict) else {"traceEvents": document}


def spans_of(document):
    return [event for event in document["traceEvents"] if isinstance(event, dict) and event.get("ph") == "X"]


def device_work(path):
    """The rank, and how much work of its device took how many ns."""
    document = document_of(path)
    return document["distributedInfo"]["rank"], collections.Counter(
        round(float(event["dur"]) * 1000) for event in spans_of(document)
        if event.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"))
