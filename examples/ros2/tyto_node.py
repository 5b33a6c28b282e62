"""A ROS 2 node that publishes who speaks where: `python3 tyto_node.py --ros-args -p array:=respeaker-usb-4`.

It runs `tyto listen --json` and publishes what that prints, on the topics of respeaker_ros. So it needs rclpy
alone, and `tyto` may live in an environment of its own; README.md says how.
"""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from typing import Any

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool, Int32

PARAMETERS = {
    "tyto": "tyto",  # the command, such as /home/me/venv/bin/tyto
    "array": "",  # tyto listen --array, or
    "model": "",  # tyto listen --model
    "device": "",
    "method": "",
    "options": "",  # more options of tyto listen, as in a shell
    "sensor_frame_id": "respeaker_base",
    "doa_xy_offset": 0.0,  # metres from the sensor to the pose, in the direction of the sound
}


def degrees(azimuth: float) -> int:
    """Azimuth as respeaker_ros has it: whole degrees in [-180, 180), counter-clockwise, 0 is the x axis.

    >>> degrees(90.0), degrees(270.4), degrees(179.6)
    (90, -90, -180)
    """
    return (round(azimuth) + 180) % 360 - 180


def quaternion(azimuth: float) -> tuple[float, float, float, float]:
    """A turn by an azimuth in degrees around z, as (x, y, z, w)."""
    half = math.radians(degrees(azimuth)) / 2
    return 0.0, 0.0, math.sin(half), math.cos(half)


def command(parameters: dict[str, Any]) -> list[str]:
    """The command line of `tyto listen`."""
    words = [parameters["tyto"], "listen", "--json"]
    for name in ("array", "model", "device", "method"):
        if parameters[name]:
            words += [f"--{name}", parameters[name]]
    return words + shlex.split(parameters["options"])


class TytoNode:
    """Publishes updates as `tyto listen --json` prints them; what has not changed is not published again."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.parameters = {
            name: node.declare_parameter(name, default).value for name, default in PARAMETERS.items()
        }
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.speeching = node.create_publisher(Bool, "is_speeching", latched)
        self.direction = node.create_publisher(Int32, "sound_direction", latched)
        self.localization = node.create_publisher(PoseStamped, "sound_localization", latched)
        self.told: tuple[bool | None, int | None] = None, None

    def publish(self, update: dict[str, Any]) -> None:
        """Publish what changed: whether somebody speaks, and where the surest of them is."""
        speaking = [track for track in update["tracks"] if track["speaking"]]
        was_speaking, direction = self.told
        if bool(speaking) != was_speaking:
            self.speeching.publish(Bool(data=bool(speaking)))
        if speaking:
            azimuth = max(speaking, key=lambda track: float(track["probability"]))["azimuth"]
            if degrees(azimuth) != direction:
                direction = degrees(azimuth)
                self.direction.publish(Int32(data=direction))
                self.localization.publish(self.pose(azimuth, update["latency"] or 0.0))
        self.told = bool(speaking), direction

    def pose(self, azimuth: float, latency: float) -> Any:
        """The direction as a pose that looks there. latency: seconds since the sound was heard."""
        offset = float(self.parameters["doa_xy_offset"])
        pose = PoseStamped()
        pose.header.frame_id = self.parameters["sensor_frame_id"]
        pose.header.stamp = (self.node.get_clock().now() - Duration(seconds=latency)).to_msg()
        pose.pose.position.x = offset * math.cos(math.radians(degrees(azimuth)))
        pose.pose.position.y = offset * math.sin(math.radians(degrees(azimuth)))
        turn = pose.pose.orientation
        turn.x, turn.y, turn.z, turn.w = quaternion(azimuth)
        return pose

    def run(self) -> int:
        """Publish until `tyto listen` ends; return its exit status."""
        with subprocess.Popen(command(self.parameters), stdout=subprocess.PIPE, text=True) as listening:
            assert listening.stdout is not None
            try:
                for line in listening.stdout:
                    if not rclpy.ok():
                        raise ExternalShutdownException
                    self.publish(json.loads(line))
                    rclpy.spin_once(self.node, timeout_sec=0.0)  # answers who asks for parameters
            except BaseException:
                listening.terminate()
                raise
        return listening.returncode


def main() -> None:
    """Run the node until ROS, or `tyto listen`, ends."""
    rclpy.init()
    node = rclpy.create_node("tyto")
    try:
        status = TytoNode(node).run()
        if status:
            node.get_logger().error(f"tyto listen ended with status {status}; what it said is above")
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
