"""Builds self-contained HTML pages with a content security policy, and escapes untrusted text in them."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evaltrack.records.base import cut
from evaltrack.records.json_text import finite_json
from evaltrack.report.html.plots import axis_place, axis_reach, moved_name
from evaltrack.report.templates import loaded

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and new line, marks that reorder text, and halves of surrogate pairs."""


def shown(text: str | None, limit: int) -> str:
    """Return at most `limit` characters of the text. Harmful characters become replacement characters."""
    if not text:
        return ""
    clipped = cut(text, limit)
    if clipped.isprintable():  # a fast path for most texts: harmful characters are not printable
        return clipped
    return _HARMFUL.sub("\N{REPLACEMENT CHARACTER}", clipped.replace("\r\n", "\n"))


def with_code(text: str) -> Markup:
    """Return a sentence of evaltrack as escaped HTML, with text between backticks as code, also if it is cut off."""
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`\n]+)(?:`|(?<=…)$)", text)
    pieces = (Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts))
    return Markup("").join(pieces)


def safe_link(url: str | None) -> str | None:
    """Return the link if it leads to the web or to a file of this machine, else None."""
    if not url or len(url) > 2000 or _HARMFUL.search(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme == "file":
        return url if not parts.netloc and re.match(r"/[^/\\]", parts.path) else None
    return url if parts.scheme in ("http", "https") and parts.netloc else None


@cache
def static(name: str) -> str:
    """Return a style sheet or script of this folder."""
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


STYLES = ("colours.css", "report.css", "comparison.css", "detail.css")
"""The parts of a page's style sheet in order. All pages share `colours.css` and `report.css`."""

SCRIPTS = (
    *("common.js", "elements.js", "filters.js", "list.js", "markdown.js", "sentences.js", "answers.js", "judges.js"),
    *("sources.js", "detail.js", "copying.js", "export.js", "address.js", "start.js"),
)
"""The parts of the script of pages with questions in order. One function encloses them."""


@cache
def style_sheet() -> str:
    """Return the style sheet of a page."""
    return "".join(map(static, STYLES))


@cache
def questions_script() -> str:
    """Return the script of a page with questions."""
    text = "".join(map(static, SCRIPTS)).replace("\nexport ", "\n")  # no module: a page opened as a file loads none
    return f'"use strict";\n(() => {{\n{text}}})();\n'


@cache
def templates() -> Environment:
    """Return the templates of this folder. All values are escaped; `foreign` bounds and cleans a text.

    `with_code` shows names in backticks as code.
    """
    environment = loaded(__package__, autoescape=True)
    environment.filters |= {"foreign": shown, "with_code": with_code, "axis_place": axis_place}
    environment.globals |= {"axis_reach": axis_reach, "moved_name": moved_name, "safe_link": safe_link}
    return environment


def render(template: str, **fields: Any) -> str:
    """Return the rendered template."""
    return templates().get_template(template).render(**fields)


def document(title: str, body: str, *, script: str = "", data: str = "") -> str:
    """Return a whole HTML document around `body`, which is HTML.

    Args:
        title: The title of the window; escaped here.
        body: The content. Its foreign text must already be escaped.
        script: An additional script that may run. The script of the light and dark switch is always included.
        data: JSON from `script_safe`, which the script reads with ``JSON.parse`` from the element `data`.
    """
    from markupsafe import Markup

    style, scripts = style_sheet(), [static("theme.js"), script] if script else []
    policy = {
        "default-src": "'none'",
        "style-src": _hashed(style),
        "script-src": " ".join(map(_hashed, scripts)) or "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    rules = "; ".join(f"{name} {value}" for name, value in policy.items())
    parts = {"style": style, "theme": "".join(scripts[:1]), "script": script, "data": data, "body": body}
    own = {name: Markup(text) for name, text in parts.items()}  # noqa: S704 - ours or escaped # nosec B704
    return render("document.html", title=title, rules=rules, **own)


def script_safe(data: Any) -> str:
    """Return JSON that cannot end its script element, whatever text it holds.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    text = finite_json(data)
    for character, escaped in _ESCAPED:
        text = text.replace(character, escaped)
    return text


_ESCAPED = tuple((character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029")


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
