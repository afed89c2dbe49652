"""Run by a test: arrays of Dask with an activation that only a row says."""

from __future__ import annotations

import dask.array as da

from new_row import check_door, check_package


def main() -> None:
    check_package()
    check_door(da.from_array, lambda array: array.compute(), da.Array)


if __name__ == "__main__":
    main()
