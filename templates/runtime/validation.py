"""The validator: whether typed values are allowed, or all violations at once.

An operator's rules, fields and data-type tables are data in its generated module; this module applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from specops.errors import ValidationError, Violation
from specops.tensor import Tensor, packed
from specops.vocabulary import DATA_TYPES, FEATURE_LEVELS


@dataclass(frozen=True)
class Computed:
    """A value that follows from fields: `function` takes those that it `reads`, by name."""

    function: Callable[..., Any]
    reads: tuple[str, ...]

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value. Raises KeyError, IndexError or ArithmeticError where the fields do not give one."""
        return self.function(**{name: values[name] for name in self.reads})


@dataclass(frozen=True)
class Field:
    """One member of an operator's struct.

    `default` is a literal, or of an array a Computed; None where callers must give a value. Where it `repeats` a
    number, the functions take another in its place. Of an output, `sizes` and `dtype` (a data type, "x.dtype" for that
    of an input, or a Computed) say what the functions allocate, `optional` is their argument that asks for it, and
    `sizes_argument` the one that asks for its sizes. An input that is no tensor holds numbers that the other sizes
    follow from, so that callers tell them as they tell attributes.
    """

    name: str
    kind: str  # input, output, attribute
    type: str  # tensor, uint, uint[], int, int[], float, bool, or an enum of the vocabulary
    length_of: str | None = None
    axes_of: str | None = None
    one_for_each: str | None = None  # what an array has entries for, in words
    default: Any = None
    repeats: bool = False
    sizes: Computed | None = None
    dtype: str | Computed | None = None
    optional: str | None = None
    sizes_argument: str | None = None

    @property
    def told(self) -> bool:
        """Whether callers give it as a value: neither a tensor nor the length of an array."""
        return self.type != "tensor" and self.length_of is None


@dataclass(frozen=True)
class Allowed:
    """What one tensor may be."""

    ranks: tuple[int, int]
    dtypes: tuple[str, ...]

    def has_rank_of(self, tensor: Tensor) -> bool:
        low, high = self.ranks
        return low <= len(tensor.sizes) <= high

    def holds(self, tensor: Tensor) -> bool:
        return tensor.dtype in self.dtypes and self.has_rank_of(tensor)


