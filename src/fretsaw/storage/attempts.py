"""Requests that are tried again, and what is said about those that fail in the end.

Messages name the URL without its secrets, what was asked for, how often and for how long it was
tried, and what to check. Nothing of what the store or the client said is passed on but a status and
a code, since their texts may quote what was sent.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fretsaw.errors import FretsawError, SourceNotFoundError, StorageError
from fretsaw.storage.stores import Policy

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_REASONS = {
    401: "the credentials are refused; check the keys in storage_options or the environment",
    403: "the credentials are refused or do not suffice; check the keys in storage_options or the "
    "environment, and what they permit",
    429: "the store is asked for too much; ask again later, or lower max_requests",
}
_CODES = {
    "ExpiredToken": "the token has expired; get new credentials",
    "ExpiredTokenException": "the token has expired; get new credentials",
    "InvalidToken": "the token is refused; get new credentials",
    "InvalidAccessKeyId": "there is no such access key; check aws_access_key_id",
    "SignatureDoesNotMatch": "the secret key is refused; check aws_secret_access_key",
    "PermanentRedirect": "the bucket is in another region; set aws_region",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set aws_region",
}
_BODY = "the connection broke off, or the answer was shorter than announced"
_TEXTS = (
    (r"[Cc]ertificate|InvalidCertificate|UnknownIssuer", False, "its TLS certificate is not "
     "trusted; check the endpoint, or give root_certificate in storage_options"),
    (r"scheme is not allowed|URL scheme", False, "plain HTTP is not allowed; set "
     'aws_allow_http="true" in storage_options, or use https'),
    (r"redirect", False, "it is redirected; check the region, the endpoint "
     "and the URL"),
    (r"timed? ?out|TimedOut", True, "the store does not answer in time; check the network"),
    (r"dns error|lookup address|Name or service", True, "its host name is not known; check the "
     "endpoint"),
    (r"Connection refused", True, "nobody answers there; check the endpoint"),
    (r"error decoding response body|IncompleteMessage|error reading a body|UnexpectedEof|"
     r"connection closed|end of file before message length|reset by peer", True, _BODY),
    (r"error sending request|[Cc]onnect", True, "the store cannot be reached; check the endpoint "
     "and the network"),
    (r"instance metadata|credentials|Credential", False, "no credentials were found; give them in "
     "storage_options or the environment"),
)  # fmt: skip


class Changed(Exception):
    """The file is not of the version that was asked for."""


class Unchanged(Exception):
    """The file is of the version that is known already."""


class ShortBody(Exception):
    """Fewer bytes came than were asked for."""


class NoRanges(Exception):
    """The store did not answer with the range that was asked for."""


class Missing(Exception):
    """There is no such file."""


async def attempt(work: Callable[[], Awaitable[T]], name: str, asked: str, policy: Policy) -> T:
    """Do some work against a store, again where that may help, until the deadline."""
    began = time.monotonic()
    tries = 0
    while True:
        tries += 1
        left = policy.retry_timeout - (time.monotonic() - began)
        try:
            async with asyncio.timeout(max(left, 0.001)):
                return await work()
        except (Changed, Unchanged, Missing, NoRanges, FretsawError):
            raise
        except Exception as error:
            if "NoSuchBucket" in str(error):
                raise SourceNotFoundError(
                    f"{name}: there is no such bucket; check its name"
                ) from None
            may_help, reason = told(error)
            spent = time.monotonic() - began
            pause = min(_FIRST_PAUSE * 2 ** (tries - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1)
            is_over = tries > policy.max_retries or spent + pause >= policy.retry_timeout
            if not may_help or is_over:
                raise failure(name, asked, reason, tries, spent) from None
            await asyncio.sleep(pause)


def failure(name: str, asked: str, reason: str, tries: int = 1, spent: float = 0) -> StorageError:
    """The error for what cannot be had from a store."""
    often = "once" if tries == 1 else f"{tries} times in {spent:.1f} s"
    return StorageError(f"{name}: {asked} failed, tried {often}: {reason}")


def missing(name: str) -> SourceNotFoundError:
    """The error for a URL that names nothing."""
    return SourceNotFoundError(f"{name}: no such file; check the URL")


def no_ranges(name: str) -> StorageError:
    """The error for a server that gives whole files only."""
    reason = "the server does not answer range requests"
    return failure(
        name, "a part of it", f"{reason}; copy the file here, or serve it by one that does"
    )


def told(error: BaseException) -> tuple[bool, str]:
    """Whether it may help to try again, and what is said about an error of a store."""
    kind, text = type(error).__name__, str(error)
    if kind == "TimeoutError":
        return True, "the store does not answer in time; check the network"
    if kind == "ShortBody":
        return True, _BODY
    # The name of the file comes first, and may read like a status itself.
    found = re.search(r"non-2xx status code: (\d{3})", text)
    status = int(found[1]) if found else None
    code = re.search(r"<Code>(\w+)</Code>", text)
    shown = f" ({code[1]})" if code else ""
    if code and code[1] in _CODES:
        return False, _CODES[code[1]]
    if kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return False, _REASONS.get(status or 403, _REASONS[403]) + shown
    if status is not None:
        reason = _REASONS.get(status, "check the URL and the store")
        if status >= 500:
            reason = "the store has a problem; ask again later"
        return status in _AGAIN, f"status {status}{shown}, {reason}"
    for pattern, may_help, reason in _TEXTS:
        if re.search(pattern, text):
            return may_help, reason
    return kind == "GenericError", f"{kind} of the client; check the URL and the network"
