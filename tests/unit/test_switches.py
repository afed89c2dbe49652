"""Values in the environment are read, or ignored with a warning."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import convgrad
from convgrad._base import config


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setattr(config, "_strangers_named", False)
    return monkeypatch.setenv


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("target", "sse2", "sse2"),
        ("vector_bits", "256", 256),
        ("disk_cache", "0", False),
        ("disk_cache", "on", True),
        ("cache_bytes", "1000", 1000),
        ("cache_bytes", "2k", 2048),
        ("cache_bytes", "1G", 1 << 30),
        ("cache_dir", "/x", "/x"),
        ("vector_bits", " ", None),
        ("cpu_caches", "48K, 2m,100000000", (48 << 10, 2 << 20, 100_000_000)),
        ("cpu_caches", "1k,1k,1024g", (1 << 10, 1 << 10, 1 << 40)),
        ("cpu_caches", "ROW", (None, None, None)),
    ],
)
def test_readable(environment, name, text, value):
    environment(config.SWITCHES[name].variable, text)
    assert config.get(name) == value


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("vector_bits", "100", "one of 128, 256, 512"),
        ("disk_cache", "maybe", "0 or 1"),
        ("cache_bytes", "lots", "number of bytes"),
        ("cache_bytes", "-1", "number of bytes"),
        *(
            ("cpu_caches", text, "three levels of cache, such as 32K,1M,32M")
            for text in (
                "32K",
                "32K,1M",
                "32K,1M,",
                "32K,1M,32M,64M",
                "1M,32K,32M",
                "K,K,K",
                "none",
            )
        ),
        ("cpu_caches", "512,1M,32M", "from 1K to 1024G"),
        ("cpu_caches", "32K,1M,2000G", "from 1K to 1024G"),
    ],
)
def test_unreadable(environment, name, text, rule):
    environment(config.SWITCHES[name].variable, text)
    with pytest.warns(RuntimeWarning, match=rule):
        assert config.get(name) == config.SWITCHES[name].default


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("CONVGRAD_THREADS", "CONVGRAD_NUM_THREADS"),
        ("CONVGRAD_WINOGRAD_", "CONVGRAD_WINOGRAD"),
        ("CONVGRAD_CACHE", "CONVGRAD_CACHE_DIR"),
        ("convgrad_num_threads", "CONVGRAD_NUM_THREADS"),
        ("CONVGRAD_", "CONVGRAD_"),
        ("CONVGRAD_\x1b[31m\n" + "A" * 9999, "CONVGRAD_"),
    ],
    ids=["part", "typo", "short", "case", "nothing", "hostile"],
)
@pytest.mark.skipif(os.name == "nt", reason="names of variables have no case there")
def test_unknown_names(environment, name, nearest):
    environment(name, "1")
    with pytest.warns(
        RuntimeWarning, match=f"is unknown and ignored; the nearest .* {nearest}"
    ) as all:
        config.get("winograd")
    (message,) = (str(each.message) for each in all)
    assert repr(name)[:90] in message and message.isprintable() and len(message) < 400


def test_unknown_names_are_told_once_and_point_at_the_caller(environment):
    environment("CONVGRAD_THREADS", "1")
    with pytest.warns(RuntimeWarning) as record:
        config.get("winograd")
    assert [each.filename for each in record] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.get("kernels")
        config.get("winograd")


def test_names_read_by_builds_and_tests_are_no_strangers(environment):
    for name in ("CONVGRAD_STUDIO", "CONVGRAD_REQUIRE_BROWSER", "CONVGRAD_CHROMIUM"):
        environment(name, "skip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.get("winograd")


def test_very_many_unknown_names_are_counted(environment):
    for number in range(100):
        environment(f"CONVGRAD_{number}", "1")
    with pytest.warns(RuntimeWarning) as record:
        config.get("winograd")
    assert len(record) == 9 and "92 more" in str(record[-1].message)


def test_code_that_shows_the_warning_may_ask_again(environment, monkeypatch):
    environment("CONVGRAD_THREADS", "1")
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(
            warnings, "showwarning", lambda *_, **__: seen.append(config.get("winograd"))
        )
        config.get("kernels")
    assert seen == ["auto"]


def test_known_names_and_those_of_others_are_not_told(environment):
    for row in config.SWITCHES.values():
        environment(row.variable, "")
    environment("CONVGRAD", "1")
    environment("MY_CONVGRAD_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.get("winograd")


def test_an_import_looks_at_no_variable():
    """It costs nothing, and a program may still change its environment."""
    program = """
import os, sys
before = set(sys.modules)
import convgrad
assert not convgrad._base.config._strangers_named and "difflib" not in set(sys.modules) - before
del os.environ["CONVGRAD_THREADS"]
convgrad.get_num_threads()
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={
            **os.environ,
            "CONVGRAD_THREADS": "1",
            "PYTHONPATH": str(Path(convgrad.__file__).parent.parent),
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
