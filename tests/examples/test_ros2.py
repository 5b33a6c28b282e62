"""The node for ROS 2, with a stand-in for rclpy, and its messages as `rosbags` has them."""

from __future__ import annotations

import importlib
import json
import math
import shlex
import stat
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.helpers import ros2
from tests.helpers.ros2 import Bool, Int32, Message, PoseStamped, Ros, install, plain
from tests.helpers.updates import track
from tytoalba.data.demo import DEMO_ARRAY, demo_recording
from tytoalba.live.update import Update
from tytoalba.signal.angles import distance, wrap
from tytoalba.signal.array import unit_vector

if TYPE_CHECKING:
    import examples.ros2.tyto_node  # noqa: F401, so that its types are checked

FOLDER = Path(__file__).parents[2] / "examples" / "ros2"
TOPICS = {"is_speeching": Bool, "sound_direction": Int32, "sound_localization": PoseStamped}


def node_of(monkeypatch: pytest.MonkeyPatch, ros: Ros) -> Any:
    """The example's module, with this ROS."""
    install(monkeypatch, ros)
    monkeypatch.delitem(sys.modules, "examples.ros2.tyto_node", raising=False)
    return importlib.import_module("examples.ros2.tyto_node")


def command(folder: Path, *updates: Update, status: int = 0) -> str:
    """A stand-in for `tyto`: it prints updates, and keeps its arguments in a file."""
    lines, seen = folder / "lines.json", folder / "arguments.json"
    lines.write_text("".join(f"{one.json}\n" for one in updates), "utf-8")
    program = folder / "tyto"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\njson.dump(sys.argv[1:], open({str(seen)!r}, 'w'))\n"
        f"print(open({str(lines)!r}).read(), end='')\nsys.exit({status})\n",
        "utf-8",
    )
    program.chmod(stat.S_IRWXU)
    return str(program)


def update(number: int, *azimuths: float, **others: Any) -> Update:
    who = tuple(track(n, azimuth, probability=0.9 - 0.1 * n) for n, azimuth in enumerate(azimuths))
    return Update(float(number), who, -30.0, **others)


def test_what_tyto_listen_prints_is_published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heard = [
        update(0),
        update(1, 90.0, latency=0.25),
        update(2, 90.3),
        update(3, 271.0, 10.0),
        Update(4.0, (track(0, 100.0, speaking=False),), -40.0),
    ]
    ros = Ros({
        "tyto": command(tmp_path, *heard), "model": "kitchen.tyto", "device": "ReSpeaker",
        "options": "--silence -50 --record-sealed 'a b.age'", "doa_xy_offset": 0.5, "sensor_frame_id": "head",
    })  # fmt: skip
    node_of(monkeypatch, ros).main()
    assert ros.was_shut_down
    assert not ros.errors
    assert ros.n_spins == 5
    assert ros.topics == {
        name: (kind, {"depth": 1, "durability": "transient local"}) for name, kind in TOPICS.items()
    }
    arguments = json.loads((tmp_path / "arguments.json").read_text("utf-8"))
    assert arguments == [
        "listen", "--json", "--model", "kitchen.tyto", "--device", "ReSpeaker",
        "--silence", "-50", "--record-sealed", "a b.age",
    ]  # fmt: skip

    assert [(topic, message) for topic, message in ros.published if topic != "sound_localization"] == [
        ("is_speeching", Bool(False)),
        ("is_speeching", Bool(True)),
        ("sound_direction", Int32(90)),
        ("sound_direction", Int32(-89)),
        ("is_speeching", Bool(False)),
    ]
    first, second = (message for topic, message in ros.published if topic == "sound_localization")
    assert isinstance(first, PoseStamped)
    assert isinstance(second, PoseStamped)
    assert (first.header.frame_id, plain(first.header.stamp)) == ("head", {"sec": 99, "nanosec": 750_000_000})
    assert plain(second.header.stamp) == {"sec": 100, "nanosec": 0}
    assert plain(first.pose.position) == pytest.approx({"x": 0.0, "y": 0.5, "z": 0.0})


