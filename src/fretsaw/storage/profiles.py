"""Profiles of the AWS configuration files, which `obstore` does not know."""

import configparser
import os
from collections.abc import Mapping
from typing import Any

from fretsaw.errors import StorageError

_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_CREDENTIALS = (
    *_KEYS,
    "access_key_id",
    "secret_access_key",
    "skip_signature",
    "aws_skip_signature",
    "aws_web_identity_token_file",
    "aws_container_credentials_relative_uri",
    "aws_container_credentials_full_uri",
)
"""Where one of these is given, a profile has no say."""


def with_profile(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a store, with those of the profile that they or the environment name.

    A profile that is named in the options wins over credentials of the environment; the default
    profile fills in where nothing else is given.
    """
    rest = dict(options)
    named = rest.pop("aws_profile", None) or rest.pop("profile", None)
    asked = named or os.environ.get("AWS_PROFILE")
    given = {name.lower() for name in rest}
    if not named:
        given |= {name.lower() for name in os.environ if name.startswith("AWS_")}
    if given.intersection(_CREDENTIALS):
        if named:
            raise StorageError(
                f"the profile {named!r} and credentials are both given in storage_options; "
                "leave one of them out"
            )
        return rest
    found = _profile(asked or "default")
    if not found:
        if asked:
            raise StorageError(
                f"there is no profile {asked!r} in the AWS configuration files; check aws_profile "
                "and AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE"
            )
        return rest
    if asked and not found.get("aws_access_key_id"):
        raise StorageError(
            f"the profile {asked!r} has no aws_access_key_id; for other kinds of credentials hand "
            "over a store of obstore with a credential provider, as storage_options"
        )
    filled = {key: found[key] for key in _KEYS if key in found}
    if "region" in found and not given & {"aws_region", "region", "aws_default_region"}:
        filled["aws_region"] = found["region"]
    endpoints = {"aws_endpoint", "aws_endpoint_url", "endpoint", "endpoint_url"}
    if "endpoint_url" in found and not given & endpoints:
        filled["aws_endpoint_url"] = found["endpoint_url"]
    return {**filled, **rest}


def _profile(name: str) -> dict[str, str]:
    """What both files say of a profile."""
    credentials = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    config = os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")
    found: dict[str, str] = {}
    section = name if name == "default" else f"profile {name}"
    for path, heading in ((config, section), (credentials, name)):
        parser = configparser.RawConfigParser()
        try:
            parser.read(os.path.expanduser(path))
        except (configparser.Error, UnicodeDecodeError) as error:
            raise StorageError(
                f"{path}: cannot be read as an AWS configuration file "
                f"({type(error).__name__}); mend it"
            ) from None
        if parser.has_section(heading):
            found.update(parser.items(heading))
    return found
