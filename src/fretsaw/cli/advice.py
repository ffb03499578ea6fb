"""Messages of the library in the words of the command: options, not arguments of Python."""

import re
from typing import Final

_OPTION: Final = r"(missing|types|timestamps|int96|on_corrupt)=[\"'](\w+)[\"']"
_WORDS: Final = (
    (rf"fs\.scan\(\.\.\., {_OPTION}\)", r"--\1 \2"),
    (_OPTION, r"--\1 \2"),
    (r"say what folders are in fs\.scan\(.*hive=.*", "leave out folders with --no-hive"),
    (r"give another type for .* in fs\.scan\(.*hive=.*", "leave out folders with --no-hive"),
    (r"overwrite=True", "--overwrite"),
    (r"leave out select\(\)", "leave out --columns"),
    (r"leave it out with select\(\)", "leave it out with --drop"),
    (r"select\(\)", "name with --columns"),
    (r"(\w+)=\"(\w+)\" in storage_options", r"--storage-option \1=\2"),
    (r"storage_options", "--storage-option"),
    (r"say format=", "say --format"),
    (r", or name one by the number of its leaf, column\(0\)", ""),
    (r", or read batches\(\)", ""),
    (r"<bytes>", "standard input"),
)


def in_words_of_the_command(message: str) -> str:
    """A message that names options of the command.

    >>> in_words_of_the_command('read it as null there with fs.scan(..., missing="null")')
    'read it as null there with --missing null'
    """
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message.replace("--on_corrupt", "--on-corrupt")
