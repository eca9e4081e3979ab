"""What the installed package knows of all operators: the text of specops/catalogue.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from generator.lint import Linted
from generator.names import natural
from generator.resolve import families
from generator.values import OperatorValues


def text(linted: Linted, made: Mapping[str, Callable[[], OperatorValues]]) -> str:
    """All operators, with the calls that compile their kernels: an example of each combination of attributes."""
    newest = {
        group[-1].id
        for group in families([o for o in linted.operators if o.source.dialect == "onnx"])
    }
    records = []
    for o in sorted(linted.operators, key=lambda o: natural(o.id)):
        calls: list[dict[str, Any]] = []
        for example in made[o.id]().examples:
            inputs = {f.name: example.tensors[f.name][0] for f in o.spec.tensors("input")}
            call = {
                "inputs": {n: [dtype, list(example.sizes[n])] for n, dtype in inputs.items()},
                "attributes": {
                    f.name: example.attributes[f.name]
                    for f in o.spec.fields
                    if f.name in example.attributes and f.length_of is None
                },
                "outputs": [f.name for f in o.spec.tensors("output") if f.name in example.tensors],
                "sizes": {
                    f.name: example.sizes[f.name]
                    for f in o.spec.tensors("output")
                    if f.sizes is None and f.name in example.tensors
                },
            }
            alike = [c for c in calls if c["attributes"] == call["attributes"]]
            if all(c["outputs"] != call["outputs"] for c in alike):
                calls.append(call)
        records.append(
            {
                "id": o.id,
                "operator": o.spec.operator,
                "since": str(o.spec.introduced or o.spec.since_version or ""),
                "newest": o.source.dialect != "onnx" or o.id in newest,
                "summary": o.spec.summary,
                "calls": calls,
            }
        )
    lines = ",\n".join(json.dumps(record) for record in records)
    return f"[\n{lines}\n]\n"
