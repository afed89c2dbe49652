"""Doctests of the bridge to PyTorch are left out where PyTorch is absent: its modules cannot be imported there."""

from importlib.util import find_spec

collect_ignore_glob = (
    [] if find_spec("torch") else ["convgrad/torch.py", "convgrad/_bridges/torch/*"]
)
