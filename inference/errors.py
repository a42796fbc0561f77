"""The error a user sees as one sentence: what was given, what is needed, the way out."""


class UserError(Exception):
    """A mistake in input, configuration or environment that the user can mend.

    Command lines print its text after ``error:`` without a traceback and exit with code 2.
    """
