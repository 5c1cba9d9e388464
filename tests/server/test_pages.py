"""The pages under `/evaltrack`, on real MLflow servers with real runs."""

from __future__ import annotations

import json
import re
import sqlite3
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import mlflow
import pytest
from werkzeug.security import generate_password_hash

from evaltrack import run_eval
from evaltrack.tracking.baselines import get_baseline
from evaltrack.tracking.store import connect
from tests.conftest import few_questions
from tests.mlflow_server import MlflowServer, copied_store, served_store

QUESTIONS = 12
"""Of the travel set; how many there are shows on no page but as this number."""
HOSTILE = "<script>alert(1)</script>"
ADMIN, PASSWORD = "admin", "a-long-password-1"
AUTH = {"MLFLOW_FLASK_SERVER_SECRET_KEY": "secret", "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD}


@dataclass
class Answer:
    """What a server said."""

    status: int
    headers: dict[str, str]
    text: str


class _Stay(urllib.request.HTTPRedirectHandler):
    """Redirects are looked at, not followed."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow nothing."""


@dataclass
class Browser:
    """Asks like a browser: it keeps cookies, and signs in where a user is named."""

    base: str
    user: tuple[str, str] | None = None
    jar: CookieJar = field(default_factory=CookieJar)

    def ask(
        self, path: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None, method: str = ""
    ) -> Answer:
        """One request; `path` starts after the server's address."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar), _Stay)
        body = urlencode(form).encode() if form is not None else None
        asked = urllib.request.Request(self.base + path, body, headers or {}, method=method or None)
        if self.user:
            asked.add_header("Authorization", f"Basic {b64encode(':'.join(self.user).encode()).decode()}")
        try:
            with opener.open(asked, timeout=60) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read().decode())

    def get(self, page: str, **query: str) -> Answer:
        return self.ask(f"/evaltrack/{page}" + (f"?{urlencode(query)}" if query else ""))

    def token(self, experiment_id: str, golden: str) -> str:
        found = re.search(
            r'name="csrf" value="([^"]+)"', self.get("golden", experiment_id=experiment_id, golden=golden).text
        )
        assert found
        return found[1]

    def promote(self, headers: dict[str, str] | None = None, **form: str) -> Answer:
        return self.ask("/evaltrack/baseline", form, headers)


def served_page(folder: Path, database: Path) -> AbstractContextManager[str]:
    """The address of a server with evaltrack's page, on a copy of an empty database."""
    return served_store(folder, database, "--app-name", "evaltrack")


@dataclass(frozen=True)
class Servers:
    """Addresses of a server of each kind, and the folder that theirs are in."""

    open: str
    auth: str
    folder: Path


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Servers]:
    """One open server under a static prefix, one with basic authentication; both start at once."""
    folder = tmp_path_factory.mktemp("servers")
    auth_settings = _auth_settings(folder)
    env = {**AUTH, "MLFLOW_AUTH_CONFIG_PATH": auth_settings}
    for name in ("open", "auth"):
        copied_store(folder / name, empty_database)
    with (
        MlflowServer(folder / "open", "--app-name", "evaltrack", "--static-prefix", "/team") as open_server,
        MlflowServer(folder / "auth", "--app-name", "evaltrack-basic-auth", env=env) as auth_server,
    ):
        open_server.wait_until_ready("/team/health")
        auth_server.wait_until_ready()
        _hash_cheaply(folder)
        yield Servers(f"{open_server.address}/team", auth_server.address, folder)


def _hash_cheaply(folder: Path) -> None:
    """Of each user the same password in a hash of one round: every request is checked, and no check takes 0.1 s."""
    cheap = generate_password_hash(PASSWORD, "pbkdf2:sha256:1")
    with closing(sqlite3.connect(folder / "auth.db", timeout=30)) as users, users:
        users.execute("update users set password_hash = ?", [cheap])


