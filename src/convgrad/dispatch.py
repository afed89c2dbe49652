"""Teach the public functions your own array types. See `dispatch_for_types`."""

from ._api.dispatch import (
    NOT_SUPPORTED,
    GlobalOpDispatcher,
    OpDispatcher,
    add_dispatch_list,
    dispatch_for_api,
    dispatch_for_types,
)

__all__ = [
    "NOT_SUPPORTED",
    "GlobalOpDispatcher",
    "OpDispatcher",
    "add_dispatch_list",
    "dispatch_for_api",
    "dispatch_for_types",
]
