"""Values in the environment are read, or ignored with a warning."""

from __future__ import annotations

import pytest

from convgrad import _config


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setattr(_config, "_environment", {})
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
    ],
)
def test_readable(environment, name, text, value):
    environment(_config.SWITCHES[name].variable, text)
    assert _config.get(name) == value


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("vector_bits", "100", "one of 128, 256, 512"),
        ("disk_cache", "maybe", "0 or 1"),
        ("cache_bytes", "lots", "number of bytes"),
        ("cache_bytes", "-1", "number of bytes"),
    ],
)
def test_unreadable(environment, name, text, rule):
    environment(_config.SWITCHES[name].variable, text)
    with pytest.warns(RuntimeWarning, match=rule):
        assert _config.get(name) == _config.SWITCHES[name].default
