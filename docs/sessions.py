"""Examples in docstrings, fenced, so that the reference shows them as sessions (`mkdocs.yml`)."""

import re
from typing import Any

import griffe


class Sessions(griffe.Extension):
    """Puts a fence around each run of lines from a prompt to the next empty line."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the sessions of one docstring."""
        if obj.docstring:
            session = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
            obj.docstring.value = session.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
