"""The tables of data types: complete, of what the dialect has, and of sound levels."""

from __future__ import annotations

import itertools

from generator import model
from generator.diagnostics import Note
from generator.lint.subject import Subject
from generator.source import KeyPath


class Tables(Subject):
    def check(self) -> None:
        tensors = [f.name for f in self.spec.tensors()]
        leveled = self.operator.source.dialect == "directml"
        chosen = []  # whether each table's `when` is understood
        for i, row in enumerate(self.spec.support):
            path: KeyPath = ("support", i)
            unknown = [self.unknown(name, (*path, name), tensors) for name in row.tensors]
            absent = [t for t in tensors if t not in row.tensors]
            if absent and not any(unknown):
                self.report.add(
                    "E102", f"`{absent[0]}` is missing", self.document.span(path), "in this table"
                )
            chosen.append(self.when(row, path))
            if (
                leveled
                and row.since is None
                and any(r.when == row.when for r in self.spec.support[:i])
            ):
                self.report.add(
                    "E102",
                    "`since` is missing",
                    self.document.span(path),
                    "in this table",
                    help="only the first table, the operator's general definition, may do without",
                )
            elif not leveled and row.since is not None:
                self.report.add(
                    "E230",
                    "`since` names a feature level, and this dialect has none",
                    self.document.key_span((*path, "since")),
                    "not here",
                )
            for name, support in row.tensors.items():
                self.ranks(support, (*path, name, "ranks"))
                self.dtypes(support, (*path, name, "dtypes"))
        if not all(chosen):
            return
        for group in {str(row.when): row.when for row in self.spec.support}.values():
            self.levels(
                [
                    (i, row)
                    for i, row in enumerate(self.spec.support)
                    if row.when == group and row.since is not None
                ]
            )
        self.choices_of_tables()

    def ranks(self, support: model.TensorSupport, path: KeyPath) -> None:
        """Some, and all of them ranks of the dialect."""
        dialect = self.operator.source.dialect
        allowed = self.vocabulary.dialects.of(dialect)
        span = self.document.span(path)
        if support.low > support.high:
            self.report.add("E231", f"`{support.ranks}` is empty", span, "from .. to")
        elif allowed.low <= allowed.high and not (
            allowed.low <= support.low and support.high <= allowed.high
        ):
            self.report.add(
                "E231",
                f"`{support.ranks}` goes beyond the ranks of {dialect}",
                span,
                f"{dialect} has {allowed.ranks}",
                help=f"narrow the table; `dialects` in {self.shared.file} says what {dialect} has",
            )

    def dtypes(self, support: model.TensorSupport, path: KeyPath) -> None:
        """Each once, and one of the dialect."""
        dialect = self.operator.source.dialect
        allowed = self.vocabulary.dialects.of(dialect).dtypes
        sound = set(allowed) <= set(self.vocabulary.data_types)  # else that is told
        for i, dtype in enumerate(support.dtypes):
            span = self.document.span((*path, i))
            if dtype in support.dtypes[:i]:
                self.report.add("E211", f"`{dtype}` stands twice", span, "again")
            elif sound and dtype not in allowed:
                self.report.add(
                    "E103",
                    f"`{dtype}` is not a data type of {dialect}",
                    span,
                    f"{dialect} has {', '.join(allowed)}",
                    help=f"leave it out; `dialects` in {self.shared.file} says what {dialect} has",
                )

    def when(self, row: model.SupportRow, path: KeyPath) -> bool:
        """The attribute that chooses among tables, and its values; whether they are known."""
        if row.when is None:
            return True
        at: KeyPath = (*path, "when")
        if len(row.when) != 1:
            self.report.add("E212", "`when` names one attribute", self.document.key_span(at))
            return False
        ((name, values),) = row.when.items()
        enums = [f.name for f in self.spec.fields if f.type in self.vocabulary.enums]
        if self.unknown(name, (*at, name), enums, "a field with a fixed set of values"):
            return False
        known = self.choices(self.spec.field(name).type)
        unknown = [
            self.unknown(value, (*at, name, i), known, f"a value of {name}")
            for i, value in enumerate(values)
        ]
        return not any(unknown)

    def choices_of_tables(self) -> None:
        """Each value of the attribute that chooses among tables has tables, of one group only."""
        groups = {str(row.when): row.when for row in self.spec.support}
        named = [next(iter(when), "") if when else "" for when in groups.values()]
        span = self.document.key_span(("support",))
        if len(set(named)) > 1:
            self.report.add("E212", "all tables have `when` of one attribute, or none has", span)
            return
        name = named[0]
        if not name or self.report.count > self.start:
            return
        taken = [value for when in groups.values() for value in (when or {})[name]]
        for value in self.choices(self.spec.field(name).type):
            if taken.count(value) != 1:
                found = "no table" if value not in taken else "tables of two groups"
                self.report.add("E231", f"`{value}` of {name} has {found}", span, "one for each")

    def levels(self, rows: list[tuple[int, model.SupportRow]]) -> None:
        """The tables of one group: newest first, none loses a type, the oldest is of the operator's own level."""
        levels = self.vocabulary.feature_levels
        for (i, newer), (j, older) in itertools.pairwise(rows):
            assert newer.since and older.since
            if levels.index(newer.since) <= levels.index(older.since):
                self.report.add(
                    "E231",
                    f"level {older.since} has two tables"
                    if older.since == newer.since
                    else f"level {older.since} stands after {newer.since}",
                    self.document.span(("support", j, "since")),
                    "newest first",
                )
            for name in older.tensors.keys() & newer.tensors.keys():
                was, now = older.tensors[name], newer.tensors[name]
                if now.low <= now.high and (was.low < now.low or was.high > now.high):
                    still = Note(self.document.span(("support", j, name, "ranks")), "still here")
                    self.report.add(
                        "E230",
                        f"{name} loses ranks at level {newer.since}",
                        self.document.span(("support", i, name, "ranks")),
                        f"level {older.since} has {was.ranks}",
                        notes=[still],
                        help="a newer level never removes a rank",
                    )
                for k, dtype in enumerate(older.tensors[name].dtypes):
                    if dtype not in newer.tensors[name].dtypes:
                        still = Note(
                            self.document.span(("support", j, name, "dtypes", k)), "still here"
                        )
                        self.report.add(
                            "E230",
                            f"{name} loses {dtype} at level {newer.since}",
                            self.document.key_span(("support", i, name)),
                            f"level {older.since} has it",
                            notes=[still],
                            help="a newer level never removes a type",
                        )
        if rows and self.spec.introduced is not None and rows[-1][1].since != self.spec.introduced:
            self.report.add(
                "E231",
                f"the oldest table is of level {rows[-1][1].since}, but the operator is of {self.spec.introduced}",
                self.document.span(("support", rows[-1][0], "since")),
            )
