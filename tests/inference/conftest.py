"""Makes the modules of tests/helpers importable.

They lie in a directory of their own, because a path to ``tests`` would offer ``tests/inference`` as package inference.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "helpers"))
