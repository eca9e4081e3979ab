"""`python -m generator VERB`: see cli.py."""

import gc
import sys

from generator.cli import main

gc.disable()  # a short run over trees that live until its end: a quarter of the time would go into looking for garbage
sys.exit(main(sys.argv[1:]))
