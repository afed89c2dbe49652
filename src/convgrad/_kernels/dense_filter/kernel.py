"""The kernel of the dense filter gradient: sums of outer products of pixels, in register tiles.

``dw[t, c, k] = sum over pixels of x[pixel @ t, c] * dy[pixel, k]`` for a block of input channels c, a block of output
channels k and a slice of the pixels: that is one item. An item walks the chunks of its slice. It copies its channels
of a chunk into the thread's scratch, x as ``[tile of c][pixel][rows]`` and dy as ``[panel of k][pixel][lanes]``
(`pack`), and then, for every panel, tap and tile, runs down the tap's list of pixels (`lists`): pairs of a place in
x and a place in dy, real pairs only, so taps in the padding cost nothing and touch nothing. Layout, dtype and
strides end in the copies; sizes, taps and channels are run-time words. One code serves every problem of a dtype, a
layout and a tile.

Where a bias's gradient is wanted, the copies are added up pixel by pixel as well (`pixels`).

A chunk is a unit of the contract (`_problem/sums/pixels`), and its order is the contract's: a chain in registers for
each run of pixels, runs added up in order, and units as the leaves of a binary tree. A slice is 2^j units, a node of
it. Inside, the sums of what is whole wait for their other halves in the scratch of the item, one block for each level
(`nodes`). What comes out at the end of the slice is written once: to the filter gradient itself, or to partial sums
with rows of their own length, which `merge` adds up by the rest of the tree.

With few input channels a window's columns are taken as channels, and what lies beside the image is copied as zeros.
Where dy is not finite these would not add nothing, so such a chunk is summed one by one (`_carefully`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._compiler.codegen import (
    I32,
    Bool,
    Int,
    KernelBuilder,
    Pointer,
    Variable,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.pixel_sum import added_up
from ..shared.words import arguments
from .chunk import Chunks, Corner, Item, item_of
from .lists import WORD, Lists, runs_of
from .nodes import LEVELS, Leaf, Nodes
from .pack import ChunkPacker, Pack
from .pixels import PixelSums
from .tile import Ahead, TileSums
from .words import SUM_WORDS, UNROLL, WORDS, DenseFilterKernel

_CHECKED = 8
"""Vectors of dy that are looked at side by side."""


@dataclass(frozen=True)
class Edges:
    """What to do about windows that lie partly beside the image, where their columns are channels."""

    odd: Bool
    """Whether zeros there would not add nothing."""
    first: Int
    """The chunk's first column, the padding counted."""
    cols: Int
    """Columns of a row of its copy."""


