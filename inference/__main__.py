"""``python -m inference``: see ``python -m inference --help``."""

from inference.cli import main

if __name__ == "__main__":
    main()
