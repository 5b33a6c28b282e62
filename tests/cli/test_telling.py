"""What is printed where there is no screen: changes, faults once each, a summary that stays short."""

from __future__ import annotations

from tests.helpers.inputs import GONE, Clock
from tests.helpers.updates import frame, track
from tytoalba.cli import telling
from tytoalba.cli.telling import ChangeLines, Notes, Summary
from tytoalba.live.segments import Segment
from tytoalba.live.tracker import Track
from tytoalba.live.update import Fault, Update


def update(*tracks: Track, faults: tuple[Fault, ...] = (), dropped: int = 0) -> Update:
    return Update.of(frame(10, *tracks), dropped, faults=faults)


def test_only_changes_are_a_line() -> None:
    lines = ChangeLines()
    told = [
        lines.line(update(*tracks))
        for tracks in (
            [],
            [track(1, 355.0)],
            [track(1, 3.0)],  # eight degrees, across the front
            [track(1, 6.0)],
            [track(1, 6.0), track(2, 90.0)],
            [track(1, 6.0), track(2, 90.0, speaking=False)],
            [track(2, 90.0, speaking=False)],
            [],
        )
    ]
    assert told == [
        None,
        "    0.64  1 at 355 degrees",
        None,
        "    0.64  1 at 6 degrees",
        "    0.64  1 at 6 degrees, 2 at 90 degrees",
        "    0.64  1 at 6 degrees",
        "    0.64  nobody",
        None,
    ]


def test_a_fault_is_said_when_it_comes_and_when_it_is_over() -> None:
    said: list[str] = []
    notes = Notes(said.append, said.append, Clock())
    muted = Fault("muted", (1, 2), "channels 1 and 2 are muted")
    for faults in ((), (GONE,), (GONE,), (GONE, muted), (muted,), ()):
        notes.tell(update(faults=faults))
    assert said == [GONE.text, muted.text, "over: unplugged", "over: muted (channels 1, 2)"]


def test_losses_are_said_and_not_for_every_block() -> None:
    said: list[str] = []
    clock = Clock()
    notes = Notes(said.append, said.append, clock)
    for dropped in range(0, 3200, 32):
        notes.tell(update(dropped=dropped))
        clock.now += 0.125
    assert [line.partition(" samples per channel were lost")[0] for line in said] == ["32", "1280", "1280"]


def test_the_summary_names_few_and_counts_the_others() -> None:
    summary = Summary()
    for number in range(1, 31):
        summary.add(Segment(number, number, number + number / 10, 10.0 * number, 0.0, 0.0))
    summary.seconds = 60.0
    assert summary.text.startswith("60 s: six people: ")
    assert summary.text.endswith("; and 24 more who spoke less")
    assert Summary().text == "0 s: nobody"


def test_the_summary_of_days_takes_no_more_memory() -> None:
    summary = Summary()
    for number in range(telling.MOST_SEGMENTS + 100):
        summary.add(Segment(1, number, number + 0.5, 40.0, 40.0, 40.0))
    summary.seconds = telling.MOST_SEGMENTS + 100.0
    assert len(summary._kept) == telling.MOST_SEGMENTS
    assert "one person: 40 degrees for 50 % of the time" in summary.text
