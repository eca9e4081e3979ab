"""The verbs of the command `specops` and their options: what each takes, how it is read, what is told of it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from specops import reading
from specops._version import __version__
from specops.catalogue import near
from specops.command import explain, listing, models, warmup
from specops.errors import UsageError
from specops.vocabulary import DATA_TYPES, FEATURE_LEVELS

_UNITS = {None: 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, with a hint."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"`{self.prog} --help` explains the options")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Without argparse's silence where a help cannot be written."""
        (file or sys.stdout).write(message)


def read(given: list[str], codes: str) -> argparse.Namespace:
    """What is asked for; its `run` does it, and returns the exit code.

    Args:
        given: the words after the command's name; if there are none, the help is shown.
        codes: what the help says of exit codes.
    """
    parser, verbs = _parsers(codes)
    if not given:
        parser.print_help()
        parser.exit()
    own = [o for a in parser._actions for o in a.option_strings]
    if given[0].startswith("-") and given[0] not in own:
        hint = near(given[0], own) or "`specops --help` explains the options"
        raise UsageError(f"`specops` does not take {given[0][:60]!r}", hint)
    if given[0] not in own and given[0] not in verbs:
        hint = near(given[0], verbs) or f"there are {', '.join(verbs)}"
        raise UsageError(f"there is no verb {given[0][:60]!r}", hint)
    options, rest = parser.parse_known_args(_dashed(given))
    if rest:
        known = [o for a in verbs[options.verb]._actions for o in a.option_strings]
        hint = near(rest[0], known) if rest[0].startswith("-") else ""
        hint = hint or f"`specops {options.verb} --help` explains the options"
        raise UsageError(f"`specops {options.verb}` does not take {rest[0][:60]!r}", hint)
    return options


def _dashed(words: list[str]) -> list[str]:
    """DxDispatch writes its options with _, as --dispatch_iterations. None comes after a lone --."""
    end = words.index("--") if "--" in words else len(words)
    return [*map(_dashed_option, words[:end]), *words[end:]]


def _dashed_option(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}" if word.startswith("--") else word


def _parsers(codes: str) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = _Parser(
        prog="specops",
        description="Operators of DirectML and ONNX on the CPU.",
        epilog=codes,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"specops {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    made: dict[str, argparse.ArgumentParser] = {}

    def verb(
        name: str, run: Callable[[argparse.Namespace], int], help: str, examples: str
    ) -> argparse.ArgumentParser:
        made[name] = verbs.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            epilog=f"examples:\n{examples}\n\n{codes}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made[name].set_defaults(run=run)
        return made[name]

    sub = verb(
        "list",
        listing.run,
        "list the operators, one per line, with the feature level or versions that introduced each",
        "  specops list\n  specops list softmax\n  specops list --format json",
    )
    _operators(sub)
    sub.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="output format: text for people, json for programs (default: text)",
    )
    sub = verb(
        "explain",
        explain.run,
        "show all that is known of an operator: fields, data types by feature level, rules, examples,"
        " decisions",
        "  specops explain argmax             # in each dialect\n"
        "  specops explain onnx/hardmax_11    # one version\n"
        "  specops explain axes_in_range      # a rule, wherever it holds",
    )
    sub.add_argument(
        "subject",
        help="an operator, e.g. argmax or directml/argmax, or the id of a rule or decision",
    )
    _run_options(
        verb(
            "run",
            models.run,
            "run a DxDispatch model (JSON), or only check it",
            "  specops run model.json\n"
            "  specops run model.json --output-path results\n"
            "  specops run model.json -i 100 -w 10 -v 1\n"
            "  specops run model.json --validate-only --feature-level 4.1",
        )
    )
    sub = verb(
        "warmup",
        warmup.run,
        "compile kernels ahead of time into Numba's cache (NUMBA_CACHE_DIR), so that first calls do"
        " not wait",
        "  specops warmup\n  specops warmup argmax hardmax --dtype float32 float16\n"
        "  specops warmup directml/max_pooling2 --dtype all",
    )
    _operators(sub)
    sub.add_argument(
        "--dtype",
        nargs="+",
        default=["FLOAT32"],
        metavar="TYPE",
        help=f"data types to compile for: {', '.join(DATA_TYPES)}, or all (default: FLOAT32)",
    )
    return parser, made


