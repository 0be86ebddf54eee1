# SPDX-License-Identifier: MIT
"""The recordings of other tools that tests of the outputs report on."""
import tarfile


def recordings(testdata, scratch):
    """Every recording; those of several ranks together."""
    for path in sorted(testdata.glob("kineto/**/*")):
        if path.name.endswith((".tar.gz", ".tgz")):
            with tarfile.open(path) as archive:
                archive.extractall(scratch)
            yield [scratch]
        elif path.name.endswith((".json", ".json.gz")):
            yield [str(path)]
