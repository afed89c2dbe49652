"""Files by which other builds find a pack: a package for CMake and a file for pkg-config. Both may be moved.

NAME.c is compiled by whoever uses the pack: it is text, so it needs no compiler here, and the flags are the user's.
"""

from __future__ import annotations

from ..._base.version import __version__
from .pack import Pack


def files(pack: Pack) -> dict[str, str]:
    """Return the files' contents by name."""
    return {
        f"{pack.name}Config.cmake": _config(pack),
        f"{pack.name}ConfigVersion.cmake": _config_version(),
        f"{pack.name}.pc": _pkg_config(pack),
    }


def _config(pack: Pack) -> str:
    name = pack.name
    return f"""\
# find_package({name} CONFIG) with this folder in CMAKE_PREFIX_PATH or {name}_DIR, then
# target_link_libraries(program PRIVATE {name}::{name}). For {pack.label}.
# Written by convgrad {__version__}; do not edit.
if(TARGET {name}::{name})
  return()
endif()

get_property(_{name}_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST _{name}_languages)
  # {name}.c is C++ too.
  set_source_files_properties("${{CMAKE_CURRENT_LIST_DIR}}/{name}.c" PROPERTIES LANGUAGE CXX)
endif()
unset(_{name}_languages)

add_library(convgrad_pack_{name} STATIC "${{CMAKE_CURRENT_LIST_DIR}}/{name}.c")
set_target_properties(convgrad_pack_{name} PROPERTIES
  POSITION_INDEPENDENT_CODE ON
  C_STANDARD 99
  CXX_STANDARD 17)
target_include_directories(convgrad_pack_{name} PUBLIC "${{CMAKE_CURRENT_LIST_DIR}}")
target_link_libraries(convgrad_pack_{name} PUBLIC "${{CMAKE_CURRENT_LIST_DIR}}/lib{name}.a")
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang" OR CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  # A program linked with --gc-sections (-dead_strip) then keeps only the problems it names.
  target_compile_options(convgrad_pack_{name} PRIVATE -ffunction-sections -fdata-sections)
endif()
add_library({name}::{name} ALIAS convgrad_pack_{name})
"""


def _config_version() -> str:
    return f"""\
set(PACKAGE_VERSION "{_numbers()}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def _numbers() -> str:
    """Return the version's numbers: CMake compares nothing else."""
    return ".".join(word for word in __version__.split("+")[0].split(".") if word.isdigit())


def _pkg_config(pack: Pack) -> str:
    name = pack.name
    return f"""\
# cc program.c $(pkg-config --variable=source {name}) $(pkg-config --cflags --libs {name})
# Written by convgrad {__version__}; do not edit.
prefix=${{pcfiledir}}
source=${{prefix}}/{name}.c

Name: {name}
Description: {len(pack.entries)} problems for {pack.label}
Version: {_numbers()}
Cflags: -I${{prefix}}
Libs: -L${{prefix}} -l{name}
"""