def _operators(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "operators",
        nargs="*",
        metavar="operator",
        help="e.g. argmax or directml/argmax (default: all)",
    )


def _run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", help="model file")
    sub.add_argument(
        "--validate-only",
        action="store_true",
        help="list all errors and warnings with their places; run nothing",
    )
    sub.add_argument(
        "--feature-level",
        type=_level,
        metavar="LEVEL",
        help=f"feature level to check against: {', '.join(FEATURE_LEVELS)} (default: the general "
        "definitions, which may allow more)",
    )
    sub.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="output format of --validate-only (default: text)",
    )
    sub.add_argument(
        "--input-path",
        type=_folder,
        metavar="DIR",
        help="folder from which the model reads files (default: the model's folder)",
    )
    sub.add_argument(
        "-o",
        "--output-path",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder into which writeFile writes (default: none; a model with writeFile is not run)",
    )
    sub.add_argument(
        "--max-memory",
        type=_bytes,
        default="1GiB",
        metavar="BYTES",
        help="limit on the size of all buffers together, e.g. 4GiB (default: 1GiB)",
    )
    sub.add_argument(
        "--time-limit",
        type=_natural,
        default=600,
        metavar="S",
        help="seconds after which the command gives up; 0: never (default: 600)",
    )
    timing = sub.add_argument_group("timing, as in DxDispatch")
    timing.add_argument(
        "-i",
        "--dispatch-iterations",
        "--iterations",
        type=_positive,
        default=1,
        metavar="N",
        help="minimum iterations per dispatch (default: 1)",
    )
    timing.add_argument(
        "-t",
        "--milliseconds-to-run",
        "--milliseconds",
        type=_natural,
        metavar="MS",
        help="minimum time per dispatch, in ms (default: none)",
    )
    timing.add_argument(
        "-r",
        "--dispatch-repeat",
        type=_positive,
        default=1,
        metavar="N",
        help="calls per iteration, whose average is reported (default: 1)",
    )
    timing.add_argument(
        "-I",
        "--dispatch-interval",
        type=_natural,
        default=0,
        metavar="MS",
        help="minimum interval between the starts of iterations, in ms (default: 0)",
    )
    timing.add_argument(
        "-w",
        "--warmup-samples",
        "--warmup",
        type=_natural,
        default=1,
        metavar="N",
        help="initial iterations left out of the hot timings; the last is never left out (default: 1)",
    )
    timing.add_argument(
        "-v",
        "--timing-verbosity",
        type=int,
        choices=(0, 1, 2),
        default=0,
        help="0: the median of the hot timings; 1: initialisation, cold and hot timings; 2: each "
        "iteration, too (default: 0)",
    )


def _natural(text: str, low: int = 0) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or not low <= int(text) < 1 << 32:
        raise argparse.ArgumentTypeError(
            f"{text[:60]!r} is no integer from {low} to {(1 << 32) - 1}"
        )
    return int(text)


def _positive(text: str) -> int:
    return _natural(text, 1)


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15}) *(?:([KMGT])I?)?B?", text.upper())
    if match is None or int(match[1]) * _UNITS[match[2]] > 1 << 50:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no number of bytes, e.g. 4GiB")
    return int(match[1]) * _UNITS[match[2]]


def _level(text: str) -> str:
    try:
        return str(reading.feature_level(text))
    except reading.NotUnderstood as problem:
        raise argparse.ArgumentTypeError(
            f"there is no feature level {problem.found}; there are {problem.allowed}"
        ) from None


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is no folder")
    return Path(text)
