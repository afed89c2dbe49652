"""Write the folder `shim`: TensorFlow's include lines, each a header that includes convgrad's instead.

A new include line is one more word below; then run `python tools/cc_shim.py`. A test says whether the folder is fresh.
"""

from __future__ import annotations

from pathlib import Path

SHIM = Path(__file__).resolve().parent.parent / "src" / "convgrad" / "include" / "shim"
OPS = ("array", "math", "nn", "random", "state", "training")

TENSORFLOW = {
    "cc/client": "client_session",
    "cc/framework": "gradients ops scope",
    "cc/ops": " ".join(f"{group}_ops {group}_ops_internal" for group in OPS)
    + " const_op standard_ops",
    "core/framework": "bfloat16 numeric_types partial_tensor_shape tensor tensor_shape tensor_types types types.pb",
    "core/graph": "graph",
    "core/lib/bfloat16": "bfloat16",
    "core/lib/core": "error_codes.pb errors status stringpiece",
    "core/lib/gtl": "array_slice",
    "core/lib/strings": "strcat",
    "core/platform": "bfloat16 errors init_main logging macros status strcat stringpiece tstring types",
    "core/protobuf": "config.pb error_codes.pb",
    "core/public": "session_options",
}
ABSEIL = {
    "log": "check log",
    "status": "status",
    "strings": "str_cat string_view",
    "types": "span",
}


def header(path: str, includes: str) -> str:
    """Return a header's text.

    >>> print(header("tensorflow/cc/framework/scope.h", "tensorflow/convgrad.h").splitlines()[0])
    #ifndef CONVGRAD_SHIM_TENSORFLOW_CC_FRAMEWORK_SCOPE_H_
    """
    guard = "CONVGRAD_SHIM_" + path.replace("/", "_").replace(".", "_").upper() + "_"
    return f"#ifndef {guard}\n#define {guard}\n\n{includes}\n\n#endif  // {guard}\n"


def headers() -> dict[str, str]:
    """Return the text of every generated header by its path below `shim`."""
    own = '#include "tensorflow/convgrad.h"'
    texts = {}
    for folder, names in TENSORFLOW.items():
        for name in names.split():
            path = f"tensorflow/{folder}/{name}.h"
            texts[path] = header(path, own)
    for folder, names in ABSEIL.items():
        for name in names.split():
            path = f"absl/{folder}/{name}.h"
            texts[path] = header(
                path,
                f'#ifdef CONVGRAD_WITH_ABSEIL\n#include_next "{path}"\n#else\n{own}\n#endif',
            )
    return texts


def main() -> None:
    for path, text in headers().items():
        place = SHIM / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


if __name__ == "__main__":
    main()
