"""The JSON Schema of a model, so that editors complete and underline specs.

Derived from the same pydantic models as validation, but not by pydantic's own writer: its output changes between
releases, and a generated file may not.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, StringConstraints
from pydantic.fields import FieldInfo

Schema = dict[str, Any]

_SCALARS: dict[Any, str] = {
    str: "string",
    int: "integer",
    bool: "boolean",
    float: "number",
    type(None): "null",
}


@dataclass(frozen=True)
class WordOf:
    """Marks a string that must be a word of one section of the vocabulary."""

    section: str


def of(model: type[BaseModel], words: dict[str, list[str]]) -> Schema:
    """The schema of one model; `words` are the allowed values of each section of the vocabulary."""
    hints = get_type_hints(model, include_extras=True)
    properties = {}
    for name, field in model.model_fields.items():
        properties[name] = _annotation(hints[name], words)
        if field.description:
            properties[name] = {"description": field.description, **properties[name]}
    required = [name for name, field in model.model_fields.items() if field.is_required()]
    extra = hints.get("__pydantic_extra__") if model.model_config.get("extra") == "allow" else None
    out: Schema = {"type": "object", "properties": properties}
    if required:
        out["required"] = required
    out["additionalProperties"] = _annotation(get_args(extra)[1], words) if extra else False
    return out


def _annotation(annotation: Any, words: dict[str, list[str]]) -> Schema:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        out = _annotation(arguments[0], words)
        for mark in arguments[1:]:
            if isinstance(mark, WordOf):
                out = {"enum": words[mark.section]}
            elif isinstance(mark, StringConstraints) and isinstance(mark.pattern, str):
                out["pattern"] = mark.pattern
            elif isinstance(mark, FieldInfo):
                least = [m.min_length for m in mark.metadata if hasattr(m, "min_length")]
                out |= {"minItems": least[0]} if least else {}
        return out
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        options = [a for a in arguments if a is not type(None)]
        return (
            _annotation(options[0], words)
            if len(options) == 1
            else {"anyOf": [_annotation(a, words) for a in options]}
        )
    if origin is list:
        return {"type": "array", "items": _annotation(arguments[0], words)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _annotation(arguments[1], words)}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return of(annotation, words)
    return {"type": _SCALARS[annotation]} if annotation in _SCALARS else {}
