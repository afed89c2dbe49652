"""The command line: `main.py` reads the arguments, one module per verb does its work, `screen.py` prints.

A verb is a module that satisfies `Verb` and stands in `main.VERBS`. Nothing in the package imports this one.
"""
