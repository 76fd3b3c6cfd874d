"""Stages: one line each without a terminal, a bar with one."""

from __future__ import annotations

import io
import logging

import pytest

from ctxexp.command import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line_a_stage_without_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ctxexp")
    stream = io.StringIO()
    with Progress(stream=stream).stage("encode bert", total=1500, unit="tokens") as stage:
        stage.advance(1000, sentences="40/60")
        stage.advance(500, sentences="60/60")
        assert caplog.messages == []
    (line,) = caplog.messages
    assert line.startswith("encode bert: 1,500 tokens, 60/60 sentences in ")
    assert line.endswith(" tokens/s)")
    assert stream.getvalue() == ""


def test_a_bar_on_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ctxexp")
    stream = Terminal()
    with Progress(stream=stream).stage("encode bert", total=20, unit="tokens") as stage:
        stage.advance(20, sentences="2/2")
    assert "encode bert: 100%" in stream.getvalue()
    assert "2/2 sentences" in stream.getvalue()
    assert caplog.messages == []
