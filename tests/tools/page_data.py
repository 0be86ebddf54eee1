# SPDX-License-Identifier: MIT
"""The document in a page that tscope-report wrote."""
import json
import re

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


def unpacked(value):
    """Its tables are rows under columns."""
    if isinstance(value, list):
        return [unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"_columns", "_rows"}:
        return [dict(zip(value["_columns"], map(unpacked, row))) for row in value["_rows"]]
    return {key: unpacked(one) for key, one in value.items()}


def data_of(page):
    return unpacked(json.loads(DATA.search(page)[1]))
