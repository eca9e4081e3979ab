"""The data types that tables and constraints let through: a kernel has no code for others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from generator import model
from generator.lint.subject import Subject


class KernelTypes(Subject):
    """Asked of sound specs only, for it evaluates their constraints."""

    def check(self) -> None:
        self.kernel = self.vocabulary.kernels[self.spec.semantics.kernel]
        arguments = (
            *zip(self.spec.tensors("input"), self.kernel.inputs, strict=False),
            *zip(self.spec.tensors("output"), self.kernel.outputs, strict=False),
        )
        self.arguments = {field.name: argument for field, argument in arguments}
        told: set[str] = set()  # one finding for each tensor
        for i, row in enumerate(self.spec.support):
            for attributes in self.chosen(row):
                self.table(i, row, attributes, told)

    def chosen(self, row: model.SupportRow) -> Iterator[dict[str, str]]:
        """The values, in words, of the attributes that choose what the kernel takes, as far as a table is for them."""
        meanings = self.spec.semantics.meanings
        fields = {m.by for p, m in meanings.items() if m.by and self.kernel.parameters[p].dtypes}
        values = {name: self.choices(self.spec.field(name).type) for name in sorted(fields)}
        values |= row.when or {}
        for combination in itertools.product(*values.values()):
            yield dict(zip(values, combination, strict=True))

    def kernel_dtypes(self, attributes: Mapping[str, str]) -> dict[str, str | list[str]]:
        """What the kernel takes: of its tensors the data types, or the tensor whose type it is."""
        taken = dict(self.kernel.dtypes)
        untold = self.kernel.untold(self.spec)
        for name, parameter in self.kernel.parameters.items():
            meaning = self.spec.semantics.meanings.get(name)
            value = meaning.value if meaning else untold[name]
            if meaning and meaning.by is not None and meaning.by in attributes:
                value = (meaning.values or {})[attributes[meaning.by]]
            taken |= parameter.dtypes.get(value or "", {})
        return taken

    def table(
        self, index: int, row: model.SupportRow, attributes: Mapping[str, str], told: set[str]
    ) -> None:
        taken = self.kernel_dtypes(attributes)
        tables = {name: row.tensors[name].dtypes for name in self.arguments}
        for combination in itertools.product(*tables.values()):
            dtypes = dict(zip(tables, combination, strict=True))
            of_argument = {self.arguments[name]: dtype for name, dtype in dtypes.items()}
            for name, dtype in dtypes.items():
                allowed = taken.get(self.arguments[name], [dtype])
                if isinstance(allowed, str):
                    good = dtype == of_argument.get(allowed, dtype)
                else:
                    good = dtype in allowed
                if good or name in told:
                    continue
                if not self.excluded(attributes, dtypes, name):
                    told.add(name)
                    self.refuse(index, name, dtype, dtypes, attributes, allowed)

    def excluded(
        self, attributes: Mapping[str, str], dtypes: Mapping[str, str], tensor: str
    ) -> bool:
        """Whether no call with this tensor has these: by a constraint of data types alone, or by what functions make.

        A constraint is not asked where a tensor that it reads is absent.
        """
        there = {f.name for f in self.spec.tensors() if f.optional is None or f.name == tensor}
        values: dict[str, Any] = {n: SimpleNamespace(dtype=dtypes[n]) for n in there}
        for name, word in attributes.items():
            values[name] = word == "true" if self.spec.field(name).type == "bool" else word
        known = {*attributes, *(f"{name}.dtype" for name in there)}
        data_types = self.vocabulary.data_types
        for name, derived in self.operator.derived.items():
            if known.issuperset(derived.reads):
                # What has no value is told by the spec's test of itself.
                with suppress(IndexError, ArithmeticError):
                    values[name] = derived.evaluate(values, data_types)
                    known.add(name)
        if self.operator.source.dialect != "directml":
            like = self.spec.field(tensor).dtype_of
            if like and dtypes[tensor] != dtypes[like]:
                return True
        return any(
            known.issuperset(rule.require.reads) and not rule.require.holds(values, data_types)
            for rule in self.operator.rules
        )

    def refuse(
        self,
        index: int,
        name: str,
        dtype: str,
        dtypes: Mapping[str, str],
        attributes: Mapping[str, str],
        allowed: str | list[str],
    ) -> None:
        path = ("support", index, name, "dtypes")
        span = self.document.span(
            (*path, self.spec.support[index].tensors[name].dtypes.index(dtype))
        )
        where = "".join(f", where {n} is {v}" for n, v in attributes.items())
        argument, kernel = self.arguments[name], self.spec.semantics.kernel
        if isinstance(allowed, list):
            self.report.add(
                "E226",
                f"kernel {kernel} does not take {dtype} as {argument}{where}",
                span,
                f"it takes {', '.join(allowed)}",
            )
            return
        other = next(n for n, a in self.arguments.items() if a == allowed)
        follow = f"add the constraint `use: same_dtype({name}, {other})`"
        if attributes:
            follow = (
                f"let a constraint of data types and these attributes alone require it{where[1:]}"
            )
        elif self.operator.source.dialect != "directml" and self.spec.field(name).kind == "output":
            follow = f"give the field `dtype: {other}.dtype`"
        self.report.add(
            "E226",
            f"kernel {kernel} does not take {dtype} as {argument} beside {dtypes[other]} as {allowed}{where}",
            span,
            f"{argument} has the data type of {allowed}",
            help=f"{follow}, or narrow the tables",
        )
