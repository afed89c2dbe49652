"""Print a completion script for a shell.

Bash: put the output into a file that your .bashrc sources. Zsh: save it as _convgrad in a folder of $fpath. Tcsh:
source it from .tcshrc.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction
from importlib.util import find_spec

from .screen import Screen
from .verb import DONE, Refusal

NAME = "completion"
SUMMARY = "print a completion script for bash, zsh or tcsh"
EXAMPLES = """
convgrad completion bash > ~/.convgrad-completion && echo 'source ~/.convgrad-completion' >> ~/.bashrc
convgrad completion zsh > ~/.zfunc/_convgrad
"""

_FILES = {"input", "filter", "out_backprop", "output", "save", "compare", "plot"}
"""Arguments, by the name they are stored under, that a shell completes with file names."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="whose script")


def run(given: Namespace, screen: Screen) -> int:
    """Print the script shtab makes of our parser."""
    if find_spec("shtab") is None:
        raise Refusal("shtab is not installed: pip install shtab")
    import shtab

    from .main import parser

    whole = parser()
    _complete_files(whole, shtab.FILE)
    script = str(shtab.complete(whole, given.shell))
    screen.line(script.rstrip())
    screen.document({"shell": given.shell, "script": script})
    return DONE


def _complete_files(parser: ArgumentParser, how: object) -> None:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for each in action.choices.values():
                _complete_files(each, how)
        elif action.dest in _FILES:
            setattr(action, "complete", how)  # noqa: B010  (shtab's own attribute; argparse has no such name)
