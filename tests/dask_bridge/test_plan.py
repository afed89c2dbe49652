"""Plans are arithmetic: what they promise of blocks, pieces and chunks holds for any problem and any chunks."""

from __future__ import annotations

from math import prod
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convgrad
from cases import KINDS
from convgrad._bridges.dask import axes, graph, plan
from convgrad._bridges.dask.axes import Range
from convgrad._problem import geometry
from convgrad._problem import text as _problem_text
from convgrad._problem.convolution import Problem
from dask_bridge.chunkings import Trial, limited, tiled, trials
from errors.doors import DOORS

quick = settings(
    deadline=None, max_examples=50, derandomize=True, suppress_health_check=list(HealthCheck)
)


@st.composite
def solved(draw: Any) -> tuple[geometry.Axis, Range]:
    """An axis and a range of its outputs or cells."""
    numbers = st.integers(1, 7)
    padding = draw(
        st.one_of(
            st.sampled_from(("SAME", "VALID")), st.tuples(st.integers(0, 9), st.integers(0, 9))
        )
    )
    axis = geometry.solve(
        draw(st.integers(1, 40)), draw(numbers), draw(numbers), draw(numbers), padding
    )
    begin = draw(st.integers(0, max(axis.size, axis.out)))
    return axis, Range(begin, draw(st.integers(begin, max(axis.size, axis.out))))


def touched(axis: geometry.Axis) -> set[tuple[int, int]]:
    """All pairs of an output and a cell it reads."""
    return {
        (out, cell)
        for out in range(axis.out)
        for tap in range(axis.window)
        if 0 <= (cell := out * axis.stride + tap * axis.dilation - axis.before) < axis.size
    }


@quick
@given(solved())
def test_a_part_of_the_outputs_reads_the_same_cells(given: tuple[geometry.Axis, Range]) -> None:
    axis, wanted = given
    if axis.out < 0 or wanted.end > axis.out:
        return
    part = axes.for_outputs(axis, wanted)
    moved = {(out + wanted.begin, cell + part.cells.begin) for out, cell in touched(part.axis)}
    assert moved == {pair for pair in touched(axis) if wanted.begin <= pair[0] < wanted.end}
    assert part.axis.size == part.cells.size and part.axis.out == wanted.size
    if moved:
        check_solved(part.axis)


@quick
@given(solved())
def test_a_part_of_the_cells_is_read_by_the_same_outputs(
    given: tuple[geometry.Axis, Range],
) -> None:
    axis, wanted = given
    if axis.out < 0 or wanted.end > axis.size:
        return
    part = axes.for_cells(axis, wanted)
    first, lead = part.outputs.begin, wanted.begin + part.lead
    moved = {(out + first, cell + lead) for out, cell in touched(part.axis)}
    assert moved == {pair for pair in touched(axis) if wanted.begin <= pair[1] < wanted.end}
    assert part.axis.size + part.lead == wanted.size and part.axis.out == part.outputs.size
    if moved:
        check_solved(part.axis)


def check_solved(axis: geometry.Axis) -> None:
    """A part is a convolution with explicit pads, as kernels and lines of text know it."""
    pads = (axis.before, axis.after)
    assert geometry.solve(axis.size, axis.window, axis.stride, axis.dilation, pads) == axis


def planned(trial: Trial) -> plan.ChunkPlan:
    """The plan of a trial, from shapes alone."""
    case = trial.case
    call = {
        "forward": (case.input_shape, trial.x, case.filter_shape, trial.f),
        "input": (case.filter_shape, trial.f, case.output_shape, trial.g),
        "filter": (case.input_shape, trial.x, case.output_shape, trial.g),
    }[trial.kind]
    chunks = [
        each or tuple((size,) for size in shape)
        for shape, each in zip(call[::2], call[1::2], strict=True)
    ]
    return plan.cut(problem_of(trial), *chunks)


def problem_of(trial: Trial) -> Problem:
    case = trial.case
    name = ("depthwise_" if case.depthwise else "") + "conv2d"
    name += {"forward": "", "input": "_backprop_input", "filter": "_backprop_filter"}[trial.kind]
    padding = case.padding
    if not isinstance(padding, str):
        padding = ":".join(",".join(map(str, pair)) for pair in padding)
    sizes = ("x".join(map(str, shape)) for shape in (case.input_shape, case.filter_shape))
    return _problem_text.read(
        f"{name} {' '.join(sizes)} strides={case.strides[0]},{case.strides[1]} padding={padding}"
        f" dilations={case.dilations[0]},{case.dilations[1]} data_format={case.data_format}"
        f" dtype={'float16' if case.dtype == 'half' else case.dtype}"
    )


