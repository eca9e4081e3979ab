"""How the generator scales: time and peak memory of generate and check on a synthetic tree of specs.

python benchmarks/generator_scale.py [--specs 1000]

The specs are copies of DML_ARGMAX under other names. Aims: 15 s and 1 GiB for 1,000 specs or fewer, 3 s for the
project's own. What misses its aim is marked.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent

SECONDS, OWN_SECONDS, MEBIBYTES = 15, 3, 1024

# Runs the generator in a process of its own and says, on the last line, how much memory that took.
_MEASURED = """
import runpy
import sys
try:
    runpy.run_module("generator", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    code = stop.code
try:
    import resource
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 if sys.platform != "darwin" else 1024))
except ImportError:
    print(0)
sys.exit(code)
"""


def tree(root: Path, specs: int) -> None:
    """A tree with many specs, and no templates of its own."""
    (root / "specs" / "directml").mkdir(parents=True)
    shutil.copy(PROJECT / "specs" / "vocabulary.yaml", root / "specs")
    text = (PROJECT / "specs" / "directml" / "argmax.yaml").read_text(encoding="utf-8")
    for i in range(specs):
        spec = text.replace("DML_OPERATOR_ARGMAX", f"DML_OPERATOR_ARGMAX_{i:04}")
        (root / "specs" / "directml" / f"argmax_{i:04}.yaml").write_text(spec, encoding="utf-8")


def measure(verb: str, root: Path) -> tuple[float, float]:
    """Seconds and peak MiB of one run."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, verb, "--root", str(root)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise SystemExit(f"{verb} failed:\n{done.stdout}{done.stderr}")
    return seconds, int(done.stdout.split()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--specs", type=int, default=1000)
    options = parser.parse_args()
    print(f"{'tree':<22}{'verb':<22}{'seconds':>8}{'MiB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tree(root, options.specs)
        own = "the project"
        synthetic = f"{options.specs} specs"
        most = SECONDS * max(1, options.specs / 1000)
        runs = [
            (own, "check", PROJECT, "check", OWN_SECONDS),
            (synthetic, "lint", root, "lint", most),
            (synthetic, "generate (all new)", root, "generate", most),
            (synthetic, "generate (no change)", root, "generate", most),
            (synthetic, "check", root, "check", most),
        ]
        for name, label, where, verb, aim in runs:
            seconds, mebibytes = measure(verb, where)
            mark = "  more than is aimed at" if seconds > aim or mebibytes > MEBIBYTES else ""
            print(f"{name:<22}{label:<22}{seconds:>8.2f}{mebibytes:>8.0f}{mark}")


if __name__ == "__main__":
    main()
