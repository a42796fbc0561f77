"""``python -m eval``: see ``python -m eval --help``."""

from eval.cli import main

if __name__ == "__main__":
    main()