def _auth_settings(folder: Path) -> str:
    """Nobody may see anything that was not granted; users are kept in the test's folder."""
    path = folder / "auth.ini"
    path.write_text(
        f"[mlflow]\ndefault_permission = NO_PERMISSIONS\ndatabase_uri = sqlite:///{folder}/auth.db\n"
        f"admin_username = {ADMIN}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    return str(path)


@dataclass(frozen=True)
class Runs:
    """What stands in the open server."""

    experiment: str
    k3: str
    k5: str
    small: str
    foreign: str
    other_experiment: str
    earlier_k5: str
    broke: str


def _finds(second: str) -> Callable[[str, int], list[str]]:
    return lambda _question, _k: [second, "1"]


@pytest.fixture(scope="module")
def runs(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The travel set twice at k=3 and k=5, a run and a golden set with hostile names."""
    options: dict[str, Any] = {"tracking_uri": servers.open, "traces": "off", "experiment": HOSTILE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALTRACK_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        patch.setenv("EVALTRACK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        travel = few_questions(tmp_path_factory.mktemp("travel"), QUESTIONS)
        _, earlier = (run_eval(travel, k=k, **options) for k in (3, 5))  # an earlier run of each kind
        k3 = run_eval(travel, k=3, run_name=HOSTILE, **options)
        k5 = run_eval(travel, k=5, **options)
        few = tmp_path_factory.mktemp("golden") / "<script>few.jsonl"
        few.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
        small = run_eval(few, target=lambda question, k: ["a"], **options)
        foreign = run_eval(few, target=lambda question, k: ["a"], **{**options, "experiment": "other"})
        pair = tmp_path_factory.mktemp("pair") / "pair.jsonl"
        pair.write_text("".join(f'{{"id": {n}, "question": "{n}?", "expected_chunks": ["{n}"]}}\n' for n in (1, 2)))
        _, broke = (run_eval(pair, target=_finds(to), **options) for to in ("2", "x"))
    ids = (k3.experiment_id, k3.run_id, k5.run_id, small.run_id, foreign.run_id, foreign.experiment_id)
    return Runs(*ids, earlier.run_id, broke.run_id)


@pytest.fixture
def browser(servers: Servers, runs: Runs) -> Browser:
    """A browser at the open server, which lies under `/team`."""
    return Browser(servers.open)


def test_mlflow_itself_is_served_as_ever(browser: Browser) -> None:
    assert '<div id="root"' in browser.ask("/").text
    assert browser.ask("/health").text == "OK"
    found = browser.ask("/api/2.0/mlflow/experiments/search?max_results=5")
    assert {each["name"] for each in json.loads(found.text)["experiments"]} >= {"Default", "other", HOSTILE}


def test_the_first_page_lists_golden_sets_by_experiment(browser: Browser, runs: Runs) -> None:
    """With the newest run, its means as MLflow holds them, and a plot; links are relative."""
    page = browser.get("").text
    metrics = mlflow.MlflowClient(browser.base).get_run(runs.k5).data.metrics
    assert f"golden?experiment_id={runs.experiment}&amp;golden=travel" in page
    assert f'data-sort="{metrics["recall_at_k"]}">{metrics["recall_at_k"]:.3f}' in page
    assert f'data-sort="{metrics["mrr"]}">{metrics["mrr"]:.3f}' in page
    assert page.index("<h1>Golden sets") < page.index("not compared") < page.index("golden=travel")
    assert '<svg class="spark"' in page
    assert f'href="../#/experiments/{runs.experiment}"' in page
    assert not re.search(r'(?:href|action|src)="/', page)
    entrance = browser.ask("/evaltrack")
    assert (entrance.status, entrance.headers["location"]) == (308, "evaltrack/")


def test_a_golden_set_has_its_history_and_forms(browser: Browser, runs: Runs) -> None:
    """Each run with its figures, the form for drift with a label on each control, the button."""
    page = browser.get("golden", experiment_id=runs.experiment, golden="travel").text
    assert page.index(runs.k5) < page.index(runs.k3)
    assert page.count('<form method="post" action="baseline">') == 4
    assert "<label>Candidate <select" in page
    assert "<label>Against <select" in page
    assert "Reason (optional) <input" in page
    assert page.count(" style=") == page.count(" onclick=") == 0


def test_foreign_names_are_shown_as_text(browser: Browser, runs: Runs) -> None:
    first = browser.get("").text
    few = browser.get("golden", experiment_id=runs.experiment, golden="<script>few").text
    travel = browser.get("golden", experiment_id=runs.experiment, golden="travel").text
    missing = browser.get("golden", experiment_id=runs.experiment, golden=HOSTILE)
    for page in (first, few, travel, missing.text):
        assert page.count("<script>") == 2  # our own
        assert unescape(page).count("<script>") > 2
    assert missing.status == 404


def test_every_answer_carries_the_policy(browser: Browser, runs: Runs) -> None:
    """Also errors; forms keep their Origin, or browsers would hide where they come from."""
    for answer in (browser.get(""), browser.get("golden"), browser.promote()):
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert '<meta name="referrer" content="same-origin">' in answer.text


def test_drift_is_computed_when_it_is_opened(browser: Browser, runs: Runs) -> None:
    page = browser.get("drift", experiment_id=runs.experiment, candidate=runs.k5, baseline=runs.earlier_k5)
    assert page.status == 200, page.text[-2000:]
    assert "<script>alert" not in page.text
    assert "evaltrack.compare.verdict" not in mlflow.MlflowClient(browser.base).get_run(runs.k5).data.tags


def test_drift_between_runs_that_cannot_be_compared_says_so(browser: Browser, runs: Runs) -> None:
    """Another cut-off, or one run twice: a page with status 409, the reason, links to go on and no option."""
    page = browser.get("drift", experiment_id=runs.experiment, candidate=runs.k3, baseline=runs.k5)
    assert page.status == 409
    assert "Traceback" not in page.text
    assert "or set a new baseline" in page.text
    assert "--ignore" not in page.text
    golden = re.search(r'href="(golden\?[^"]+)">Runs and baseline of travel', page.text)
    assert golden
    assert browser.get(unescape(golden[1])).status == 200
    assert f"/runs/{runs.k5}" in page.text
    itself = browser.get("drift", experiment_id=runs.experiment, candidate=runs.k5, baseline=runs.k5)
    assert (itself.status, "would be compared with itself" in itself.text) == (409, True)


def test_runs_of_another_experiment_are_not_there(browser: Browser, runs: Runs) -> None:
    """On every page of a run: what was checked is the experiment that the address names."""
    mine = {"experiment_id": runs.experiment}
    token = browser.token(runs.experiment, "travel")
    answers = [
        browser.get("run", **mine, run_id=runs.foreign),
        browser.get("drift", **mine, candidate=runs.foreign, baseline=runs.k5),
        browser.get("drift", **mine, candidate=runs.k5, baseline=runs.foreign),
        browser.promote(csrf=token, **mine, run_id=runs.foreign),
        browser.get("run", **mine, run_id="0" * 32),
        browser.get("golden", experiment_id="987654", golden="travel"),
    ]
    assert [answer.status for answer in answers] == [404] * 6
    assert get_baseline(connect(browser.base), runs.other_experiment, "<script>few") is None


def test_incomplete_addresses_are_explained(browser: Browser, runs: Runs) -> None:
    """Ids that are none, `007` among them, which MLflow would read as 7."""
    paths = ["golden", "golden?experiment_id=0", "golden?experiment_id=00&golden=a", "run?experiment_id=0&run_id=../x"]
    paths += [
        "golden?experiment_id=x&golden=a",
        "golden?experiment_id=0&golden=a&before=x",
        "golden?experiment_id=0&golden=it's",
    ]
    for path in paths:
        answer = browser.get(path)
        assert (answer.status, "This address is not complete" in answer.text) == (400, True), path


def test_the_page_of_a_run_is_made_when_it_is_opened(browser: Browser, runs: Runs) -> None:
    """From its rows: what somebody put in place of its report is not served here, where scripts could act for us."""
    mlflow.MlflowClient(browser.base).log_text(runs.k3, "<script>window.pwned = 1</script>", "report.html")
    answer = browser.get("run", experiment_id=runs.experiment, run_id=runs.k3)
    assert answer.status == 200, answer.text[-2000:]
    assert f"of {QUESTIONS} questions passed" in answer.text
    assert "pwned" not in answer.text


def test_questions_stand_over_runs(browser: Browser, runs: Runs) -> None:
    """Those that failed, each with a sign for each run that passed by the same rules, and a link to its page."""
    page = browser.get("matrix", experiment_id=runs.experiment, golden="pair")
    assert page.status == 200, page.text[-2000:]
    assert "questions over 2 runs" in page.text
    upto = browser.get("matrix", experiment_id=runs.experiment, golden="travel", run_id=runs.earlier_k5)
    assert "questions over 1 run<" in upto.text
    links = re.findall(r'href="(question\?[^"]+)"', page.text)
    assert links
    question = browser.get(unescape(links[0]))
    assert question.status == 200, question.text[-2000:]
    assert question.text.count('<span class="sign f"') == 2  # of the newest run, in the strip and in the table
    assert question.text.count('<span class="sign p"') == 2
    assert "fails since" in question.text
    assert "Recall@5" in question.text
    assert "<form" in question.text
    assert browser.get("matrix", experiment_id=runs.experiment, golden="gone").status == 404
    assert browser.get("matrix", experiment_id=runs.experiment).status == 400


def test_a_question_that_fails_is_accepted_with_a_reason(browser: Browser, runs: Runs) -> None:
    """By who is signed in, through the same gates as on the command line; its page then says so."""
    page = browser.get("matrix", experiment_id=runs.experiment, golden="pair").text
    link = unescape(re.findall(r'href="(question\?[^"]+)"', page)[0])
    key = parse_qs(urlsplit(link).query)["id"][0]
    shown = browser.get(link).text
    token = re.search(r'name="csrf" value="([^"]+)"', shown)
    assert token
    form = {"csrf": token[1], "experiment_id": runs.experiment, "run_id": runs.broke, "id": key}
    no_reason = browser.ask("/evaltrack/accept", {**form, "why": " "})
    assert (no_reason.status, "write a justification" in no_reason.text) == (409, True)
    assert browser.ask("/evaltrack/accept", {**form, "csrf": "x", "why": "known"}).status == 403
    assert browser.ask("/evaltrack/accept", {**form, "id": "none", "why": "known"}).status == 404
    other = {"experiment_id": runs.other_experiment, "why": "known"}
    assert browser.ask("/evaltrack/accept", {**form, **other}).status == 404
    answer = browser.ask("/evaltrack/accept", {**form, "why": HOSTILE})
    assert answer.status == 303
    after = browser.ask(f"/evaltrack/{answer.headers['location']}").text
    assert "accepted by (not signed in)" in after
    assert HOSTILE not in after
    assert "Accept the question" not in after


def test_runs_that_are_ticked_stand_side_by_side(browser: Browser, runs: Runs) -> None:
    """Two of one golden set question by question; others in a table, against one of them that can be another."""
    mine = [f"{runs.experiment}.{each}" for each in (runs.k5, runs.earlier_k5, runs.k3)]
    two = browser.ask(f"/evaltrack/compare?{urlencode([('run', each) for each in mine[:2]])}")
    assert two.status == 303
    assert f"candidate={runs.k5}&baseline={runs.earlier_k5}" in two.headers["location"]
    three = browser.ask(f"/evaltrack/compare?{urlencode([('run', each) for each in mine])}")
    assert three.status == 200, three.text[-2000:]
    assert "3 runs side by side" in three.text
    moved = re.search(r'href="(compare\?[^"]+base[^"]+)"', three.text)
    assert moved
    assert browser.get(unescape(moved[1])).status == 200
    foreign = f"{runs.other_experiment}.{runs.foreign}"
    across = browser.ask(f"/evaltrack/compare?{urlencode([('run', mine[0]), ('run', foreign)])}")
    assert (across.status, "2 runs side by side" in across.text) == (200, True)
    for wrong in ([mine[0]], [], [mine[0]] * 2):
        assert browser.ask(f"/evaltrack/compare?{urlencode([('run', each) for each in wrong])}").status == 400
    elsewhere = [("run", mine[0]), ("run", f"{runs.experiment}.{runs.foreign}")]
    assert browser.ask(f"/evaltrack/compare?{urlencode(elsewhere)}").status == 404


def test_an_address_that_leads_nowhere_leads_back(browser: Browser) -> None:
    answer = browser.get("none")
    assert answer.status == 404
    assert "there is no such page" in answer.text
    assert '<a href="./">All golden sets</a>' in answer.text


def test_a_new_run_is_on_the_first_page_at_once(browser: Browser, runs: Runs) -> None:
    assert "renamed at once" not in browser.get("").text
    client = mlflow.MlflowClient(browser.base)
    client.update_run(runs.k5, name="renamed at once")
    assert "renamed at once" in browser.get("").text


def test_how_far_a_run_is_stands_on_the_pages(browser: Browser, runs: Runs) -> None:
    """While it goes on, from its tag; what is no number of questions is not shown."""
    client = mlflow.MlflowClient(browser.base)
    signature = client.get_run(runs.k5).data.tags["evaltrack.signature"]
    tags = {"evaltrack.golden": "travel", "evaltrack.signature": signature, "evaltrack.progress": "12/63"}
    run_id = client.create_run(runs.experiment, start_time=int(time.time() * 1000), tags=tags).info.run_id
    try:
        for answer in (browser.get(""), browser.get("golden", experiment_id=runs.experiment, golden="travel")):
            assert f'id="live-{run_id}"' in answer.text
            assert '<progress max="63" value="12"' in answer.text
        client.set_tag(run_id, "evaltrack.progress", "99/63")
        assert "<progress" not in browser.get("").text
        assert f'id="live-{run_id}"' in browser.get("").text
        client.set_terminated(run_id, "FAILED")
        assert f'id="live-{run_id}"' not in browser.get("").text
    finally:
        client.delete_run(run_id)


def test_trends_lead_to_their_runs(browser: Browser, runs: Runs) -> None:
    """Of the runs that measured the same as the newest, on the page of their golden set."""
    made = browser.get("golden", experiment_id=runs.experiment, golden="travel")
    assert 'aria-label="Trends"' in made.text
    (first, *_) = re.findall(
        r'<a data-at="[0-9]+" href="(run\?[^"]+)" rel="noopener noreferrer" tabindex="-1">', made.text
    )
    assert browser.ask(f"/evaltrack/{unescape(first)}").status == 200


def test_the_button_sets_the_baseline(browser: Browser, runs: Runs) -> None:
    """With who, when and why; the page then shows it, with the change of the other runs."""
    token = browser.token(runs.experiment, "travel")
    form = {"csrf": token, "experiment_id": runs.experiment, "run_id": runs.k3, "reason": HOSTILE}
    answer = browser.promote({"Origin": browser.base.removesuffix("/team")}, **form)

    assert answer.status == 303
    assert answer.headers["location"] == f"golden?experiment_id={runs.experiment}&golden=travel"
    made = get_baseline(connect(browser.base), runs.experiment, "travel")
    assert made is not None
    assert (made.run_id, made.reason, made.by) == (runs.k3, HOSTILE, "(not signed in)")
    page = browser.ask(f"/evaltrack/{answer.headers['location']}").text
    assert '<span class="badge ok">baseline</span>' in page
    assert "Past baselines" in page
    assert page.count("Drift from the baseline") == 1  # the other run at k=3
    assert page.count("<script>") == 2  # our own
    assert "other questions or k" in browser.get("").text


@pytest.mark.parametrize(
    ("headers", "change", "why"),
    [
        ({"Origin": "https://evil.example"}, {}, "another site"),
        ({"Origin": "null"}, {}, "another site"),
        ({"Sec-Fetch-Site": "cross-site"}, {}, "another site"),
        ({"Sec-Fetch-Site": "same-site"}, {}, "another site"),
        ({}, {"csrf": ""}, "no valid token"),
        ({}, {"csrf": "x" * 43}, "no valid token"),
        ({}, {"csrf": "é"}, "no valid token"),
    ],
)
def test_forms_of_others_are_refused(
    browser: Browser, runs: Runs, headers: dict[str, str], change: dict[str, str], why: str
) -> None:
    before = get_baseline(connect(browser.base), runs.experiment, "travel")
    form = {"csrf": browser.token(runs.experiment, "travel"), "experiment_id": runs.experiment, "run_id": runs.k5}
    answer = browser.promote(headers, **{**form, **change})
    assert (answer.status, why in answer.text) == (403, True)
    assert get_baseline(connect(browser.base), runs.experiment, "travel") == before


@pytest.mark.parametrize(
    ("method", "page", "status"), [("GET", "none", 404), ("PUT", "golden", 405), ("POST", "run", 405)]
)
def test_what_mlflow_answers_below_our_path_carries_our_headers(
    method: str, page: str, status: int, browser: Browser
) -> None:
    """A path or method that is none of ours is MLflow's to answer, and no page to frame or to sniff at."""
    answer = browser.ask(f"/evaltrack/{page}", method=method)
    assert answer.status == status
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_a_token_without_its_cookie_is_refused(browser: Browser, servers: Servers, runs: Runs) -> None:
    """The cookie is not to be read by scripts, nor sent from other sites."""
    token = browser.token(runs.experiment, "travel")
    cookie = browser.get("golden", experiment_id=runs.experiment, golden="travel").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    form = {"csrf": token, "experiment_id": runs.experiment, "run_id": runs.k5}
    assert Browser(servers.open).promote(**form).status == 403
    assert browser.ask("/evaltrack/baseline").status == 404


def test_what_makes_no_baseline_is_explained(browser: Browser, runs: Runs) -> None:
    """A run that is not FINISHED: status 409; a reason beyond the limit: 400."""
    client = mlflow.MlflowClient(browser.base)
    form = {"csrf": browser.token(runs.experiment, "travel"), "experiment_id": runs.experiment, "run_id": runs.small}
    client.update_run(runs.small, status="FAILED")
    answer = browser.promote(**form)
    assert (answer.status, "only a FINISHED run makes a baseline" in answer.text) == (409, True)
    assert browser.promote(**{**form, "run_id": runs.k5}, reason="x" * 501).status == 400
    assert browser.promote(**form, reason="x" * 70_000).status == 413


def _administer(address: str, path: str, **asked: str) -> None:
    request = urllib.request.Request(f"{address}/api/{path}", json.dumps(asked).encode())
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", f"Basic {b64encode(f'{ADMIN}:{PASSWORD}'.encode()).decode()}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


@dataclass(frozen=True)
class Team:
    """What stands in the server with authentication: two experiments with a run each, three users."""

    seen: tuple[str, str]
    hidden: tuple[str, str]


@pytest.fixture(scope="module")
def team(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Team:
    """`reader` may READ the first experiment, `editor` EDIT it; `nobody` has no grants."""
    few = tmp_path_factory.mktemp("golden") / "few.jsonl"
    few.write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
    with pytest.MonkeyPatch.context() as patch:
        for name in ("EVALTRACK_STATE_DIR", "EVALTRACK_CACHE_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp("own")))
        patch.setenv("MLFLOW_TRACKING_USERNAME", ADMIN)
        patch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
        options: dict[str, Any] = {"target": lambda question, k: ["a"], "tracking_uri": servers.auth, "traces": "off"}
        seen, hidden = (run_eval(few, experiment=name, **options) for name in ("seen", "hidden"))
    for user in ("reader", "editor", "nobody"):
        _administer(servers.auth, "2.0/mlflow/users/create", username=user, password=PASSWORD)
    _hash_cheaply(servers.folder)
    for user, level in (("reader", "READ"), ("editor", "EDIT")):
        grant = {"resource_type": "experiment", "resource_id": seen.experiment_id, "permission": level}
        _administer(servers.auth, "3.0/mlflow/users/permissions/grant", username=user, **grant)
    return Team((seen.experiment_id, seen.run_id), (hidden.experiment_id, hidden.run_id))


def test_nobody_comes_in_unknown(servers: Servers, team: Team) -> None:
    """Every page asks for a name and password first, whatever the method."""
    for path in ("", "/", "/golden", "/drift", "/run", "/compare", "/matrix", "/question"):
        for method in ("GET", "HEAD"):
            assert Browser(servers.auth).ask(f"/evaltrack{path}", method=method).status == 401, (path, method)
    assert Browser(servers.auth).promote(experiment_id=team.seen[0]).status == 401
    assert Browser(servers.auth).ask("/evaltrack/accept", {"experiment_id": team.seen[0]}).status == 401
    assert Browser(servers.auth, ("reader", "wrong-password-1")).get("").status == 401


def test_what_one_may_not_read_is_neither_listed_nor_shown(servers: Servers, team: Team) -> None:
    """A reader sees one experiment of two, a user without grants none, the administrator both."""
    pages = {
        name: Browser(servers.auth, (name, PASSWORD)).get("").text for name in ("reader", "editor", "nobody", ADMIN)
    }
    addresses = [
        f'href="golden?experiment_id={experiment}&amp;golden=few"' for experiment, _ in (team.seen, team.hidden)
    ]
    listed = {name: [address in page for address in addresses] for name, page in pages.items()}
    assert listed == {"reader": [True, False], "editor": [True, False], "nobody": [False, False], ADMIN: [True, True]}
    named = {name: [each in page for each in (">seen<", ">hidden<")] for name, page in pages.items()}
    assert named == {name: [name == ADMIN] * 2 for name in pages}  # where there are several

    experiment, run = team.hidden
    for name in ("reader", "nobody"):
        user = Browser(servers.auth, (name, PASSWORD))
        for page, query in (
            ("golden", {"golden": "few"}),
            ("run", {"run_id": run}),
            ("drift", {"candidate": run, "baseline": run}),
            ("matrix", {"golden": "few"}),
            ("question", {"run_id": run, "id": "1"}),
        ):
            answer = user.get(page, experiment_id=experiment, **query)
            assert (answer.status, "Not permitted" in answer.text) == (403, True), (name, page)
            path = f"/evaltrack/{page}?{urlencode({'experiment_id': experiment, **query})}"
            assert user.ask(path, method="HEAD").status == 403, (name, page)
    reader = Browser(servers.auth, ("reader", PASSWORD))
    assert reader.get("run", experiment_id=team.seen[0], run_id=run).status == 404


def test_nothing_tells_which_runs_exist_elsewhere(
    servers: Servers, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that one may not read, evaluation or not, deleted or not, is answered like one that never was."""
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", ADMIN)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    client = mlflow.MlflowClient(servers.auth)
    plain, deleted = (client.create_run(team.hidden[0]).info.run_id for _ in range(2))
    client.delete_run(deleted)
    reader = Browser(servers.auth, ("reader", PASSWORD))
    answers = set()
    for run_id in (team.hidden[1], plain, deleted, "0" * 32):
        answer = reader.get("run", experiment_id=team.seen[0], run_id=run_id)
        answers.add((answer.status, answer.text.replace(run_id, "ID")))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 404


def test_setting_a_baseline_needs_edit_and_keeps_the_name(servers: Servers, team: Team) -> None:
    """A reader sees no button and is refused; an editor is written down as who did it."""
    experiment, run = team.seen
    reader, editor = (Browser(servers.auth, (name, PASSWORD)) for name in ("reader", "editor"))
    shown = reader.get("golden", experiment_id=experiment, golden="few")
    assert (shown.status, "Set as baseline" in shown.text) == (200, False)
    token = next(cookie.value for cookie in reader.jar)
    assert reader.promote(csrf=token or "", experiment_id=experiment, run_id=run).status == 403

    token = editor.token(experiment, "few")
    assert editor.promote(csrf=token, experiment_id=experiment, run_id=run, reason="ours").status == 303
    page = reader.get("golden", experiment_id=experiment, golden="few").text
    assert "by editor: ours" in page
    hidden = {"experiment_id": team.hidden[0], "run_id": team.hidden[1]}
    assert editor.promote(csrf=token, **hidden).status == 403


def test_a_server_without_its_settings_ends_with_one_message(tmp_path: Path, empty_database: Path) -> None:
    """Before any worker starts: workers that die would be started anew for ever."""
    copied_store(tmp_path / "bare", empty_database)
    options = ("--app-name", "evaltrack-basic-auth")
    with MlflowServer(tmp_path / "bare", *options, env={"MLFLOW_AUTH_ADMIN_PASSWORD": ""}) as server:
        assert server.wait(60) != 0
        assert server.log.read_text().count("MlflowException: A static secret key needs to be set") == 1


def test_pages_hold_when_many_ask_at_once(browser: Browser, runs: Runs) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: Browser(browser.base).get(""), range(32)))
    assert {answer.status for answer in answers} == {200}
    assert all(answer.text.endswith("</html>\n") for answer in answers)
