"""No other site can press our buttons: a token that only our own pages know, and where the browser says it comes from.

The token is a random cookie that no script reads and no other site's request carries, and stands in a hidden field of
the form; both must agree (double submit, as OWASP describes it).
"""

from __future__ import annotations

import hmac
import re
import secrets
from urllib.parse import urlsplit

from flask import Request, Response

COOKIE, FIELD = "evaltrack_csrf", "csrf"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def token_of(request: Request) -> str:
    """The token of this browser, a new one where it has none."""
    cookie = request.cookies.get(COOKIE, "")
    return cookie if _TOKEN.fullmatch(cookie) else secrets.token_urlsafe(32)


def keep_token(request: Request, response: Response, token: str) -> None:
    """Let the browser keep the token until it is closed."""
    response.set_cookie(COOKIE, token, path="/", httponly=True, samesite="Strict", secure=request.is_secure)


def refusal(request: Request) -> str | None:
    """Why a form is not taken, or None where it comes from one of our pages."""
    if not is_from_here(request):
        return "the form was sent from another site"
    cookie, field = request.cookies.get(COOKIE, ""), request.form.get(FIELD, "")
    if not _TOKEN.fullmatch(cookie) or not hmac.compare_digest(cookie.encode(), field.encode()):
        return "the form carries no valid token: cookies are switched off, or the page was opened in another browser"
    return None


def is_from_here(request: Request) -> bool:
    """What the browser says of where the form stood.

    `Sec-Fetch-Site` cannot be forged by a page, and holds behind a proxy that renames the host; browsers leave it out
    on plain HTTP, where `Origin` must be the host that was asked. A client that sends neither is no browser.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.host.lower()
