"""Signals end a command in good order, and are what they were afterwards."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from tests.helpers.updates import wait_until
from tytoalba.cli.stopping import SIGNALS, stopped_by_signals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_stops_it_once(number: str, code: int) -> None:
    before = [signal.getsignal(one) for one in SIGNALS]
    stops: list[str] = []

    def stop() -> None:
        stops.append(threading.current_thread().name)

    with stopped_by_signals(stop) as stopped:
        os.kill(os.getpid(), getattr(signal, number))
        wait_until(lambda: stops)
        os.kill(os.getpid(), signal.SIGTERM)  # a second one that is no Ctrl-C changes nothing
    assert stops == ["waits for signals"]
    assert stopped.code == code
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_a_second_control_c_ends_at_once() -> None:
    with stopped_by_signals(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_without_a_signal_nothing_stops() -> None:
    stops: list[int] = []
    n_threads = threading.active_count()
    with stopped_by_signals(lambda: stops.append(1)) as stopped:
        assert threading.active_count() == n_threads + 1
    assert (stops, stopped.code, threading.active_count()) == ([], 0, n_threads)


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    codes: list[int] = []

    def run() -> None:
        with stopped_by_signals(lambda: None) as stopped:
            codes.append(stopped.code)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert codes == [0]
