from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.helpers.certificates import make_certificates
from tests.helpers.commands import Tyto
from tests.helpers.serving import new_state

TOKEN = "a-long-token-of-a-test"
ARRAY = ["--array", "respeaker-usb-4", "--no-input"]


def test_help_teaches(tyto: Tyto) -> None:
    text = tyto("serve", "--help").out
    for word in ("--token-file", "--tls-cert", "--insecure", "127.0.0.1", "curl"):
        assert word in text


def test_what_is_not_safe_is_refused_before_anything_is_served(
    tyto: Tyto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TYTO_TOKEN", raising=False)
    everywhere = [*ARRAY, "--host", "0.0.0.0"]
    files = make_certificates(tmp_path)
    token = tmp_path / "token.txt"
    token.write_text(TOKEN)
    token.chmod(0o644)
    for arguments, why in (
        (everywhere, "needs a token"),
        ([*everywhere, "--insecure"], "needs a token"),
        ([*ARRAY, "--tls-cert", files.certificate], "both --tls-cert and --tls-key"),
        ([*everywhere, "--token-file", token], "open to others"),
        ([*ARRAY, "--token-file", tmp_path / "none"], "is not a file"),
        ([*ARRAY, "--device", "hw:1"], "--no-input takes no sound"),
        (["--demo", "--no-input"], "--no-input takes no sound"),
        (["--demo", *ARRAY], "--demo has its own recording and array"),
        ([*ARRAY, "--model", "k.tyto"], "leave out --array"),
        ([*ARRAY, "--tls-cert", files.key, "--tls-key", files.key], "not a certificate and its key"),
    ):
        ran = tyto("serve", *arguments)
        assert ran.code == 2
        assert why in ran.err
    token.chmod(0o600)
    assert "needs TLS" in tyto("serve", *everywhere, "--token-file", token).err
    monkeypatch.setenv("TYTO_TOKEN", "short")
    ran = tyto("serve", *everywhere)
    assert "at least 16" in ran.err
    assert "short" not in ran.err


@pytest.mark.end_to_end
def test_served_until_it_is_interrupted(tmp_path: Path) -> None:
    state = new_state(tmp_path / "kitchen.tyto")
    command = [sys.executable, "-m", "tytoalba", "serve", "--model", state, "--unsigned", "--port", "0"]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "TYTO_TOKEN": TOKEN}
    with subprocess.Popen(
        [*map(str, command), "--demo"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stderr
        said = process.stderr.readline()
        found = re.search(r"open (http://127\.0\.0\.1:\d+/)", said)
        assert found, said
        request = urllib.request.Request(f"{found[1]}api/state", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert b'"can_teach":true' in answer.read()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 130
    assert "nothing of the sound was kept" in rest
    assert "Traceback" not in rest
    assert TOKEN not in said + rest
