"""`python -m generator VERB`: see cli.py."""

import gc
import sys

gc.disable()  # a short run over trees that live until its end: a quarter of the time would go into looking for garbage
try:
    from generator.cli import main

    code = main(sys.argv[1:])
except KeyboardInterrupt:  # while modules are imported, or before a verb runs
    print("interrupted", file=sys.stderr)
    code = 130  # as in exits.py, of which nothing may be there yet
sys.exit(code)
