"""Names of C: what a pack may be called, and what the function of a problem is called."""

from __future__ import annotations

import re

from ..._base.errors import ArgumentError, shown
from ..._problem import geometry
from ..._problem.convolution import Kind, Problem
from ..._problem.geometry import Axis
from ..._problem.norm.normalisation import Normalisation

LONGEST = 40
_SHORT = {Kind.FORWARD: "forward", Kind.INPUT_GRADIENT: "dx", Kind.FILTER_GRADIENT: "dw"}

_RESERVED = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires restrict return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while
xor xor_eq
"""
_TAKEN = """
NULL SIZE_MAX EOF INFINITY NAN convgrad convgrad_pack int32_t int64_t linux i386 main ptrdiff_t size_t stderr stdin
stdout unix uint16_t uint32_t uint64_t uint8_t uintptr_t
abort abs acos acosh alloca asin asinh atan atan2 atanh atexit atof atoi atol bcmp bcopy bsearch bzero calloc cbrt ceil
clock copysign cos cosh ctime div erf erfc exit exp exp2 expm1 fabs fclose fdim feof ferror fflush ffs fgetc fgets floor
fma fmax fmin fmod fopen fprintf fputc fputs fread free frexp fscanf fseek ftell fwrite gamma getc getchar getenv gets
hypot ilogb index isalnum isalpha isdigit isfinite isinf islower isnan isnormal isprint isspace isupper j0 j1 jn labs
ldexp ldiv lgamma llabs llrint llround log log10 log1p log2 logb longjmp lrint lround malloc memchr memcmp memcpy
memmove memset mktime modf nan nearbyint nextafter open perror pow printf putc putchar puts qsort raise rand read
realloc remainder remove rename rewind rindex rint round scalbn scanf setjmp signal signbit sin sinh snprintf sprintf
sqrt srand sscanf stpcpy strcat strchr strcmp strcpy strdup strlen strncat strncmp strncpy strrchr strspn strstr strtod
strtok strtol strtoul system tan tanh tgamma time tolower toupper trunc ungetc vprintf write y0 y1 yn
apart at bias bits brain bytes chunk code count digest dtype element entry exponent failed fill filter filter_backprop
first fraction from half i input input_backprop job known launch left_out memory mixed narrow needed number odd
out_backprop output places powered rest result row row_count rows run_backwards samples scratch scratch_bytes second
sign size spoil spread sum test_row to tolerance trouble turn unit value values want weight which widened wrong
begin digest_high digest_low end words
before beside dbias digest_made dresidual dweight dx grad k next norm_bias norm_weight place positive residual
running_mean running_var saved scalars spots x y
"""
_FILES = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool
stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar wchar wctype
alloca cpuid dirent dlfcn elf endian fcntl features getopt glob link malloc memory poll pthread regex sched
semaphore syslog termios unistd varargs windows
c dl gcc gcc_s gomp m mingw32 moldname msvcrt omp resolv rt stdcxx supc util
aux com1 com2 com3 com4 com5 com6 com7 com8 com9 con lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9 nul prn
"""
RESERVED = frozenset(_RESERVED.split())
"""Words of C and C++."""
TAKEN = frozenset(_TAKEN.split())
"""Names that compilers, C libraries and our own files have in places where a pack's name stands."""
FILES = frozenset(_FILES.split())
"""Names of headers, of libraries behind `-l` and of devices of Windows, in small letters: a pack brings NAME.h and
libNAME.a, and its folder is searched before the system's."""


