"""As much of ROS 2 as the tests need where it is not installed: messages with fixed types, and rclpy.

Fields and types of messages are written out here; a test compares them with those of `rosbags`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import Any, get_type_hints

import pytest


@dataclass
class Message:
    """As messages made by rosidl: every field has a value, and takes values of its own type alone."""

    def __setattr__(self, name: str, value: Any) -> None:
        wanted = get_type_hints(type(self))[name]
        assert type(value) is wanted, f"{type(self).__name__}.{name} is {wanted}, got {value!r}"
        super().__setattr__(name, value)

    @classmethod
    def type_name(cls) -> str:
        return f"{PACKAGES[cls]}/msg/{cls.__name__}"


@dataclass
class Bool(Message):
    data: bool = False


@dataclass
class Int32(Message):
    data: int = 0


@dataclass
class Time(Message):
    sec: int = 0
    nanosec: int = 0


@dataclass
class Header(Message):
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass
class Point(Message):
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0


@dataclass
class Quaternion(Message):
    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    w: float = 1.0


@dataclass
class Pose(Message):
    position: Point = field(default_factory=Point)
    orientation: Quaternion = field(default_factory=Quaternion)


@dataclass
class PoseStamped(Message):
    header: Header = field(default_factory=Header)
    pose: Pose = field(default_factory=Pose)


PACKAGES: dict[type[Message], str] = {
    Bool: "std_msgs",
    Int32: "std_msgs",
    Header: "std_msgs",
    Time: "builtin_interfaces",
    Point: "geometry_msgs",
    Quaternion: "geometry_msgs",
    Pose: "geometry_msgs",
    PoseStamped: "geometry_msgs",
}


@dataclass(frozen=True)
class Nanoseconds:
    """A time, or a duration."""

    ns: int

    @classmethod
    def duration(cls, *, seconds: float) -> Nanoseconds:
        return cls(round(1e9 * seconds))

    def __sub__(self, other: Nanoseconds) -> Nanoseconds:
        return Nanoseconds(self.ns - other.ns)

    def to_msg(self) -> Time:
        return Time(self.ns // 10**9, self.ns % 10**9)


class ExternalShutdownException(Exception):  # noqa: N818, its name in rclpy
    """ROS was shut down by somebody else."""


class Ros:
    """A node, its parameters, and what it published: topic and message. now: seconds."""

    def __init__(self, parameters: dict[str, Any], now: float = 100.0) -> None:
        self.parameters, self.now = parameters, now
        self.declared: set[str] = set()
        self.published: list[tuple[str, Message]] = []
        self.topics: dict[str, tuple[type[Message], Any]] = {}
        self.errors: list[str] = []
        self.n_spins = 0
        self.spins = 10**9
        """After so many it is shut down from elsewhere."""
        self.was_shut_down = False

    def init(self) -> None:
        self.was_shut_down = False

    def ok(self) -> bool:
        return not self.was_shut_down and self.n_spins < self.spins

    def try_shutdown(self) -> None:
        self.was_shut_down = True

    def create_node(self, name: str) -> Ros:
        assert name == "tyto"
        return self

    def destroy_node(self) -> None:
        assert not self.was_shut_down

    def spin_once(self, node: Ros, *, timeout_sec: float) -> None:
        assert node is self
        assert timeout_sec == 0.0
        self.n_spins += 1

    def declare_parameter(self, name: str, default: Any) -> Any:
        value = self.parameters.get(name, default)
        assert type(value) is type(default)
        self.declared.add(name)
        return Namespace(value=value)

    def create_publisher(self, kind: type[Message], topic: str, qos: Any) -> Any:
        self.topics[topic] = kind, qos

        def publish(message: Message) -> None:
            assert type(message) is kind
            self.published.append((topic, message))

        return Namespace(publish=publish)

    def get_clock(self) -> Any:
        return Namespace(now=lambda: Nanoseconds(round(1e9 * self.now)))

    def get_logger(self) -> Any:
        return Namespace(error=self.errors.append)


class Namespace:
    """Something with the attributes that it is given."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def install(monkeypatch: pytest.MonkeyPatch, ros: Ros) -> None:
    """Let modules import rclpy and messages from here."""

    def module(name: str, **attributes: Any) -> None:
        one = ModuleType(name)
        one.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, name, one)

    functions = ("init", "ok", "try_shutdown", "create_node", "spin_once")
    module("rclpy", **{name: getattr(ros, name) for name in functions})
    module("rclpy.duration", Duration=Nanoseconds.duration)
    module("rclpy.executors", ExternalShutdownException=ExternalShutdownException)
    policy = Namespace(TRANSIENT_LOCAL="transient local")
    module("rclpy.qos", DurabilityPolicy=policy, QoSProfile=lambda **options: options)
    for package in ("std_msgs", "geometry_msgs"):
        module(package)
        module(f"{package}.msg", **{one.__name__: one for one, home in PACKAGES.items() if home == package})


def plain(message: Message) -> dict[str, Any]:
    """A message as nested dictionaries."""
    values = {one.name: getattr(message, one.name) for one in fields(message)}
    return {name: plain(value) if isinstance(value, Message) else value for name, value in values.items()}