def only_filled(trial: Trial) -> bool:
    return 0 not in (*trial.case.input_shape, *trial.case.filter_shape, *trial.case.output_shape)


@quick
@given(trials().filter(only_filled))
def test_blocks_fill_the_result_and_pieces_fill_the_blocks(trial: Trial) -> None:
    with limited(trial):
        made = planned(trial)
        blocks = list(made.blocks())
    seen: dict[tuple[int, ...], list[int]] = {}
    for block in blocks:
        seen.setdefault(block.place, []).append(block.part)
        sizes = tuple(cut[at].size for cut, at in zip(made.blocks_along, block.place, strict=True))
        assert block.shape == sizes
        if block.problem.is_empty:
            continue
        assert _problem_text.read(_problem_text.write(block.problem)) == block.problem
        for box, shape, chunks in zip(
            (block.first, block.second),
            block.problem.operand_shapes,
            (made.first, made.second),
            strict=True,
        ):
            assert box.shape == shape
            covered = np.zeros(shape, np.int8)
            for piece in box.pieces:
                place = tuple(
                    slice(at, at + each.size)
                    for at, each in zip(piece.at, piece.inside, strict=True)
                )
                covered[place] += 1
                held = [sizes[at] for sizes, at in zip(chunks, piece.chunk, strict=True)]
                assert all(
                    0 <= each.begin < each.end <= size
                    for each, size in zip(piece.inside, held, strict=True)
                )
            assert (covered == 1).all()
    assert len(seen) == prod(map(len, made.blocks_along))
    assert all(parts == list(range(made.parts)) for parts in seen.values())
    assert tuple(map(sum, made.chunks)) == made.problem.result_shape


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(data=st.data())
def test_a_block_around_a_chunk_adds_the_same_products(kind: str, data: st.DataObject) -> None:
    """Every pair of an output and a cell that the block has: by the core or by one band, never by both."""
    trial = data.draw(tiled(kind))
    with limited(trial):
        made = planned(trial)
        blocks = [block for block in made.blocks() if block.halo is not None]
    for block in blocks:
        assert block.halo is not None
        box = (block.first, block.second)[made.haloed]
        middle = box.pieces[box.middle].at
        starts = (middle[1], middle[2]) if trial.case.data_format == "NHWC" else middle[2:]
        for problem in (block.halo.core, *(band.problem for band in block.halo.bands)):
            check_solved(problem.rows)
            check_solved(problem.cols)
            assert min(*problem.rows, *problem.cols) >= 0
        wanted = both(touched(block.problem.rows), touched(block.problem.cols))
        by_bands: set[Any] = set()
        for band in block.halo.bands:
            (row, col), (at_row, at_col) = (
                [each.begin for each in ranges] for ranges in (band.inside, band.at)
            )
            if kind == "input":  # reads outputs, makes cells
                (row, col), (at_row, at_col) = (at_row, at_col), (row, col)
            pairs = both(
                {(out + at_row, cell + row) for out, cell in touched(band.problem.rows)},
                {(out + at_col, cell + col) for out, cell in touched(band.problem.cols)},
            )
            assert pairs <= wanted and not pairs & by_bands
            by_bands |= pairs
        row, col = starts
        shift = (row, 0, col, 0) if kind == "input" else (0, row, 0, col)
        by_core = {
            (out + shift[0], cell + shift[1], across + shift[2], beside + shift[3])
            for out, cell, across, beside in both(
                touched(block.halo.core.rows), touched(block.halo.core.cols)
            )
        }
        assert by_core <= wanted
        if kind == "filter":
            assert not by_core & by_bands
        else:  # bands replace
            made_by_bands = {kept(kind, pair) for pair in by_bands}
            by_core = {pair for pair in by_core if kept(kind, pair) not in made_by_bands}
        assert by_core | by_bands == wanted


def both(rows: set[tuple[int, int]], cols: set[tuple[int, int]]) -> set[tuple[int, int, int, int]]:
    return {(*row, *col) for row in rows for col in cols}


def kept(kind: str, pair: tuple[int, int, int, int]) -> tuple[int, int]:
    """The number of the result that a product goes to."""
    out, cell, across, beside = pair
    return (out, across) if kind == "forward" else (cell, beside)


@quick
@given(trials(kinds=("forward", "input")).filter(only_filled))
def test_no_chunk_of_a_result_is_small_unless_one_of_the_operands_was(trial: Trial) -> None:
    with limited(trial):
        made = planned(trial)
        smallest = plan.SMALLEST
    image = made.first if trial.kind == "forward" else made.second
    item = made.problem.dtype.itemsize
    least = prod(min(size for size in sizes if size) for sizes in image) * item
    if prod(map(max, image)) * item < smallest:
        assert made.joined == made.blocks_along  # small chunks are what was asked for
        return
    found = prod(min(sizes) for sizes in made.chunks) * item
    assert found >= min(smallest, least) or all(len(sizes) == 1 for sizes in made.chunks)


