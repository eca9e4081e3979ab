"""python -m specops: the command `specops`."""

import sys

from specops.command.main import main

if __name__ == "__main__":
    sys.exit(main())
