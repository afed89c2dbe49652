"""The token of the studio where it is not a random one: from a file or a variable, never from the command line.

Command lines can be read by every user of a machine; files of mode 0600 and the environment of a process cannot.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import NoReturn

from ..._base.files import open_regular
from .verb import Refusal

VARIABLE = "CONVGRAD_STUDIO_TOKEN"
_RULE = "8 to 128 letters, digits, - and _ are needed"
_LONGEST = 1000
"""Bytes of a token's file that are looked at."""


def add_argument(parser: ArgumentParser) -> None:
    """Add the file, and a refusal for anyone who gives the token itself."""
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="the token in the address is in this file, which only you can read; one that is not there is made. "
        f"The variable {VARIABLE} may hold it too; by default it is a random one",
    )
    parser.add_argument("--token", type=_plain, help=SUPPRESS)


def read(file: str | None) -> str | None:
    """Return the token that was given. The variable is taken out of the environment: no child needs it."""
    held = os.environ.pop(VARIABLE, None)
    if file is not None:
        return _of_file(Path(file))
    return _checked(held, VARIABLE) if held else None


def _plain(text: str) -> NoReturn:
    raise ArgumentTypeError(
        "every user of the machine can read what is on a command line; "
        f"give --token-file FILE, or set {VARIABLE}"
    )


def _checked(text: str, where: str) -> str:
    """Refuse what an address cannot hold as it is; the text is a secret, and not repeated."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{8,128}", text):
        raise Refusal(f"{where} holds no token: {_RULE}")
    return text


def _of_file(path: Path) -> str:
    try:
        return _made(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise Refusal(f"--token-file {path} cannot be made: {error.strerror or error}") from None
    try:
        with open_regular(path) as file:
            state = os.fstat(file.fileno())
            text = file.read(_LONGEST)
    except OSError as error:
        raise Refusal(f"--token-file {path} cannot be read: {error.strerror or error}") from None
    if hasattr(os, "getuid"):  # Windows keeps others out by the permissions of the folder
        if state.st_uid != os.getuid():
            raise Refusal(f"--token-file {path} belongs to somebody else")
        if stat.S_IMODE(state.st_mode) & 0o077:
            raise Refusal(f"--token-file {path} is open to others: chmod 600 {path}")
    return _checked(text.decode("ascii", "replace").strip(), f"--token-file {path}")


def _made(path: Path) -> str:
    """Make a file with a random token."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    token = secrets.token_urlsafe(24)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token
