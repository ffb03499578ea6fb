"""A string literal of a condition given as text: its type is settled by the column."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Text:
    """A string literal of SQL text, to be converted to the column's type."""

    value: str
    is_moment: bool = False
    """Whether it is a TIMESTAMP, whose zone and unit are the column's to know."""

    def __repr__(self) -> str:
        return repr(self.value)
