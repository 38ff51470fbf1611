"""The story is part of the suite: told against the real instance, and its own helpers tested."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.story.__main__ import write
from tests.story.narrator import Narrator, StoryFailed, render_json
from tests.story.signin import _FormFinder
from tests.story.steps import STEPS, tell
from tests.support.platform import LivePlatform, start_platform
from tests.support.receiver import Answer, LoopbackReceiver


@pytest.fixture(scope="module")
def small_instance() -> Iterator[LivePlatform]:
    """An instance with few licence slots, so that the last step is quick."""
    with start_platform(settings={"LICENSE_SESSIONS": "4"}, first_start=True) as platform:
        yield platform


@pytest.mark.process
@pytest.mark.once
def test_the_story_is_true(small_instance: LivePlatform) -> None:
    heard = io.StringIO()
    tell(small_instance.base_url, Narrator(heard))
    assert [line for line in heard.getvalue().splitlines() if line[:1].isdigit()] == [
        f"{number}. {title}" for number, (title, _) in enumerate(STEPS, start=1)
    ]


@pytest.mark.process
@pytest.mark.once
def test_the_story_can_be_told_twice(small_instance: LivePlatform) -> None:
    tell(small_instance.base_url, Narrator(io.StringIO()))


def test_the_narrator_prints_request_and_answer_without_secrets(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(
        Answer(200, json.dumps({"access_token": "a" * 500, "n": 1}).encode(), {"Content-Type": "application/json"})
    )
    heard = io.StringIO()
    Narrator(heard).send("POST", f"{loopback_receiver.url}/token", form={"client_secret": "geheim", "scope": "read"})
    text = heard.getvalue()
    assert "→ POST /token" in text
    assert "client_secret=… scope=read" in text
    assert "← 200 OK" in text
    assert "geheim" not in text
    assert "a" * 50 not in text


def test_the_narrator_insists_on_the_status_and_shows_what_came(loopback_receiver: LoopbackReceiver) -> None:
    loopback_receiver.answer(503)
    heard = io.StringIO()
    with pytest.raises(StoryFailed, match="answered 503"):
        Narrator(heard).send("GET", f"{loopback_receiver.url}/x", quiet=True)
    assert "← 503" in heard.getvalue()


def test_it_is_written_between_the_marks_without_bodies(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- story:begin -->\nold\n<!-- story:end -->\nafter\n")
    for _ in range(2):
        write(readme, '\n1. It begins\n   → GET /x\n   ← 200 OK  (1 ms)\n     {"a": 1}\n   ✓ so it is\n')
    told = re.sub(r"\s+", " ", readme.read_text()).strip()
    block = "```text 1. It begins → GET /x ← 200 OK (1 ms) ✓ so it is ```"
    assert told == f"before <!-- story:begin --> {block} <!-- story:end --> after"


def test_json_is_opened_up_only_where_it_is_long() -> None:
    value = {"short": {"a": 1}, "long": [{"name": "x" * 60}, {"name": "y" * 60}]}
    assert render_json(value).splitlines()[1] == '  "short": {"a": 1},'
    assert json.loads(render_json(value)) == value


def test_the_login_form_is_found_among_others() -> None:
    finder = _FormFinder()
    finder.feed(
        '<form action="/lang"><input name="language" type="text"></form>'
        '<form action="/login"><input type="hidden" name="csrfmiddlewaretoken" value="t">'
        '<input name="username"><input type="password" name="password"></form>'
    )
    form = finder.found
    assert form is not None
    assert (form.action, form.login_field, form.password_field) == ("/login", "username", "password")
    assert form.fields == {"csrfmiddlewaretoken": "t"}
