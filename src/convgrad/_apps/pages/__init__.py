"""Pages: blocks with pins and wires between them, as data, and the files that hold them.

    page             the model: Page, Block, Value, Wire, Note; plain data, nothing runs
    setting_texts    what people type on pins: attributes, shapes, lists of integers, dtypes, padding; and back
    tensor_texts     the same for numbers: typed arrays, literals with braces, lists of literals; and back
    symbols          one row per block enuSpace has: its pins, their defaults and grammars, its outputs
    loading          bytes to text to JSON, with bounds
    document         our own page file, JSON; `tensors` has the arrays in it
    enuspace_svg     enuSpace's pages, both dialects; `enuspace_xml` parses, `enuspace_dat` fetches large values
    enuspace_json    what enuSpace's plug-in loads
    files            a path to a page, whatever the format
    from_graph       a graph as a page; `layout` has the measures of blocks and arranges them
    svg              a page as a picture
    python_source    a graph as a Python program, `cpp_source` as a C++ one; `program` says what both do

A file is somebody else's: nothing in it is evaluated, no path is taken from it, sizes are checked before memory is
asked for, and every mistake is one `ArgumentError` of one line that names file and place.
"""