def checked_name(name: object) -> str:
    """Return the name of a pack, or raise: it becomes a variable of C, and part of file names.

    >>> checked_name("mobilenet")
    'mobilenet'
    """
    where = "export: `name`"
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII):
        raise ArgumentError(
            f"{where} must be a C identifier: a letter, then letters, digits and underscores; got {shown(name)}."
        )
    if len(name) > LONGEST:
        raise ArgumentError(f"{where} must have at most {LONGEST} letters, got {len(name)}.")
    ours = name.lower().startswith(("cg_", "cgk_", "convgrad"))
    if ours or name in RESERVED or name in TAKEN or name.lower() in FILES:
        reason = "a word of C or C++" if name in RESERVED else "taken"
        raise ArgumentError(f"{where} must not be {reason}, got {name!r}; try {name}_pack.")
    return name


def function(pack: str, problem: Problem) -> str:
    """Name the function of a problem; problems with different descriptors have different names.

    >>> from convgrad._problem.text import read
    >>> function("net", read("depthwise_conv2d_backprop_filter 8x56x56x144 3x3x144x1 strides=2"))
    'net_depthwise_dw_f32_8x56x56x144_k3x3_o144_s2x2_same'
    """
    rows, cols = problem.rows, problem.cols
    words = [pack, "depthwise" if problem.depthwise else "conv", _SHORT[problem.kind]]
    words.append(problem.dtype.short)
    words.append(f"{problem.batch}x{rows.size}x{cols.size}x{problem.in_c}")
    words += [f"k{rows.window}x{cols.window}", f"o{problem.out_c}"]
    if not problem.depthwise and problem.groups != 1:
        words.append(f"g{problem.groups}")
    for letter, pair in (
        ("s", (rows.stride, cols.stride)),
        ("d", (rows.dilation, cols.dilation)),
    ):
        if pair != (1, 1):
            words.append(f"{letter}{pair[0]}x{pair[1]}")
    words.append(_padding(rows, cols))
    if problem.data_format != "NHWC":
        words.append(problem.data_format.lower())
    if problem.bias:
        usual = problem.bias == "output" or problem.kind is Kind.INPUT_GRADIENT
        words.append("bias" if usual else "bias_of_input")
    return "_".join(words)


def passes(call: Normalisation, sizes: bool = True) -> str:
    """Return the words that name batch norm: all that tells one line from another.

    >>> from convgrad._problem.norm.normalisation import read
    >>> passes(read("batch_norm_act.forward 8x196x32 NHWC float32 relu residual=before given=weight epsilon=1e-05"))
    'norm_forward_f32_8x196x32_relu_residual_before_weight_e1em05'
    """
    task = call.task
    words = ["norm", task.name]
    if sizes:
        words += [task.dtype.short, f"{task.images}x{task.pixels}x{task.channels}"]
    words.append(task.activation)
    if task.residual:
        words.append(f"residual_{task.residual}")
    words += call.given if call.given is not None else ()
    if not task.name.startswith("forward"):
        words += call.results
        words += ("of",) if call.given is not None else ()
    for letter, number, usual in (("e", call.epsilon, 1e-3), ("s", call.slope, 0.0)):
        if number != usual:
            spelled = repr(number).replace("-", "m").replace("+", "").replace(".", "p")
            words.append(f"{letter}{spelled}")
    if sizes and task.data_format != "NHWC":
        words.append(task.data_format.lower())
    return "_".join(words)


def _padding(rows: Axis, cols: Axis) -> str:
    pads = [axis[4:6] for axis in (rows, cols)]
    if pads == [geometry.solve(*axis[:4], "SAME")[4:6] for axis in (rows, cols)]:
        return "same"
    if pads == [(0, 0), (0, 0)]:
        return "valid"
    numbers = (str(cells).replace("-", "m") for pair in pads for cells in pair)
    return "p" + "_".join(numbers)


def argument_names(problem: Problem) -> tuple[str, str, str]:
    """Name the arguments of a problem's function: two operands and the result."""
    return {
        Kind.FORWARD: ("input", "filter", "output"),
        Kind.INPUT_GRADIENT: ("filter", "out_backprop", "input_backprop"),
        Kind.FILTER_GRADIENT: ("input", "out_backprop", "filter_backprop"),
    }[problem.kind]