@dataclass(frozen=True)
class Support:
    """One table of the page: what each tensor may be from a feature level on.

    `when` is an attribute and those of its values that the table is for; None where it is for all.
    """

    since: str | None
    tensors: Mapping[str, Allowed]
    when: tuple[str, tuple[str, ...]] | None = None

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is the table for these attributes."""
        return self.when is None or values.get(self.when[0]) in self.when[1]


@dataclass(frozen=True)
class Rule:
    """A constraint: `check` takes the fields by name and says whether it holds.

    `reads` lists what decides it; a rule is skipped where one of these could not be understood or where a rule that it
    `needs` failed, so that each message stands for a mistake of its own.
    """

    id: str
    field: str
    check: Callable[..., bool]
    allowed: str
    origin: str
    reads: tuple[str, ...]
    needs: tuple[str, ...] = ()
    only: str | None = None  # a tensor's rule: for inputs or outputs only

    @cached_property
    def names(self) -> frozenset[str]:
        """The fields and derived values that `check` takes."""
        return frozenset(read.split(".")[0] for read in self.reads)

    def is_absent(self, values: Mapping[str, Any]) -> bool:
        """Whether it is about an optional tensor that is not there."""
        return any(values.get(name, values) is None for name in self.names)

    def holds(self, values: Mapping[str, Any]) -> bool:
        """An index outside its array and a division by zero make a rule false."""
        try:
            return self.check(**{name: values[name] for name in self.names})
        except (IndexError, ArithmeticError):
            return False


@dataclass(frozen=True)
class Subject:
    """What violations are about: an operator or a model, by the name that messages give it, and its page."""

    name: str
    page: str

    def violation(
        self, id: str, field: str, found: str, allowed: str, place: str = ""
    ) -> Violation:
        return Violation(id, self.name, field, found, allowed, f"{self.page} {place}".strip())

    def refusal(self, id: str, field: str, found: str, allowed: str) -> ValidationError:
        """An error of one violation."""
        return ValidationError([self.violation(id, field, found, allowed)])


@dataclass(frozen=True)
class Operator(Subject):
    """All that is known of one operator before any data."""

    introduced: str | None
    support_place: str  # where the page has its data types, or "(decided)"
    fields: tuple[Field, ...]
    support: tuple[Support, ...]
    rules: tuple[Rule, ...]
    lower: Computed  # to its kernel
    derived: Mapping[str, Computed]
    tensor_rules: tuple[Rule, ...] = ()
    tensor_page: str = ""

    def data_types(self, name: str, values: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Those that a tensor may have at any level, with these attributes if given; all, where there is no table."""
        tables = [t for t in self.support if values is None or t.holds(values)] or self.support
        listed = [dtype for table in tables for dtype in table.tensors[name].dtypes]
        return tuple(dict.fromkeys(listed or DATA_TYPES))

    @cached_property
    def told(self) -> tuple[Field, ...]:
        """What a caller tells besides tensors; lengths of arrays follow from these."""
        return tuple(f for f in self.fields if f.told)

    def complete(self, values: dict[str, Any], given: Container[str]) -> None:
        """Add to inputs and attributes what follows from them; what cannot be computed is left out.

        No default stands in for a field that was `given`, though it may not have been understood. An integer in place
        of an array stands for every entry, of which there are as many as the default has.
        """
        for field in self.fields:
            number = values.get(field.name)
            absent = field.name not in values and field.name not in given
            if isinstance(field.default, Computed) and (absent or isinstance(number, int)):
                values.pop(field.name, None)
                _compute(values, field.name, field.default)
                if not absent and field.name in values:
                    values[field.name] = (number,) * len(values[field.name])
        for field in self.fields:
            if field.length_of in values:
                values.setdefault(field.name, len(values[field.length_of]))
        for name, computed in self.derived.items():
            _compute(values, name, computed)

    def accepts(self, values: Mapping[str, Any], feature_level: str | None = None) -> bool:
        """Whether values, all of which are known, plainly break no rule; if not, `violations` tells.

        Nearly all are valid, and this takes 0.4 to 0.8 of the time.
        """
        tables = self._tables(values, feature_level)
        if not tables or not self.derived.keys() <= values.keys():
            return False
        for field in self.fields:
            tensor = values[field.name]
            if field.type != "tensor" or tensor is None:
                continue
            if not tables[0].tensors[field.name].holds(tensor):
                return False
            if any(broken_rules(self.tensor_rules, tensor, field.kind)):
                return False
        return all(rule.is_absent(values) or rule.holds(values) for rule in self.rules)

    def violations(
        self,
        values: Mapping[str, Any],
        feature_level: str | None = None,
        unknown: frozenset[str] = frozenset(),
        told_as: Mapping[str, str] = MappingProxyType({}),
        shown_as: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Violation]:
        """Every rule that the values break.

        `unknown` are fields whose value could not be understood, and parts of tensors, as "x.dtype" or "x.sizes", that
        are not known; `told_as` are the names of the parts of tensors that callers gave by names of their own;
        `shown_as` are values as callers wrote them.
        """
        found: list[Violation] = []
        unreadable = {*unknown, *(name for name in self.derived if name not in values)}
        for field in self.fields:
            name, tensor = field.name, values.get(field.name)
            known = unknown.isdisjoint({f"{name}.dtype", f"{name}.sizes"})
            if isinstance(tensor, Tensor) and known:
                for rule in broken_rules(self.tensor_rules, tensor, field.kind):
                    unreadable.add(f"{name}.{rule.field}")
                    page = self.tensor_page
                    found.append(rule_violation(rule, tensor, name, self.name, page, told_as))
        self._check_support(values, feature_level, unreadable, found)
        for name, computed in self.derived.items():
            if any(read in unreadable or f"{read}.sizes" in unreadable for read in computed.reads):
                unreadable.add(name)
        unsettled: set[str] = set()  # rules that failed or could not be asked
        for rule in self.rules:
            if rule.is_absent(values):
                continue
            if unsettled.intersection(rule.needs) or any(
                _covers(unreadable, r) for r in rule.reads
            ):
                unsettled.add(rule.id)
            elif not rule.holds(values):
                unsettled.add(rule.id)
                sources = self._sources(rule.reads, values)
                shown = _shown(sources, {**values, **shown_as}, told_as)
                allowed = rule.allowed + self._sizes_that_do(rule, values)
                found.append(self.violation(rule.id, rule.field, shown, allowed, rule.origin))
        lost = [name for name in self.derived if name not in values]
        if lost and not found and not unknown:
            found.append(self.not_computable(lost[0]))
        return found

    def _sizes_that_do(self, rule: Rule, values: Mapping[str, Any]) -> str:
        """Of an output whose sizes break a rule, the words for those that follow from the other fields and keep all."""
        field = next((f for f in self.fields if f.name == rule.field), None)
        if field is None or field.sizes is None or f"{field.name}.sizes" not in rule.reads:
            return ""
        try:
            wanted = packed(values[field.name].dtype, tuple(field.sizes(values)))
        except (KeyError, IndexError, ArithmeticError):
            return ""
        changed = {**values, field.name: wanted}
        # Sizes of indices follow from those of another output, which may be wrong, too.
        about = {
            f.name for f in self.fields if f.sizes and f.name in (field.name, *field.sizes.reads)
        }
        for other in self.rules:
            asked = other.field in about and f"{other.field}.sizes" in other.reads
            asked = asked and other.names <= changed.keys() and not other.is_absent(changed)
            if asked and not other.holds(changed):
                return ""
        ranked = any(t.tensors[field.name].has_rank_of(wanted) for t in self._tables(values))
        if not ranked or any(broken_rules(self.tensor_rules, wanted, field.kind)):
            return ""
        return f"; {list(wanted.sizes)} would do"

    def _sources(self, reads: Iterable[str], values: Mapping[str, Any]) -> tuple[str, ...]:
        """What was given, in place of what is derived from it, and with a length the array that it is of."""
        out: dict[str, None] = {}
        for read in reads:
            if read in self.derived:
                out |= dict.fromkeys(self._sources(self.derived[read].reads, values))
                continue
            field = next((f for f in self.fields if f.name == read), None)
            tensor = field is not None and field.type == "tensor"
            out[f"{read}.sizes" if tensor else read] = None
            if field is not None and field.length_of in values:
                out[str(field.length_of)] = None
        return tuple(out)

    def not_computable(self, name: str) -> Violation:
        """A value that nothing gives, though no rule says why: it may not pass for all that."""
        return self.violation("not_computable", name, "no value", "fields that give one")

    def _tables(self, values: Mapping[str, Any], feature_level: str | None = None) -> list[Support]:
        """The tables for these attributes that are there at a level, the newest first."""
        tables = [table for table in self.support if table.holds(values)]
        if feature_level is None:
            return tables
        at = FEATURE_LEVELS.index(feature_level)
        return [t for t in tables if t.since and FEATURE_LEVELS.index(t.since) <= at]

    def _check_support(
        self,
        values: Mapping[str, Any],
        feature_level: str | None,
        unreadable: set[str],
        found: list[Violation],
    ) -> None:
        """Add to `found` what the newest table of the level does not allow, to `unreadable` its data types."""
        support = self._tables(values)
        if not support:
            return  # what chooses the table is not understood
        tables = self._tables(values, feature_level)
        table = tables[0] if tables else support[0]
        if not tables:
            found.append(
                self.violation(
                    "feature_level",
                    "feature_level",
                    f"{feature_level}",
                    f"{self.name} exists from feature level {self.introduced} on",
                    "Availability",
                )
            )
        place = f"{self.support_place} {table.since}" if table.since else self.support_place
        for name, allowed in table.tensors.items():
            tensor = values.get(name)
            if not isinstance(tensor, Tensor):
                continue
            if tensor.dtype not in allowed.dtypes and f"{name}.dtype" not in unreadable:
                unreadable.add(f"{name}.dtype")
                later = _since(support, name, tensor.dtype)
                hint = (
                    f" ({tensor.dtype} from feature level {later} on)"
                    if later and table.since
                    else ""
                )
                text = f"{', '.join(allowed.dtypes)}{hint}"
                found.append(self.violation("supported_data_type", name, tensor.dtype, text, place))
            if not allowed.has_rank_of(tensor) and f"{name}.sizes" not in unreadable:
                low, high = allowed.ranks
                text = f"{low} to {high} dimensions" if low < high else _dimensions(low)
                shown = _dimensions(len(tensor.sizes))
                found.append(self.violation("supported_dimension_count", name, shown, text, place))