def test_the_frame_is_that_of_rep_103_all_around_the_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    ros = Ros({"doa_xy_offset": 1.0})
    node = node_of(monkeypatch, ros).TytoNode(ros)
    for azimuth in np.arange(0.0, 360.0, 1.7):
        pose = node.pose(float(azimuth), 0.0).pose
        x, y, _ = unit_vector(azimuth)  # x to the front, y to the left, as in REP 103
        assert [pose.position.x, pose.position.y] == pytest.approx([x, y], abs=0.01)
        q = pose.orientation
        assert math.hypot(q.x, q.y, q.z, q.w) == pytest.approx(1.0)
        # the x axis, turned by the quaternion: where it looks
        ahead = (1 - 2 * (q.y**2 + q.z**2), 2 * (q.x * q.y + q.w * q.z), 2 * (q.x * q.z - q.w * q.y))
        assert ahead == pytest.approx((pose.position.x, pose.position.y, 0.0))
        assert distance(math.degrees(2 * math.atan2(q.z, q.w)), azimuth) <= 0.5001


@pytest.mark.parametrize(
    ("azimuth", "whole"), [(0.0, 0), (359.6, 0), (90.0, 90), (179.4, 179), (179.6, -180), (270.0, -90)]
)
def test_degrees_are_whole_and_signed(monkeypatch: pytest.MonkeyPatch, azimuth: float, whole: int) -> None:
    found = node_of(monkeypatch, Ros({})).degrees(azimuth)
    assert (found, type(found)) == (whole, int)
    assert distance(wrap(found), azimuth) <= 0.5


def test_when_tyto_listen_fails_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ros = Ros({"tyto": command(tmp_path, status=2), "array": "respeaker-usb-4"})
    node_of(monkeypatch, ros).main()
    assert ros.errors == ["tyto listen ended with status 2; what it said is above"]
    assert ros.was_shut_down


def test_when_ros_is_shut_down_tyto_listen_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ros = Ros({"tyto": command(tmp_path, *(update(n, 5.0 * n) for n in range(50)))})
    ros.spins = 3
    node_of(monkeypatch, ros).main()
    assert ros.n_spins == 3
    assert not ros.errors
    assert len([topic for topic, _ in ros.published if topic == "sound_direction"]) == 3


def test_the_guide_names_all_topics_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (FOLDER / "README.md").read_text("utf-8")
    for name in (*TOPICS, *node_of(monkeypatch, Ros({})).PARAMETERS):
        assert f"`{name}`" in guide or f"`/{name}`" in guide, name


@pytest.mark.end_to_end
def test_tyto_listen_itself_is_published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tyto"
    program.write_text(f"#!{sys.executable}\nfrom tytoalba.cli.app import main\nmain()\n", "utf-8")
    program.chmod(stat.S_IRWXU)
    recording, truth = demo_recording()
    options = f"--from {shlex.quote(str(recording))} --fast"
    ros = Ros({"tyto": str(program), "array": DEMO_ARRAY, "method": "srp", "options": options})
    node_of(monkeypatch, ros).main()
    assert not ros.errors
    directions = [message.data for _, message in ros.published if isinstance(message, Int32)]
    for one in truth:
        assert any(distance(direction, one.azimuth) < 5 for direction in directions)
    assert ros.published[0] == ("is_speeching", Bool(False))
    assert ("is_speeching", Bool(True)) in ros.published


# ---- rosbags comes with the extra end-to-end ----


@pytest.mark.end_to_end
@pytest.mark.parametrize("version", ["ROS2_HUMBLE", "ROS2_JAZZY", "ROS2_KILTED"])
def test_messages_are_those_of_ros(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    typesys = pytest.importorskip("rosbags.typesys")
    store = typesys.get_typestore(getattr(typesys.Stores, version))
    for kind in ros2.PACKAGES:
        there = store.types[kind.type_name()]
        names = [one.name for one in fields(there) if one.name != "__msgtype__"]
        assert names == [one.name for one in fields(kind)], kind

    def as_ros(message: Message) -> Any:
        values = {one.name: getattr(message, one.name) for one in fields(message)}
        nested = {name: as_ros(one) if isinstance(one, Message) else one for name, one in values.items()}
        return store.types[message.type_name()](**nested)

    ros = Ros({"tyto": command(tmp_path, update(1, 90.0, latency=0.1), update(2), update(3, 200.0))})
    node_of(monkeypatch, ros).main()
    assert {topic for topic, _ in ros.published} == set(TOPICS)
    for _, message in ros.published:
        name = message.type_name()
        data = store.serialize_cdr(as_ros(message), name)
        assert store.deserialize_cdr(data, name) == as_ros(message)
    assert (
        bytes(store.serialize_cdr(as_ros(Int32(-160)), "std_msgs/msg/Int32")) == b"\0\1\0\0\x60\xff\xff\xff"
    )
