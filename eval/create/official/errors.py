"""Where the released code stops."""


class QuirkError(Exception):
    """The released code raises on this input, and with it the whole run ends.

    `quirk` is its number in the list below; "" where the fault is not one of these.

    Q8 junk instead of a path; Q9 parts of a path that are no triples; Q14 the prediction is not a list;
    Q15 an entity is missing; Q16 a reply is missing; Q20 a text where a validity should be; Q21 an empty path;
    Q24 no class size to take the minimum of; Q26 a reply that is one word or number; Q31 lists of different lengths
    without validity.
    """

    def __init__(self, quirk: str, message: str) -> None:
        super().__init__(message)
        self.quirk = quirk
        self.message = message
