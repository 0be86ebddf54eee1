# SPDX-License-Identifier: MIT
"""What a report finds, by the ids of its findings."""


def ids_of(document):
    return [finding["id"] for finding in document["findings"]]


def findings_of(document, name):
    return [finding for finding in document["findings"] if finding["id"] == name]


def ranks_of(document, name):
    """For each finding of that id, the ranks that it names."""
    return [finding["ranks"] for finding in findings_of(document, name)]