def emit(kernel: DenseFilterKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the innermost body."""

    def __init__(self, kernel: DenseFilterKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.rows}x{kernel.vectors}"
        self.k = k = KernelBuilder(
            symbol("dense_bwd_filter", kernel.dtype, size, target, kernel), target
        )
        self.storage = element(kernel.dtype)
        self.number = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.width = kernel.vectors * self.lanes
        sums = kernel.sums != ""
        self.word = arguments(k, 4 + sums, (*WORDS, *SUM_WORDS) if sums else WORDS)
        self.table = k.arg_pointer(3 + sums, I32)
        self.tile = TileSums(k, kernel, self.number)
        self.nodes = Nodes(k, k.scratch(WORD, LEVELS))
        # All that has a fixed size is taken by now: the rest of the scratch starts here.
        self.x_pack = k.scratch(self.number, 0)
        self.y_pack = k.scratch(self.number, 0).offset(self.word["y_at"])
        ends, index = (
            k.scratch(self.number, 0).offset(self.word[name]).as_element(WORD)
            for name in ("ends_at", "lists_at")
        )
        pairs = index.offset(self.word["index_room"])
        self.lists = Lists(k, self.table, self.word, ends, index, pairs, kernel.x_width, self.width)
        by_channel = kernel.data_format == "NCHW"
        zeros = not kernel.straight
        self.chunks = Chunks(k, self.table, self.word, by_channel, kernel.folded)
        self.packer = ChunkPacker(k, self.storage, by_channel, zeros, self.chunks, self.word)
        self.pixels = (
            PixelSums(k, kernel, self.word, self.tile.totals, ends, self.nodes) if sums else None
        )

    def write(self) -> KernelSource:
        k = self.k
        held = k.variable(k.i64(0))
        listed, counted = k.variable(k.i64(-1)), k.variable(k.i64(-1))
        with k.loop(k.begin, k.end, carry=[held, listed, counted]) as number:
            item = item_of(number, self.word)
            fresh = item.key.equals(0) | item.key.differs(held.value)
            held.value = item.key
            chunks = item.chunk, item.chunk_end
            parts = k.i64(1) if self.kernel.straight else self.word["tap_parts"]
            carry = [listed, counted]
            with (
                k.loop(0, parts, carry=carry, nonempty=True) as part,
                k.loop(*chunks, carry=carry, nonempty=True) as chunk,
            ):
                self._chunk(item, part, chunk, fresh, listed, counted)
        return k.finish()

    def _sources(self, corner: Corner) -> tuple[Pointer, Pointer]:
        """Return a chunk's first pixels in x and dy."""
        x, y = (self.k.arg_pointer(number, self.storage) for number in range(2))
        return x.offset(corner.x), y.offset(corner.y)

    def _chunk(
        self,
        item: Item,
        part: Int,
        chunk: Int,
        fresh: Bool,
        listed: Variable[Int],
        counted: Variable[Int],
    ) -> None:
        """Copy a chunk and add its products; its lists of pixels and the ends of its runs may be there already."""
        k, word = self.k, self.word
        corner = self.chunks.corner(chunk)
        x, y = self._sources(corner)
        shape, kind = self.chunks.shape(corner)
        kernel = self.kernel
        big, tiles, whole = word["big_tiles"], word["tiles"], word["whole_tiles"]
        kinds: tuple[tuple[int, Int, Int], ...] = ((kernel.x_width, k.i64(0), big),)
        if kernel.few < kernel.rows:
            kinds = (*kinds, (kernel.few, big, tiles))
        x_pack = Pack(
            side="x",
            source=x,
            target=self.x_pack,
            shape=shape,
            image_pixels=shape.x_pixels,
            width=kernel.x_width,
            tile_size=word["x_tile"],
            zero=word["x_zero"],
            group=item.group,
            group_end=item.group_end,
            channels=word["group_in"],
            tile=item.tile,
            tile_end=item.tile_end,
            whole=whole,
            kinds=kinds,
            col=corner.x_col if kernel.folded else None,
        )
        panels = word["whole_panels"]
        y_pack = Pack(
            side="y",
            source=y,
            target=self.y_pack,
            shape=shape,
            image_pixels=shape.y_pixels,
            width=self.width,
            tile_size=word["y_tile"],
            zero=word["y_zero"],
            group=item.group,
            group_end=item.group_end,
            channels=word["group_out"],
            tile=item.panel,
            tile_end=item.panel_end,
            whole=panels,
            kinds=((self.width, k.i64(0), panels),),
        )
        with k.when(fresh):
            self.packer.pack(x_pack)
        self.packer.pack(y_pack)
        ahead = None
        if kernel.prefetch:
            ahead = self._sources(self.chunks.corner(k.min(chunk + 1, item.chunk_end - 1)))
        if kernel.straight or kernel.sums:
            with k.when(kind.differs(counted.value)):
                self.lists.ends(shape)
            counted.value = kind
        runs = runs_of(k, word, shape).all
        leaf = self.nodes.start(chunk - item.chunk, chunk.equals(item.chunk_end - 1))
        if self.pixels:
            # Of the items that copy the same pixels, one adds them up.
            summed, other = (y_pack, item.tile) if kernel.sums == "y" else (x_pack, item.panel)
            with k.when(other.equals(0) & part.equals(0)):
                self.pixels.add(summed, runs, item.slice, leaf)
        edges = None
        if kernel.folded:
            count = shape.images * shape.y_pixels
            edges = Edges(self._odd(item, count), corner.x_col, shape.cols["cells"])
        taps = k.i64(0), word["taps"]
        if not kernel.straight:
            first = part * word["part_rows"]
            end = k.min(first + word["part_rows"], word["tap_rows"])
            number = kind * word["tap_parts"] + part
            with k.when(number.differs(listed.value)):
                self.lists.write(shape, first, end)
            listed.value = number
            taps = first * word["tap_cols"], end * word["tap_cols"]
        self._products(item, runs, leaf, ahead, edges, taps)

    def _odd(self, item: Item, count: Int) -> Bool:
        """Tell whether zeros beside the image would meet an infinity or a NaN of dy, and not add nothing."""
        k, lanes = self.k, self.lanes
        zero = k.zeros(self.number, lanes)
        sums = [k.variable(zero) for _ in range(_CHECKED)]
        panels = k.select(self.word["x_edges"].equals(0), k.i64(0), item.panel_end - item.panel)
        with k.loop(0, panels, carry=sums) as panel:
            here = self.y_pack.offset(panel * self.word["y_tile"])
            size = count * self.width
            whole = size - size % (_CHECKED * lanes)
            with k.loop(0, whole, _CHECKED * lanes, carry=sums) as at:
                for number, each in enumerate(sums):
                    value = here.offset(at + number * lanes).load(lanes)
                    each.value = k.fma(value, zero, each.value)
            with k.loop(whole, size, lanes, carry=sums[:1]) as at:
                sums[0].value = k.fma(here.offset(at).load(lanes), zero, sums[0].value)
        total = added_up([each.value for each in sums]).sum()
        return Bool(total.emitter, total.compare("une", "", 0.0).text)

    def _products(
        self,
        item: Item,
        runs: Int,
        leaf: Leaf,
        ahead: tuple[Pointer, Pointer] | None,
        edges: Edges | None,
        taps: tuple[Int, Int],
    ) -> None:
        """Add the products of a chunk to those before, panel by panel, tap by tap, tile by tile."""
        k, word, kernel = self.k, self.word, self.kernel
        out = k.arg_pointer(2, element(kernel.out)).offset(item.slice * word["out_slice"])
        tiles, panels = item.tile_end - item.tile, item.panel_end - item.panel
        big, more = word["big_tiles"], kernel.rows - kernel.few
        kinds = [(kernel.rows, item.tile, k.min(item.tile_end, big), k.i64(0))]
        if more:
            kinds.append((kernel.few, k.max(item.tile, big), item.tile_end, big * more))
        # What waits for a node's other half, tile by tile.
        waiting = k.variable(k.scratch(self.number, 0).offset(word["stack_at"]))
        with k.loop(item.group, item.group_end, carry=[waiting], nonempty=True) as group:
            local = group - item.group
            xs = self.x_pack.offset((local * tiles - item.tile) * word["x_tile"])
            ys = self.y_pack.offset((local * panels - item.panel) * word["y_tile"])
            with k.loop(item.panel, item.panel_end, carry=[waiting], nonempty=True) as panel:
                y = ys.offset(panel * word["y_tile"])
                col = panel * self.width
                place = out.offset(group * word["out_group"] + col)
                with k.loop(*taps, carry=[waiting], nonempty=True) as tap:
                    index = self.lists.index.offset((tap - taps[0]) * runs)
                    here = place.offset(tap * word["out_tap"])
                    for rows, start, stop, skipped in kinds:
                        with k.loop(start, stop, carry=[waiting]) as tile:
                            x = xs.offset(tile * word["x_tile"])
                            row = skipped + tile * rows
                            sums = self.tile.fresh(rows)
                            if kernel.straight:
                                lines = ahead and self._ahead(item, group, panel, tile, *ahead)
                                self.tile.straight(sums, x, y, self.lists.ends_, runs, lines)
                            elif edges:
                                with k.branch(edges.odd) as ways:
                                    with ways.then():
                                        self._carefully(sums, rows, x, y, row, index, runs, edges)
                                    with ways.otherwise():
                                        self.tile.listed(sums, x, y, self.lists.pairs, index, runs)
                            else:
                                self.tile.listed(sums, x, y, self.lists.pairs, index, runs)
                            found = sums[: rows * kernel.vectors]
                            left = word["out_rows"] - row, word["out_cols"] - col
                            waits = waiting.value
                            self.nodes.add(found, waits, word["stack_pitch"], leaf)
                            with k.branch(leaf.last) as either:
                                with either.then():
                                    # What is zero is +0.
                                    zero = k.zeros(self.number, self.lanes)
                                    values = [each.value + zero for each in found]
                                    self._store(values, here.offset(row * word["out_row"]), *left)
                                with either.otherwise():
                                    self.nodes.keep(found, waits, word["stack_pitch"], leaf)
                            waiting.value = waits.offset(len(found) * self.lanes)

    def _carefully(
        self,
        sums: list[Variable[Vector]],
        rows: int,
        x: Pointer,
        y: Pointer,
        start: Int,
        index: Pointer,
        runs: Int,
        edges: Edges,
    ) -> None:
        """Sum the products of a tile of windows' columns one by one, and leave out those beside the image."""
        k, word, lanes, vectors = self.k, self.word, self.lanes, self.kernel.vectors
        zero, totals = k.zeros(self.number, lanes), self.tile.totals
        with k.loop(0, rows * vectors, nonempty=True) as number:
            row, part = number // vectors, number % vectors * lanes
            shift = (start + row) // word["x_fold"] + edges.first - word["x_before"]
            total = k.variable(zero)
            with k.loop(0, runs, carry=[total], nonempty=True) as run:
                begin, end = (index.offset(run).offset(i).load_int() for i in range(2))
                chain = k.variable(zero)
                with k.loop(begin, end, carry=[chain]) as entry:
                    pair = self.lists.pairs.offset(entry).as_element(I32)
                    a, b = pair.load_int(), pair.offset(1).load_int()
                    col = a // self.kernel.x_width % edges.cols * word["x_step"] + shift
                    with k.when(col.inside(word["x_cols"])):
                        left = x.offset(a + row).broadcast(lanes)
                        right = y.offset(b + part).load(lanes)
                        chain.value = k.fma(left, right, chain.value)
                total.value = total.value + chain.value
            totals.offset(number * lanes).store(total.value)
        for place, each in enumerate(sums):
            each.value = totals.offset(place * lanes).load(lanes)

    def _ahead(
        self, item: Item, group: Int, panel: Int, tile: Int, next_x: Pointer, next_y: Pointer
    ) -> Ahead:
        """Return what a tile asks for: lines of some of the next chunk's pixels, and their distance.

        A few tiles share a column of lines, x before dy; each asks for its lines every few products.
        """
        k, word, lines = self.k, self.word, self.kernel.prefetch
        tiles, panels = item.tile_end - item.tile, item.panel_end - item.panel
        groups = item.group_end - item.group
        number = ((group - item.group) * panels + panel - item.panel) * tiles + tile - item.tile
        size = 64 // self.storage.size
        x_lines = (groups * tiles * self.kernel.rows + (size - 1)) // size
        y_lines = (groups * panels * self.width + (size - 1)) // size
        shares = UNROLL // lines
        column, share = number // shares, number % shares
        of_x = column < x_lines
        x = next_x.offset(item.group * word["group_in"] + item.tile * self.kernel.rows)
        y = next_y.offset(item.group * word["group_out"] + item.panel * self.width)
        column = k.select(of_x, column, k.min(column - x_lines, y_lines - 1))
        pitch = k.select(of_x, word["x_pixel"], word["y_pixel"])
        base = k.select(of_x, x.renamed(x.text), y.renamed(y.text)).offset(column * size)
        some = word["y_zero"] // UNROLL
        first = share * lines
        starts = (base.offset((first + i) * some * pitch) for i in range(lines))
        return Ahead(tuple(starts), pitch)

    def _store(self, sums: list[Vector], place: Pointer, rows_left: Int, cols_left: Int) -> None:
        """Store the sums of a slice; what is left may be less than a tile."""
        k, lanes = self.k, self.lanes
        rows = len(sums) // self.kernel.vectors
        whole = (rows_left >= rows) & (cols_left >= self.width)
        pitch = self.word["out_row"]
        with k.branch(whole) as either:
            with either.then():
                for at, value in self._places(place, sums, pitch):
                    at.store(value)
            with either.otherwise():
                # A loop, not one block of code for each: such tiles are few.
                for number, value in enumerate(sums):
                    self.tile.totals.offset(number * lanes).store(value)
                with k.loop(0, k.min(rows_left, rows)) as row:
                    found = self.tile.totals.offset(row * self.width)
                    for part in range(0, self.width, lanes):
                        at = place.offset(row * pitch + part)
                        value = found.offset(part).load(lanes)
                        self._store_first(at, value, cols_left - part)

    def _store_first(self, at: Pointer, value: Vector, count: Int) -> None:
        """Store the first lanes of a vector, maybe all or none. Stores with a mask take 11 ns each on Zen."""
        k, lanes = self.k, self.lanes
        with k.branch(count >= lanes) as whole:
            with whole.then():
                at.store(value)
            with whole.otherwise(), k.when(count > 0):
                self._store_some(at, value, count)

    def _store_some(self, at: Pointer, value: Vector, count: Int) -> None:
        """Store less than a vector: halves of what is left, as the count's digits say."""
        k, lanes = self.k, value.lanes
        rest, place = k.variable(value), k.variable(at)
        some = lanes // 2
        while some:
            with k.when((count & some).differs(0)):
                place.value.store(rest.value.part(0, some))
                if some > 1:
                    moved = [*range(some, lanes), *range(some)]
                    rest.value = k.shuffle(rest.value, None, moved)
                    place.value = place.value.offset(some)
            some //= 2

    def _places(
        self, place: Pointer, sums: list[Vector], pitch: Int
    ) -> Iterator[tuple[Pointer, Vector]]:
        """Yield the sums of a tile, each with its place."""
        vectors = self.kernel.vectors
        for number, value in enumerate(sums):
            yield place.offset(number % vectors * self.lanes), value
            if number % vectors == vectors - 1:
                place = place.offset(pitch)