def _dimensions(count: int) -> str:
    return "1 dimension" if count == 1 else f"{count} dimensions"


def broken_rules(rules: Iterable[Rule], tensor: Tensor, kind: str | None = None) -> Iterator[Rule]:
    """The rules of a tensor that it breaks, of those for a kind of field, or for all."""
    failed: set[str] = set()
    for rule in rules:
        asked = rule.only in (None, kind) and not failed.intersection(rule.needs)
        if asked and not rule.holds({"tensor": tensor}):
            failed.add(rule.id)
            yield rule


def rule_violation(
    rule: Rule,
    tensor: Tensor,
    field: str,
    operator: str,
    page: str,
    told_as: Mapping[str, str] = MappingProxyType({}),
) -> Violation:
    """What a tensor that breaks a rule is told."""
    reads = [f"{field}{read.removeprefix('tensor')}" for read in rule.reads]
    shown = _shown(reads, {field: tensor}, told_as)
    return Violation(rule.id, operator, field, shown, rule.allowed, f"{page} {rule.origin}")


def _since(support: Sequence[Support], name: str, dtype: str) -> str | None:
    """The oldest level that allows a data type for a tensor."""
    return next((t.since for t in reversed(support) if dtype in t.tensors[name].dtypes), None)


def _compute(values: dict[str, Any], name: str, computed: Computed) -> None:
    try:
        value = computed(values)
    except (KeyError, IndexError, ArithmeticError):
        return
    values[name] = tuple(value) if isinstance(value, list | range) else value


def _covers(unreadable: set[str], read: str) -> bool:
    return read in unreadable or read.split(".", maxsplit=1)[0] in unreadable


def _shown(reads: Sequence[str], values: Mapping[str, Any], told_as: Mapping[str, str]) -> str:
    """What was found, as "Axes = [2], InputTensor.sizes = [3, 3]"."""
    parts = []
    for read in reads:
        name, _, attribute = read.partition(".")
        value = getattr(values[name], attribute) if attribute else values[name]
        shown = list(value) if isinstance(value, tuple) else value
        parts.append(f"{told_as.get(read, read)} = {shown}")
    return ", ".join(parts)
