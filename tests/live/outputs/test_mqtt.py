from __future__ import annotations

import importlib
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.certificates import make_certificates
from tests.helpers.mosquitto import Subscriber, needs_mosquitto, running
from tests.helpers.updates import HOST, hand_over, hand_over_until, track, wait_until
from tytoalba.errors import MissingExtraError, TytoError
from tytoalba.live.outputs import peer
from tytoalba.live.outputs.addresses import Address
from tytoalba.live.outputs.mqtt import Broker, Mqtt


def test_urls_of_brokers_are_read() -> None:
    assert Broker.of_url("mqtt://hub", name="hall") == Broker(Address("hub", 1883), "tyto/hall")
    assert Broker.of_url("mqtts://me:p%40ss@hub:99/a/b") == Broker(
        Address("hub", 99), "a/b", True, "me", "p@ss"
    )
    taken = Broker.of_url("mqtt://me:old@[::1]", user="you", password="new")
    assert (taken.address.host, taken.user, taken.password) == ("::1", "you", "new")
    assert "new" not in repr(taken)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("hub:1883", "mqtt://HOST"),
        ("http://hub", "mqtt://HOST"),
        ("mqtt://", "mqtt://HOST"),
        ("mqtt://hub?x=1", "mqtt://HOST"),
        ("mqtt://[::1", "cannot be read"),
        ("mqtt://hub:99999", "from 1 to 65535"),
        ("mqtt://hub/a b", "topics begin with"),
        ("mqtt://hub/#", "mqtt://HOST"),
        ("mqtt://hub/+/x", "topics begin with"),
        ("mqtt://:secret@hub", "needs a user"),
    ],
)
def test_what_is_no_url_of_a_broker_is_refused(url: str, says: str) -> None:
    with pytest.raises(TytoError, match=says) as refused:
        Broker.of_url(url)
    assert "secret" not in str(refused.value)


def test_people_are_told_what_is_not_safe() -> None:
    def remarks(url: str) -> str:
        return " ".join(Broker.of_url(url).remarks(url))

    assert remarks("mqtts://me@hub") == remarks("mqtt://localhost") == ""
    assert "list of processes" in remarks("mqtts://me:secret@hub")
    assert "the password and where people are" in remarks("mqtt://me:secret@hub")
    assert "in the clear" in remarks("mqtt://hub")


def test_certificates_are_for_encryption_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(TytoError, match="mqtts:// only"):
        Broker.of_url("mqtt://hub", authorities=tmp_path)
    with pytest.raises(TytoError, match="no file of certificates"):
        Mqtt(Broker.of_url("mqtts://hub", authorities=tmp_path / "ca.pem"), print)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
    with pytest.raises(TytoError, match="no certificates that can be read"):
        Mqtt(Broker.of_url("mqtts://hub", authorities=tmp_path / "ca.pem"), print)


def test_a_missing_extra_is_said_before_anything_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match="tytoalba\\[mqtt\\]"):
        Mqtt(Broker.of_url("mqtt://hub"), print)


def test_a_broker_that_is_not_there_is_said_once_and_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "FIRST_PAUSE", 0.01)
    with socket.socket() as one:
        one.bind((HOST, 0))
        port = one.getsockname()[1]
        said: list[str] = []
        output = Mqtt(Broker.of_url(f"mqtt://{HOST}:{port}"), said.append)
        hand_over(output, 20, track(1), pause=0.005)
        output.close()
    assert len(said) == 1
    assert said[0].startswith(f"the MQTT broker at {HOST}:{port} is gone (")


# ---- with a real broker ----


