"""Keys in 100 common forms, made at run time: none of them stands in a file, and none was ever issued.

A line of `data/key_forms.tsv` has a name, the text around the key, and the form of the key: `{20 HEX}` stands for 20 of
these characters, `{20}` for letters and digits.
"""

from __future__ import annotations

import random
import re
from base64 import b64encode
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

MIXED = ascii_letters + digits
CHARACTERS = {
    "": MIXED,
    "LOWER": ascii_lowercase + digits,
    "UPPER": ascii_uppercase + digits,
    "LETTERS": ascii_letters,
    "DIGITS": digits,
    "HEX": "0123456789abcdef",
    "URL": MIXED + "-_",
    "BASE32": ascii_uppercase + "234567",
    "BASE64": MIXED + "+/",
    "BECH32": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}


def keys(seed: int = 7) -> dict[str, tuple[str, str]]:
    """Each form by its name: the text it stands in, and the part of it that must not be seen."""
    rng = random.Random(seed)

    def some(count: int, kind: str = "") -> str:
        letters = CHARACTERS[kind]
        made = "".join(rng.choices(letters, k=count - 2))
        return made[: count // 2] + letters[-1] + made[count // 2 :] + letters[0]  # one of each end: digits too

    def filled(part: re.Match[str]) -> str:
        form, _, kind = part[1].partition(" ")
        if form == "JWT":
            parts = [b64encode(b'{"alg":"HS256"}'), b64encode(b'{"sub":"' + some(9).encode() + b'"}')]
            return ".".join([*(part.decode().rstrip("=") for part in parts), some(43)])
        if form == "PEM":
            body = "\n".join(some(64, "BASE64") for _ in range(4))
            return f"-----BEGIN {kind} PRIVATE " + f"KEY-----\n{body}\n-----END {kind} PRIVATE " + "KEY-----"
        return some(int(form), kind)

    made = {}
    for line in (Path(__file__).parent / "data/key_forms.tsv").read_text().splitlines():
        name, text, form = line.split("\t")
        secret = re.sub(r"\{([^}]+)\}", filled, form)
        made[name] = (text.replace("{}", secret), secret)
    return made