def lazy(*shape: int, chunks: Any) -> Any:
    return da.zeros(shape, dtype=np.float32, chunks=chunks)


def test_chunks_of_batches_come_back_as_they_are() -> None:
    x = lazy(64, 56, 56, 32, chunks=(8, -1, -1, -1))
    f = np.zeros((3, 3, 32, 1), np.float32)
    y = convgrad.depthwise_conv2d(x, f, 1, "SAME")
    assert y.chunks == x.chunks
    assert convgrad.depthwise_conv2d_backprop_input(x.shape, f, y, 1, "SAME").chunks == x.chunks


def test_strides_shrink_chunks_no_further_than_promised() -> None:
    """Of 16 MB chunks five strides of 2 would make chunks of 16 kB."""
    x = lazy(1, 8192, 8192, 4, chunks=(1, 1024, 1024, 4))
    f = np.zeros((3, 3, 4, 1), np.float32)
    for _ in range(5):
        x = convgrad.depthwise_conv2d(x, f, 2, "SAME")
    assert x.shape == (1, 256, 256, 4)
    assert min(prod(map(min, x.chunks)) * 4, x.nbytes) == x.nbytes == 1 << 20


def test_a_sliver_does_not_decide_the_chunks() -> None:
    """One column more than chunks have."""
    x = lazy(1, 2048, 2049, 4, chunks=(1, 1024, 1024, 4))
    y = convgrad.depthwise_conv2d(x, np.zeros((3, 3, 4, 1), np.float32), 8, "SAME")
    assert y.numblocks == (1, 1, 1, 1) and y.nbytes > 1 << 20


def test_chunks_without_cells_are_not_counted() -> None:
    x = lazy(1, 100, 8, 2, chunks=(1, 50, -1, -1))
    g = da.zeros((1, 100, 8, 2), dtype=np.float32, chunks=((1,), (100, 0, 0), (8,), (2,)))
    told = convgrad.explain("depthwise_conv2d_backprop_filter", x, (3, 3, 2, 1), out_backprop=g)
    assert told.chunked.partial_sums == 2


def test_filters_and_sums_are_counted_in_bytes_moved() -> None:
    x = lazy(8, 16, 16, 64, chunks=(1, -1, -1, -1))
    whole = da.zeros((3, 3, 64, 64), dtype=np.float32, chunks=-1)
    told = convgrad.explain("conv2d", x, whole).chunked.traffic
    assert told.bytes_moved == 8 * whole.nbytes
    apart = whole.rechunk((3, 3, 32, 64))
    told = convgrad.explain("conv2d", x, apart).chunked.traffic
    assert told.joins and told.join_bytes == whole.nbytes


def test_large_results_are_cut() -> None:
    """64 channels of 1: a chunk of 64 MB would become one of 4 GB."""
    x = lazy(4, 4096, 4096, 1, chunks=(1, -1, -1, -1))
    y = convgrad.conv2d(x, np.zeros((3, 3, 1, 64), np.float32), 1, "SAME")
    assert prod(map(max, y.chunks)) * 4 <= plan.LARGEST
    assert y.numblocks[0] == 4


def test_channels_are_brought_together_or_summed_in_parts() -> None:
    f = np.zeros((3, 3, 64, 8), np.float32)
    small = lazy(4, 56, 56, 64, chunks=(4, -1, -1, 16))
    large = lazy(64, 112, 112, 64, chunks=(64, -1, -1, 16))
    assert convgrad.explain("conv2d", small, f.shape).chunked.partial_sums == 1
    assert convgrad.explain("conv2d", large, f.shape).chunked.partial_sums == 4


def test_only_strips_are_taken_of_neighbours() -> None:
    x = lazy(1, 4096, 4096, 8, chunks=(1, 1024, 1024, -1))
    told = convgrad.explain("depthwise_conv2d", x, (5, 5, 8, 1)).chunked
    edge = (
        3 * 2 * 2 * 4096 * 8 * 4
    )  # three inner edges, two sides, two rows each, in both directions
    corners = 9 * 4 * 2 * 2 * 8 * 4
    assert told.traffic.strip_bytes == 2 * edge + corners
    assert told.traffic.bytes_moved < x.nbytes / 100


