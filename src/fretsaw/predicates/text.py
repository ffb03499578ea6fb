"""A string literal of a condition given as text: its type is settled by the column."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Text:
    """A string literal of SQL text, to be converted to the column's type."""

    value: str

    def __repr__(self) -> str:
        return repr(self.value)
