"""The block studio: a server on the loopback address, for the page in the browser that `studio/` is the source of.

    server       HTTP: token, host, origin, sizes, the built page's files
    connections  how many there may be, and how long they may keep us waiting
    opening      the browser, led to the address by a file that only its owner can read
    api          what the browser may ask, one row each
    checks       a page as it is edited: problems, shapes, whether a wire fits
    palette      the blocks there are, from the table of ops
    runs         runs, each in a process of its own; `child` is that process
    summaries    a tensor in few numbers
    trace        which cells made a cell; `trace_convolutions` has the sums of the six operations
    feeds        arrays from files; `png` has the pixels of pictures
    gallery      pages that open with one click

Nothing a browser sends is executed, and no path is taken from it.
"""