@pytest.mark.end_to_end
@needs_mosquitto
def test_home_assistant_finds_the_device_and_its_states(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        reader = Subscriber(broker.port)
        output = Mqtt(Broker.of_url(f"mqtt://{HOST}:{broker.port}/tyto/hall"), pytest.fail, name="Hall")
        wait_until(lambda: reader.texts("tyto/hall/availability"))
        hand_over(output, 30, track(1, 123.4))
        output.close()
        wait_until(lambda: reader.texts("tyto/hall/availability")[-1] == "offline")
        late = Subscriber(broker.port)  # what the broker kept, for a Home Assistant that starts later
        wait_until(lambda: len(late.messages) >= 4)
        reader.close()
        late.close()

    updates = [json.loads(text) for text in reader.texts("tyto/hall/update")]
    assert [one["time"] for one in updates] == [round(0.064 * n, 4) for n in range(30)]
    assert updates[0]["tracks"][0]["azimuth"] == 123.4
    states = [json.loads(text) for text in reader.texts("tyto/hall/state")]
    assert states == [{"azimuth": 123, "speaking": True, "talkers": 1}]
    assert reader.texts("tyto/hall/availability") == ["online", "offline"]
    kept = {topic: text for topic, text, retained in late.messages if retained}
    assert kept.pop("tyto/hall/availability") == "offline"
    assert set(kept) == {
        "homeassistant/sensor/tyto_hall/azimuth/config",
        "homeassistant/binary_sensor/tyto_hall/speaking/config",
        "homeassistant/sensor/tyto_hall/talkers/config",
    }
    assert all(json.loads(text)["device"]["name"] == "Hall" for text in kept.values())


CHILD = """
import sys, time
from tests.helpers.updates import hand_over, track
from tytoalba.live.outputs.mqtt import Broker, Mqtt
output = Mqtt(Broker.of_url(sys.argv[1]), print)
while True:
    hand_over(output, 1, track(1), pause=0.05)
"""


@pytest.mark.end_to_end
@needs_mosquitto
def test_the_broker_says_offline_when_the_process_is_killed(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        reader = Subscriber(broker.port)
        child = subprocess.Popen([sys.executable, "-c", CHILD, f"mqtt://{HOST}:{broker.port}/tyto"])
        try:
            wait_until(lambda: len(reader.texts("tyto/update")) > 3, 30)
            assert reader.texts("tyto/availability") == ["online"]
            child.send_signal(signal.SIGKILL)
            child.wait(10)
            wait_until(lambda: reader.texts("tyto/availability") == ["online", "offline"])
        finally:
            child.kill()
            child.wait(10)
            reader.close()


@pytest.mark.end_to_end
@needs_mosquitto
def test_a_broker_that_restarts_is_announced_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(peer, "STEADY", 0.1)
    said: list[str] = []
    with running(tmp_path) as broker:
        output = Mqtt(Broker.of_url(f"mqtt://{HOST}:{broker.port}/tyto"), said.append)
        hand_over(output, 5, track(1), pause=0.02)
        broker.stop()
        hand_over_until(lambda: said, output, track(1))
        broker.start()
        reader = Subscriber(broker.port)
        hand_over_until(lambda: len(said) >= 2 and reader.texts("tyto/update"), output, track(1))
        output.close()
        reader.close()
    assert "is gone" in said[0]
    assert said[1:] == [f"the MQTT broker at {HOST}:{broker.port} is back"]
    assert reader.texts("homeassistant/sensor/tyto/azimuth/config")  # it keeps nothing over a restart


@pytest.mark.end_to_end
@needs_mosquitto
def test_a_user_needs_the_right_password(tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    subprocess.run(
        ["mosquitto_passwd", "-b", "-c", passwords, "me", "right"], check=True, capture_output=True
    )
    with running(tmp_path, f"allow_anonymous false\npassword_file {passwords}") as broker:
        url = f"mqtt://me@{HOST}:{broker.port}/tyto"
        reader = Subscriber(broker.port, user="me", password="right")
        said: list[str] = []
        wrong = Mqtt(Broker.of_url(url, password="wrong"), said.append)
        wait_until(lambda: said)
        wrong.close()
        assert "it refuses: Not authorized" in said[0]
        output = Mqtt(Broker.of_url(url, password="right"), pytest.fail)
        hand_over(output, 3, track(1))
        output.close()
        wait_until(lambda: len(reader.texts("tyto/update")) == 3)
        reader.close()


@pytest.mark.end_to_end
@needs_mosquitto
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket")  # paho leaves it to be collected
def test_a_broker_with_encryption_must_have_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    settings = f"allow_anonymous true\ncertfile {files.certificate}\nkeyfile {files.key}"
    with running(tmp_path, settings) as broker:
        url, said = f"mqtts://{HOST}:{broker.port}/tyto", list[str]()
        stranger = Mqtt(Broker.of_url(url), said.append)
        wait_until(lambda: said)
        stranger.close()
        assert "certificate verify failed" in said[0]
        output = Mqtt(Broker.of_url(url, authorities=files.authority), pytest.fail)
        reader = Subscriber(broker.port, authorities=files.authority)
        hand_over(output, 3, track(1))
        output.close()
        wait_until(lambda: len(reader.texts("tyto/update")) == 3)
        reader.close()
