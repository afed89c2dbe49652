"""Frameworks: their own types above, programs on addresses below. Nothing here says how anything is computed."""
