"""The compiled kernels (the package `fretsaw-kernels`), or None: everything works without them.

They are looked for when they are first asked for, so that `import fretsaw` stays cheap, and
`FRETSAW_KERNELS=0` leaves them alone. Who changes that variable in a running process calls
`load_kernels.cache_clear()`.
"""

import functools
import importlib
import os
import warnings
from types import ModuleType

from fretsaw.model.locks import importing

PROTOCOL = 2
"""What the functions of the kernels take and give, as a number that both sides must agree on."""


@functools.cache
def load_kernels() -> ModuleType | None:
    """The kernels, if they are installed, speak our protocol and are not turned off."""
    if os.environ.get("FRETSAW_KERNELS") == "0":
        return None
    try:
        with importing:  # no process is forked meanwhile
            kernels = importlib.import_module("fretsaw_kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:
        misfit = f"cannot be imported ({error})"
    else:
        protocol = getattr(kernels, "PROTOCOL", None)
        if protocol == PROTOCOL:
            return kernels
        misfit = f"speak protocol {protocol}, and this fretsaw speaks {PROTOCOL}"
    warnings.warn(
        f"fretsaw reads without its kernels, which {misfit}. Install the fretsaw-kernels of the "
        "same release (pip install ./kernels), or uninstall them, or set FRETSAW_KERNELS=0.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None
