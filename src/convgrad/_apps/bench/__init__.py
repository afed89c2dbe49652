"""Speed of the public calls against other frameworks: ``convgrad bench --help``.

    layers, tables      what is measured: rows of data, and a parser for rows of your own
    contests            one operation on one layer: operands, our call, the right numbers
    networks            whole networks, layer by layer
    process             a child and the pipes to it
    peers, worker       whom we compare with, each framework in a process where we call too
    measure             turns call by call and their statistics; knows no convolution and no framework
    machine, memory     what this computer can do, and what a call costs beyond its result
    runner              the race against peers, as one plain dictionary
    totals, report      that dictionary as sums over networks, and as tables for people
    saved, compare      runs in files, and two of them row by row
    plot, panels        pictures
    winograd            ours against ours: fast algorithms beside the direct sums
    busy                beside a process that keeps a core busy
    step                the first training step of a network: kernels and time

Ours is called exactly as a user calls it: top-level functions of convgrad on NumPy arrays.
"""