def test_a_graph_has_no_data_but_a_filter() -> None:
    x = lazy(64, 56, 56, 32, chunks=(2, 28, 28, 16))
    f = np.zeros((3, 3, 32, 1), np.float32)
    y = convgrad.depthwise_conv2d(x, f, 1, "SAME")
    layer = y.dask.layers[y.name].mapping
    parts = [
        part
        for task in layer.values()
        for part in (task if type(task) is tuple else [task])
        if isinstance(part, np.ndarray)
    ]
    held = {id(each): each for each in parts}.values()
    # A half for each chunk of channels, which all blocks share.
    assert sum(each.nbytes for each in held) == f.nbytes and len(held) == 2


@pytest.mark.parametrize("count", [1, 8, 9, 64, 65, 1000])
def test_the_tree_has_at_most_eight_branches(count: int) -> None:
    x = lazy(count, 4, 4, 2, chunks=(1, -1, -1, -1))
    made = convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 2, 1], x, 1, "SAME")
    layers = made.dask.layers
    sums = list(layers[made.name].mapping.values()) if count > 1 else []
    assert {task[0].name for task in sums} == ({"add"} if count > 1 else set())
    assert max([len(task) - 1 for task in sums], default=0) <= plan.FAN_IN
    blocks = len(layers[f"part-{made.name}" if count > 1 else made.name])
    assert blocks == count
    # A tree: every sum but the last and every block is added exactly once.
    added = [key for task in sums for key in task[1:]]
    assert len(set(added)) == len(added) == (blocks + len(sums) - 1 if count > 1 else 0)


@pytest.mark.parametrize(
    "door", [door for door in DOORS if "." not in door.id], ids=lambda door: door.id
)
def test_explain_tells_chunks_tasks_and_bytes(door: Any) -> None:
    arguments = door.arguments()
    arrays = {name: da.from_array(arguments[name], chunks=2) for name in door.arrays}
    made = door.function(**arguments | arrays)
    image = arrays.get(door.input, arguments[door.input])
    taps = arrays.get(door.filter, arguments[door.filter])
    more: dict[str, Any] = {}
    if door.op == "conv2d_transpose":
        image, more = arrays[door.grad], {"output_shape": arguments[door.input]}
    elif door.has_grad:
        more = {"out_backprop": arrays[door.grad]}
    if door.op == "separable_conv2d":
        more = {"pointwise_shape": arrays["pointwise_filter"]}
    story = convgrad.explain(door.op, image, taps, **more)
    told = (story.then or story).chunked
    assert told.chunks == made.chunks and told.shape == made.shape
    assert "tasks" in str(story) and "move between them" in str(story)
    document = (story.then or story).to_dict()["dask"]
    assert document["bytes_moved"] == told.traffic.bytes_moved
    layers = [each for name, each in made.dask.layers.items() if name.startswith("convgrad-")]
    tasks = sum(type(task) is tuple for layer in layers for task in layer.mapping.values())
    both = [story.chunked] if story.then is None else [story.chunked, story.then.chunked]
    assert sum(each.traffic.tasks for each in both) == tasks


def test_explain_refuses_what_does_not_fit() -> None:
    x = lazy(4, 8, 8, 2, chunks=2)
    with pytest.raises(convgrad.errors.ArgumentError, match="`out_backprop` is for gradients only"):
        convgrad.explain("conv2d", x, [3, 3, 2, 2], out_backprop=x)
    with pytest.raises(
        convgrad.errors.ArgumentError, match="`out_backprop` must be an array of Dask"
    ):
        convgrad.explain("conv2d_backprop_filter", x, [3, 3, 2, 2], out_backprop=[4, 8, 8, 2])
    with pytest.raises(convgrad.errors.ArgumentError, match="`dtype` must be that of the arrays"):
        convgrad.explain("conv2d", x, [3, 3, 2, 2], dtype="float64")
    with pytest.raises(convgrad.errors.ArgumentError, match="`out_backprop` must have 8 rows"):
        convgrad.explain("conv2d_backprop_filter", x, [3, 3, 2, 2], out_backprop=x[:, :3])
    with pytest.raises(convgrad.errors.DTypeError, match="dtype of the arrays before it"):
        convgrad.explain("conv2d", x, da.zeros((3, 3, 2, 2), dtype=np.float64, chunks=2))


def test_an_image_of_numpy_is_cut_like_the_other_one() -> None:
    g = lazy(8, 6, 6, 2, chunks=(2, 3, 3, 2))
    p, operands = graph.planned(
        _problem_text.read("depthwise_conv2d_backprop_filter 8x6x6x2 3x3x2x1"),
        np.zeros((8, 6, 6, 2), np.float32),
        g,
    )
    assert operands[0].chunks == ((2, 2, 2, 2), (6,), (6,), (2,))
    assert p.parts == 16
