"""Plant known bugs in a copy of the package, one at a time, and show that the tests notice each of them.

Usage: python -m tools.plant_bugs [NAME ...]     a name of a bug, of a room such as _bridges/dask, or "frameworks"

A bug is one replacement in one file: here those in sums and kernels, in `planted_rooms` one for every room and bridge.
Bugs in bridges need `make install-frameworks` and are left out unless they are named. Exit status 1 means that a bug
went unnoticed, or that a row no longer fits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.planted_rooms import ROOMS, Bug

ROOT = Path(__file__).resolve().parent.parent
TESTS = [f"tests/numeric/test_{name}.py" for name in ("oracle", "operations", "rounding")]
"""Run without kernels: each copy of the package would compile all of them again."""
KERNEL_TESTS = [
    f"tests/numeric/test_{name}.py"
    for name in ("kernels", "operations", "dense_direct", "dense_filter", "kernel_shapes")
]
"""For bugs in kernels and their plans: generated problems on this machine, exact, the general ones first."""


def in_family(name: str) -> tuple[str, ...]:
    """Return the tests that hold one family of kernels against the contract of sums."""
    return ("tests/numeric/test_family_sums.py", "-k", name)


BUGS = (
    Bug(
        "stride and dilation swapped",
        "_problem/convolution.py",
        "stride, dilation = settings.strides[axis], settings.dilations[axis]",
        "dilation, stride = settings.strides[axis], settings.dilations[axis]",
    ),
    Bug(
        "remainder of the division dropped",
        "_problem/geometry.py",
        "(axis.size - 1 - shift) // axis.stride + 1)",
        "(axis.size - 1 - shift) // axis.stride)",
    ),
    Bug(
        "SAME pads on the wrong side",
        "_problem/geometry.py",
        "dilation, total // 2, total - total // 2, out)",
        "dilation, total - total // 2, total // 2, out)",
    ),
    Bug(
        "SAME ignores the stride", "_problem/geometry.py", "out = -(-size // stride)", "out = size"
    ),
    Bug(
        "output size rounds down below zero",
        "_problem/geometry.py",
        "out = room // stride if room >= 0 else -(-room // stride)",
        "out = room // stride",
    ),
    Bug(
        "groups reversed",
        "_problem/oracle.py",
        "return np.ascontiguousarray(array).reshape(shape)",
        "return np.ascontiguousarray(array).reshape(shape)[:, :, :, ::-1]",
    ),
    Bug(
        "multiplier before channel",
        "_problem/oracle.py",
        "image = image.reshape(*image.shape[:3], image.shape[3] * image.shape[4])",
        "image = image.swapaxes(3, 4).reshape(*image.shape[:3], image.shape[3] * image.shape[4])",
    ),
    Bug(
        "filter flipped",
        "_problem/oracle.py",
        'np.einsum("npqgc,cgk->npqgk", x[cells], f[r, s])',
        'np.einsum("npqgc,cgk->npqgk", x[cells], f[-1 - r, -1 - s])',
    ),
    Bug(
        "filter flipped in the input gradient",
        "_problem/oracle.py",
        'np.einsum("npqgk,cgk->npqgc", grad[outputs], f[r, s])',
        'np.einsum("npqgk,cgk->npqgc", grad[outputs], f[-1 - r, -1 - s])',
    ),
    Bug(
        "dilation ignored",
        "_problem/geometry.py",
        "shift = tap * axis.dilation - axis.before",
        "shift = tap - axis.before",
    ),
    Bug(
        "narrow accumulation",
        "_problem/sums/arithmetic.py",
        "return np.asarray((a + b).astype(np.float32).astype(np.float64))",
        "return np.asarray((a + b).astype(np.float16).astype(np.float64))",
    ),
    Bug(
        "rounded twice to bfloat16",
        "_base/dtypes.py",
        "values = _round_to_odd_float32(values)",
        "values = values.astype(np.float32)",
    ),
    Bug(
        "NCHW result left in NHWC order",
        "_problem/oracle.py",
        'return image if problem.data_format == "NHWC" else image.transpose(0, 3, 1, 2)',
        "return image.reshape(problem.result_shape)",
    ),
    Bug(
        "row and column strides swapped in NCHW",
        "_problem/arguments/integers.py",
        "return four[0], four[1], four[2], four[3]",
        "return four[0], four[1], four[3], four[2]",
    ),
    Bug(
        "filter gradient of the first image only",
        "_problem/oracle.py",
        'np.einsum("npqgc,npqgk->cgk", x[cells], grad[outputs])',
        'np.einsum("npqgc,npqgk->cgk", x[cells][:1], grad[outputs][:1])',
    ),
    Bug(
        "result of an empty problem left as it was",
        "_engine/__init__.py",
        "ctypes.memset(addresses[2], 0, problem.result_bytes)",
        "pass",
    ),
    Bug(
        "a tap's place in the filter is its neighbour's",
        "_kernels/dense_direct/tables.py",
        "entries.append((place, displacement, it.depth, run))",
        "entries.append((max(place - it.col, 0), displacement, it.depth, run))",
    ),
    Bug(
        "a run of dense_direct ends a tap early",
        "_kernels/dense_direct/tables.py",
        "run = number // contract.taps if contract.levels else 0",
        "run = (number + 1) // contract.taps if contract.levels else 0",
        tests=in_family("dense_direct"),
    ),
    Bug(
        "a run of dense_grouped ends a tap early",
        "_kernels/dense_grouped/geometry.py",
        "run = number // contract.taps if contract.levels else 0",
        "run = (number + 1) // contract.taps if contract.levels else 0",
        tests=in_family("dense_grouped"),
    ),
    Bug(
        "a run of dense_planes ends a tap early",
        "_kernels/dense_planes/lattice.py",
        "j // taps for j in",
        "(j + 1) // taps for j in",
        tests=in_family("dense_planes"),
    ),
    Bug(
        "a run of dense_grouped's filter gradient has a row more",
        "_kernels/dense_grouped/filter_plan.py",
        "run_rows=run.rows,",
        "run_rows=run.rows + 1,",
        tests=in_family("dense_grouped"),
    ),
    Bug(
        "dense_grouped's slices are no nodes of the tree",
        "_kernels/dense_grouped/filter_plan.py",
        "slice_units=1 << cut.levels,",
        "slice_units=(1 << cut.levels) - (slices == 2),",
        tests=in_family("dense_grouped"),
    ),
    Bug(
        "a run of dense_filter has a row more",
        "_kernels/dense_filter/schedule.py",
        "unit, run = it.unit, it.contract.run\n",
        "unit, run = it.unit, it.contract.run._replace(rows=it.contract.run.rows + 1)\n",
        tests=in_family("dense_filter"),
    ),
    Bug(
        "dense_filter's slices are no nodes of the tree",
        "_kernels/dense_filter/choice.py",
        "it = replace(part, units=1 << level)",
        "it = replace(part, units=3**level)",
        tests=in_family("dense_filter"),
    ),
    Bug(
        "a run of depthwise_direct has a row more",
        "_kernels/depthwise_direct/schedule.py",
        "words += in_order(units.WORDS, **units.words(contract, split.slice_units))",
        "longer = contract._replace(run=contract.run._replace(rows=contract.run.rows + 1))\n"
        "    words += in_order(units.WORDS, **units.words(longer, split.slice_units))",
        tests=in_family("depthwise_direct"),
    ),
    Bug(
        "a unit of depthwise_direct's tall tiles has a row more",
        "_kernels/depthwise_direct/kernel.py",
        'ends = (below % word["unit_rows"]).equals(0) | below.equals(rows)',
        'ends = (below % (word["unit_rows"] + 1)).equals(0) | below.equals(rows)',
        tests=in_family("depthwise_direct"),
    ),
    Bug(
        "a run of depthwise_packed is a unit",
        "_kernels/depthwise_packed/schedule.py",
        "**units.words(it.contract, it.slice_units(problem)),",
        "**units.words(it.contract._replace(run=it.contract.unit), it.slice_units(problem)),",
        tests=in_family("depthwise_packed"),
    ),
    Bug(
        "a total of depthwise_packed has a row less",
        "_kernels/depthwise_packed/kernel.py",
        "place.offset(2).store_int(before * -(-self.columns.window // RUN))",
        "place.offset(2).store_int((before + 1) * -(-self.columns.window // RUN))",
        tests=in_family("depthwise_packed"),
    ),
    Bug(
        "sums of depthwise_plane are one chain",
        "_kernels/depthwise_plane/schedule.py",
        "levels=0 if to_filter else levels_of(gather_contract(problem)),",
        "levels=0 if to_filter else 0 * levels_of(gather_contract(problem)),",
        tests=in_family("depthwise_plane"),
    ),
    Bug(
        "depthwise_plane's slices are no nodes of the tree",
        "_kernels/depthwise_plane/schedule.py",
        "sizes = [1 << j for j in range(max(1, units - 1).bit_length() + 1)]",
        "sizes = [3**j for j in range(max(1, units - 1).bit_length() + 1)]",
        tests=in_family("depthwise_plane"),
    ),
    Bug(
        "Winograd's chains have half as many products",
        "_kernels/winograd/sizes.py",
        "chain=CHAIN if self.exact else 0,",
        "chain=CHAIN // 2 if self.exact else 0,",
        tests=in_family("winograd"),
    ),
    Bug(
        "a run of a bias's gradient is a unit",
        "_kernels/shared/pixel_sum.py",
        "runs = cut(order.unit, order.run)",
        "runs = cut(order.unit, order.unit)",
        tests=("tests/numeric/test_bias_order.py",),
    ),
    Bug(
        "a run of batch norm in NCHW is twice as long",
        "_kernels/norm/statistics.py",
        "run = walk.RUN * chains",
        "run = 2 * walk.RUN * chains",
        tests=("tests/numeric/test_norm_bits.py", "-k", "NCHW"),
    ),
    Bug(
        "totals are of one run less",
        "_kernels/shared/levels.py",
        "with k.when((run // GROUP).differs(before // GROUP)):",
        "with k.when((run // (GROUP - 1)).differs(before // (GROUP - 1))):",
        tests=("tests/numeric/test_dense_sums.py",),
    ),
    Bug(
        "a cell beyond the image is read",
        "_kernels/dense_direct/axis.py",
        "(at >= 0) & (at < self._gather.source)",
        "(at >= 0) & (at <= self._gather.source)",
    ),
    Bug(
        "pixels left over from the last tile dropped",
        "_kernels/dense_direct/walk.py",
        "k.loop(0, count, height, carry=carry, nonempty=True) as first:",
        "k.loop(0, k.max(count - height + 1, 1), height, carry=carry, nonempty=True) as first:",
    ),
    Bug(
        "the last panel overlaps by one channel too many",
        "_kernels/dense_direct/pack.py",
        "start = k.min(place * lanes, width - lanes)",
        "start = k.max(k.min(place * lanes, width - lanes - 1), 0)",
    ),
    Bug(
        "groups of the packed filter swapped",
        "_kernels/dense_direct/pack.py",
        "source = self.source.offset(tap * depth * pitch + group * width + start)",
        'source = self.source.offset(tap * depth * pitch + (word["groups"] - 1 - group) * width + start)',
    ),
    Bug(
        "the channels that fill no vector dropped",
        "_kernels/shared/stage.py",
        "    with k.loop(whole, count) as i:\n        target.offset(i).store(source.offset(i).load())",
        "    with k.loop(count, count) as i:\n        target.offset(i).store(source.offset(i).load())",
    ),
    Bug(
        "a filter gradient's taps start at the wrong output",
        "_kernels/dense_filter/tables.py",
        "met = np.clip(bounds - starts[looked, None, None], 0, counts[:, None, None])",
        "met = np.clip(bounds - starts[looked, None, None] + [bounds[0, 0] > 0, 0], 0, counts[:, None, None])",
    ),
    Bug(
        "a filter gradient pads on the wrong side",
        "_kernels/dense_filter/tables.py",
        "origins = starts * axis.stride - axis.before",
        "origins = starts * axis.stride - axis.after",
    ),
    Bug(
        "the last slice of a filter gradient is not added",
        "_kernels/dense_filter/merge.py",
        'word["slice_pitch"], slices, lanes, stack)',
        'word["slice_pitch"], k.max(slices - 1, 1), lanes, stack)',
    ),
    Bug(
        "merged groups taken off the diagonal",
        "_kernels/dense_filter/merge.py",
        "inside = group % merged",
        "inside = merged - 1 - group % merged",
    ),
    Bug(
        "zero pixels left as they were",
        "_kernels/dense_filter/pack.py",
        "                place.offset(i).store(zero)",
        "                place.offset(i).store(zero + zero) if i else None",
    ),
    Bug(
        "Winograd's tile reads a row beyond the image",
        "_kernels/winograd/input_transform.py",
        'there = row.inside(word["source_rows"])',
        'there = (row - 1).inside(word["source_rows"])',
    ),
    Bug(
        "Winograd's output matrix has a wrong sign",
        "_kernels/shared/winograd_scheme.py",
        "output_matrix=((1, 1, 1, 0), (0, 1, -1, -1)),",
        "output_matrix=((1, 1, 1, 0), (0, 1, -1, 1)),",
    ),
)


def noticed(bug: Bug) -> bool:
    """Run the tests of a bug against a copy of the package that has it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "convgrad"
        shutil.copytree(ROOT / "src" / "convgrad", copy)
        target = copy / bug.file
        text = target.read_text(encoding="utf-8")
        if text.count(bug.right) != 1:
            sys.exit(f"{bug.name}: {bug.file} must hold exactly once: {bug.right}")
        target.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")
        run = subprocess.run(
            [
                *(python_for(bug), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"),
                *(bug.tests or (KERNEL_TESTS if bug.in_kernels else TESTS)),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": folder,
                "CONVGRAD_KERNELS": str(int(bug.in_kernels or bool(bug.tests))),
                "CONVGRAD_CACHE_DIR": str(Path(folder) / "cache"),
                "CONVGRAD_OPT_LEVEL": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        # A kernel that leaves its arrays ends the process by a signal: that is noticed.
        if run.returncode < 0 and (bug.in_kernels or bug.tests):
            return True
        # 2: a module of the tests could not even be imported, which only a row with tests of its own may cause.
        if run.returncode not in (0, 1, *((2,) if bug.tests else ())):
            sys.exit(
                f"{bug.name}: the tests did not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}"
            )
        return run.returncode != 0


def python_for(bug: Bug) -> str:
    """Return the interpreter of the environment a bug's tests need."""
    if not bug.needs_frameworks:
        return sys.executable
    folder = ROOT / ".venv-frameworks"
    found = [
        each
        for each in (folder / "bin" / "python", folder / "Scripts" / "python.exe")
        if each.exists()
    ]
    if not found:
        sys.exit(f"{bug.name}: run 'make install-frameworks' first")
    return str(found[0])


def chosen(names: list[str]) -> list[Bug]:
    """Return the bugs that are named, by their own name or their room's; by default all but the frameworks'."""
    known = (*BUGS, *ROOMS)
    if not names:
        return [bug for bug in known if not bug.needs_frameworks]
    unknown = set(names) - {"frameworks"} - {word for bug in known for word in (bug.name, bug.room)}
    if unknown:
        sys.exit(f"unknown bug or room: {', '.join(sorted(unknown))}")
    return [
        bug
        for bug in known
        if bug.name in names
        or bug.room in names
        or (bug.needs_frameworks and "frameworks" in names)
    ]


def main() -> int:
    """Try the bugs named on the command line, or all of them."""
    bugs = chosen(sys.argv[1:])
    missed = 0
    for bug in bugs:
        found = noticed(bug)
        missed += not found
        print(f"{'noticed' if found else 'MISSED ':8} {bug.room:14} {bug.name}", flush=True)
    print(f"{len(bugs) - missed} of {len(bugs)} planted bugs noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
