"""Nasty tokens and values, from which inputs are made."""

from __future__ import annotations

from typing import Any

LARGE = 0.004
"""Share of inputs that get a token of 100 KB to 1 MB."""

PLACE = "a huge token stands here"
"""Put in place of a value, and replaced once the rest is JSON."""

NASTY: list[bytes] = [
    *(
        b"\0",
        b"\\u0000",
        b"\\ud800",
        b"\\udfff",
        b"\xed\xa0\x80",
        b"\xff\xfe",
        b"\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
    ),
    *(b"1e999", b"-1e999", b"1e-999", b"NaN", b"Infinity", b"-0", b"00", b"1.", b".5", b"0x10", b"1_000", b"true"),
    *(b"9" * 400, b"9" * 5000, b"-9223372036854775809", b"18446744073709551616", b"null", b"[]", b"{}", b'""', b"[[]]"),
    *(b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n\n", b"\x85", "\u2028".encode(), "\u202e\u2066".encode(), b"\x1b[31m\x07"),
    *(
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"{{",
        b"}}",
        b"#",
        b"# ",
        b"## ",
        b"---\n",
        b"```",
        b"=\n",
    ),
    *(b"../../etc/passwd", b"<think>", b"</think>", b"<answer>", b"%s", b"\t", b" ", "ﬁ İ ß 🏳️‍🌈".encode(), b"a" * 300),
    *(b'{"id": 1, "id": 2}', b'"__proto__"', b"!!python/object", b"[tool.evaltrack", b"[run]", b"0 Q0 d 1 nan t"),
]
NESTS = [(b"[", b"]"), (b'{"a":', b"}")]
HUGE: list[bytes] = [
    *(b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000, b"x" * 1_000_000, b" " * 1_000_000),
    *(b"> " * 50_000, b"<think>" * 50_000, b"\n" * 200_000, b"1" * 200_000, b"*a_ `" * 50_000, b'"\\u0041' * 50_000),
    *(
        b"a = {b = " * 50_000,
        b"{" * 200_000,
        b"a." * 100_000,
        "\u0301".encode() * 200_000,
        b"sk-" * 200_000,
        b"\\" * 200_000,
    ),
]
HUGE += [opened * depth + closed * depth for depth in (105, 150, 196, 250, 1100) for opened, closed in NESTS]
VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        10**18,
        2**63,
        2**64,
        10**400,
        0.5,
        -0.0,
        1e308,
        float("inf"),
        float("nan"),
        "",
        " ",
    ),
    *(
        "x",
        "\0",
        "\ud800",
        "\u202eabc",
        "a\r\nb",
        "1",
        "1e999",
        "NaN",
        "HF1",
        "x" * 5000,
        [],
        {},
        [[]],
        [None],
        {"": None},
    ),
    *(
        [1, "a"],
        {"a": {"b": [1]}},
        ["a", "a"],
        "90% sure",
        "none",
        [{}],
        [""],
        [{"chunk_id": 1}],
        {"name": "t"},
        "\ufeff",
    ),
]
