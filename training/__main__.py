"""``python -m training``: see ``python -m training --help``."""

import sys

from training.cli import main

if __name__ == "__main__":
    sys.exit(main())
