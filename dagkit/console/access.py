"""Access to the console: the token, the names of the host, and the origins of requests.

Every request needs the token: in the cookie that the first one sets, or as `Authorization: Bearer TOKEN`. The first
request of a browser has it in its address, `/?token=TOKEN`, which the page then removes from the address bar.
"""

from collections.abc import Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from secrets import compare_digest
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy: only files and answers of this server, and no code in the page itself."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""The headers of every response."""

READING = frozenset({"GET", "HEAD"})
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})

_COOKIE = "Path=/; HttpOnly; SameSite=Strict"
_COOKIE_SECONDS = 90 * 86_400
"""How long a bookmark of the page works without the token in its address."""
_NO_TOKEN = "open the address that dagkit printed: it contains the token"  # noqa: S105 - it is a sentence


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request gets no answer."""

    status: int
    problem: str
    help: str


class Access:
    """An ASGI application that passes on permitted requests, and refuses all others."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        port: int,
        names: frozenset[str] = LOCAL_NAMES,
        opened: Callable[[], object] = lambda: None,
    ) -> None:
        """Take the names under which the server may be called: requests under others come by DNS rebinding.

        `opened` is called in a thread of its own when a browser opens the page.
        """
        self._app = app
        self._opened = opened
        self._token = token
        self._names = names
        self._cookie = f"dagkit_console_{port}"
        """Browsers send cookies of a host to all its ports, so the name contains the port."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no WebSockets: the server refuses what is not answered
            return
        headers = Headers(scope=scope)
        # Only the page takes the token from the address: the browser then has it in a cookie.
        by_address = self._is_token(QueryParams(scope["query_string"]).get("token")) and scope["path"] == "/"
        refusal = self._refusal(scope["method"], headers, by_address=by_address)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    added[name] = value
                if by_address and refusal is None:
                    added["set-cookie"] = f"{self._cookie}={self._token}; Max-Age={_COOKIE_SECONDS}; {_COOKIE}"
            await send(message)

        if refusal is None and scope["path"] == "/":
            # It writes a file, and the loop that serves all requests must not wait for a disk.
            await run_in_threadpool(self._opened)
        await (self._app if refusal is None else _refused(refusal))(scope, receive, sending)

    def _refusal(self, method: str, headers: Headers, *, by_address: bool) -> Refusal | None:
        if not (by_address or self._is_token(self._token_in(headers))):
            return Refusal(401, "the request has no valid token", _NO_TOKEN)
        host = headers.get("host", "")
        if _name_in(host) not in self._names:
            return Refusal(403, f"this server is not called {host!r}", f"call it {' or '.join(sorted(self._names))}")
        if not _is_own(headers, host, needed=method not in READING):
            return Refusal(403, "the request comes from another page", "use the console's own page, or a script")
        return None

    def _is_token(self, token: str | None) -> bool:
        # In constant time, so that no answer shows how much of a guess is right. As bytes, since `compare_digest`
        # refuses texts that are not ASCII, which a request may have.
        return token is not None and compare_digest(token.encode(), self._token.encode())

    def _token_in(self, headers: Headers) -> str | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return token.strip()
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return None
        return None if cookie is None else cookie.value


def _is_own(headers: Headers, host: str, *, needed: bool) -> bool:
    """Whether a request comes from the console's own page, or from no page.

    Pages on other ports of this machine are of the same site, so their requests carry the cookie. A request that
    changes something needs an Origin, unless a script sends it, with the token in a header that no page can set.
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return not needed or "authorization" in headers
    return origin == f"http://{host}"


def _name_in(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _refused(refusal: Refusal) -> ASGIApp:
    body = {"problem": refusal.problem, "help": refusal.help}
    return JSONResponse(body, status_code=refusal.status)
