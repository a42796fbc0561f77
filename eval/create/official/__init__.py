"""The released code's values, its faults included; where it raises, a `QuirkError` that names the fault.

Published numbers were made this way and can only be compared with values from here. Written anew from its observed
behaviour. Everything else in `eval.create` follows the paper.
"""
