"""`python -m generator VERB`: see cli.py."""

import sys

from generator.cli import main

sys.exit(main(sys.argv[1:]))
