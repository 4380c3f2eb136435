"""Who gets an answer of the console: who has the token, calls it by its name, and asks from its own page."""

from itertools import product

import pytest

from dagkit.console.access import HEADERS

PATHS = [
    "/",
    "/static/main.js",
    "/static/none.js",
    "/api/v1/overview",
    "/api/v1/events",
    "/api/v1/stop",
    "/api/v1/tap",
    "/none",
    "//",
]


@pytest.mark.parametrize(("path", "method"), list(product(PATHS, ["GET", "HEAD", "POST", "OPTIONS", "PUT"])))
def test_no_request_without_the_token_is_answered(console, path, method):
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {console.token}x"}, {"Cookie": "a"}):
        answer = console.request(path, headers, method=method)
        assert answer.status == 401
        if method != "HEAD":
            assert set(answer.document) == {"problem", "help"}


@pytest.mark.parametrize("path", ["/static/main.js", "/api/v1/overview", "/none"])
def test_the_token_in_an_address_opens_the_page_only(console, path):
    assert console.request(f"{path}?token={console.token}", {}).status == 401
    for token in ("", "a", f"{console.token}x"):
        answer = console.request(f"/?token={token}", {})
        assert (answer.status, "set-cookie" in answer.headers) == (401, False)


def test_the_address_with_the_token_sets_a_cookie_that_only_this_server_reads(console):
    page = console.request(f"/?token={console.token}", {})
    cookie, *attributes = page.headers["set-cookie"].split("; ")
    assert page.status == 200
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=7776000"}
    assert cookie.partition("=")[0] == f"dagkit_console_{console.address.rpartition(':')[2]}"
    assert console.request("/api/v1/overview", {"Cookie": cookie}).status == 200
    assert "set-cookie" not in console.request("/", {"Cookie": cookie}).headers


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:80", "127.0.0.1.attacker.example", "", "["])
def test_a_request_under_another_name_is_refused(console, host):
    answer = console.request("/api/v1/overview", {"Authorization": f"Bearer {console.token}", "Host": host})
    assert answer.status in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1:1", "[::1]:9000"])
def test_a_request_through_a_tunnel_keeps_its_own_port(console, host):
    assert console.request("/", {"Authorization": f"Bearer {console.token}", "Host": host}).status == 200


ORIGINS = [{"Origin": origin} for origin in ("http://attacker.example", "null", "http://127.0.0.1:1")]


@pytest.mark.parametrize("headers", [*ORIGINS, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])
def test_a_page_of_another_origin_gets_no_answer_although_the_browser_sends_the_cookie(console, headers):
    cookie = console.request(f"/?token={console.token}", {}).headers["set-cookie"].partition(";")[0]
    for method in ("GET", "POST"):
        assert console.request("/api/v1/overview", {"Cookie": cookie, **headers}, method=method).status == 403


def test_a_change_needs_the_origin_of_the_page_or_a_script_with_the_token(console):
    cookie = console.request(f"/?token={console.token}", {}).headers["set-cookie"].partition(";")[0]
    own = {"Cookie": cookie, "Origin": f"http://{console.address}"}
    for headers, status in (({"Cookie": cookie}, 403), (own, 405), (None, 405)):
        assert console.request("/api/v1/overview", headers, method="POST").status == status
    assert console.request("/api/v1/stop", method="POST").status == 403, "this console does not allow control"


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/v1/overview", "/none"])
def test_every_answer_has_the_policy_and_is_kept_nowhere(console, path):
    for headers in (None, {}):
        answer = console.request(path, headers)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["content-security-policy"]
    assert "server" not in console.request(path).headers
