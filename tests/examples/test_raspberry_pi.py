"""The service for systemd: its options are ours, its secrets are no arguments, and systemd takes it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.helpers.options import listen_options
from tests.helpers.updates import HOST, free_port, wait_until
from tytoalba.data.demo import demo_recording
from tytoalba.live.outputs.mqtt import Broker
from tytoalba.signal.array import builtin_arrays

FOLDER = Path(__file__).parents[2] / "examples" / "raspberry_pi"
SERVICE, GUIDE = FOLDER / "tyto.service", FOLDER / "README.md"
SYSTEMD = shutil.which("systemd-analyze")


@pytest.fixture
def unit() -> ConfigParser:
    """The unit; no key stands twice in it."""
    parser = ConfigParser(interpolation=None, delimiters="=", comment_prefixes="#")
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(SERVICE.read_text("utf-8"))
    return parser


def test_it_runs_tyto_listen_with_options_that_there_are(unit: ConfigParser) -> None:
    program, quiet, command, *words = shlex.split(unit["Service"]["ExecStart"])
    assert (program, quiet, command) == ("/opt/tyto/bin/tyto", "--quiet", "listen")
    given = listen_options(words)
    assert given["array"] in builtin_arrays()
    assert Broker.of_url(str(given["mqtt"])).prefix == "tyto/kitchen"
    assert f"{program} {command} --array {given['array']} --device {given['device']}" in GUIDE.read_text(
        "utf-8"
    )


def test_it_keeps_no_secret_and_may_hear_and_nothing_else(unit: ConfigParser) -> None:
    service = unit["Service"]
    given = listen_options(shlex.split(service["ExecStart"])[3:])
    broker = Broker.of_url(str(given["mqtt"]))
    assert (broker.user, broker.password) == ("tyto", None)
    name, _, file = service["LoadCredential"].partition(":")
    assert str(given["mqtt_password_file"]) == f"%d/{name}"  # the folder that systemd makes for credentials
    assert f"sudo install -m 600 /dev/null {file}" in GUIDE.read_text("utf-8")
    assert "PASSWORD" not in SERVICE.read_text("utf-8")
    assert service["DynamicUser"] == "yes"
    assert service["SupplementaryGroups"] == "audio"
    assert service["Restart"] == "always"
    assert service["StandardOutput"] == "null"
    assert not {"User", "PrivateDevices", "PrivateUsers", "MemoryDenyWriteExecute"} & set(service)
    assert unit["Install"]["WantedBy"] == "multi-user.target"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with a program that there is on this machine."""
    there = tmp_path / "tyto.service"
    there.write_text(SERVICE.read_text("utf-8").replace("/opt/tyto/bin/tyto", "/bin/true"), "utf-8")
    return there


@pytest.mark.end_to_end
def test_the_journal_gets_no_directions_and_a_stop_is_no_failure(
    unit: ConfigParser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the unit, with a recording as the sound card, and a broker that is not there."""
    service = unit["Service"]
    words = shlex.split(service["ExecStart"])[1:]
    device = words.index("--device")
    words[device : device + 2] = ["--from", str(demo_recording()[0]), "--loop"]
    words[words.index("--mqtt") + 1] = f"mqtt://tyto@{HOST}:{free_port()}/tyto/kitchen"
    words[-1] = words[-1].replace("%d", str(tmp_path))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    password = tmp_path / "mqtt-password"
    password.write_text("secret-of-the-broker\n", "utf-8")
    password.chmod(0o440)  # as systemd hands it over
    journal = tmp_path / "journal"
    lines = tmp_path / "lines"
    with journal.open("wb") as log, lines.open("wb") as printed:
        listening = subprocess.Popen([sys.executable, "-m", "tytoalba", *words], stdout=printed, stderr=log)
    try:
        wait_until(lambda: "is gone" in journal.read_text("utf-8") and "40" in lines.read_text("utf-8"), 30)
        listening.terminate()
        code = listening.wait(30)
    finally:
        listening.kill()
        listening.wait()
    assert code in {0, *map(int, service["SuccessExitStatus"].split())}
    said = journal.read_text("utf-8")
    assert "degrees" not in said
    assert "secret" not in said
    assert "Traceback" not in said


needs_systemd = pytest.mark.skipif(SYSTEMD is None, reason="needs systemd-analyze: apt install systemd")


def analyze(command: str, unit: Path) -> str:
    """What systemd says of a unit, and not of others that are on this machine."""
    done = subprocess.run(
        [str(SYSTEMD), *command.split(), unit], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + "".join(line for line in done.stderr.splitlines(True) if unit.name in line)


@pytest.mark.end_to_end
@needs_systemd
def test_systemd_takes_it(installed: Path) -> None:
    assert analyze("verify --man=no", installed) == ""
    installed.write_text(installed.read_text("utf-8").replace("ProtectSystem=strict", "ProtectSystem=foo"))
    assert "ignoring: foo" in analyze("verify --man=no", installed)


@pytest.mark.end_to_end
@needs_systemd
def test_systemd_finds_little_exposed(installed: Path) -> None:
    said = analyze("security --offline=true --no-pager", installed)
    level = re.search(r"Overall exposure level.*: ([0-9.]+)", said)
    assert level, said
    assert float(level[1]) < 2.5
