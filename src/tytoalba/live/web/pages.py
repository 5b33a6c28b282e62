"""The files of the page, by a table that is made once; nothing is ever opened for a client."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from tytoalba.errors import FileError
from tytoalba.storage.files import read_bytes

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
LARGEST_REPORT = 64 * 2**20
REPORT_CSP = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
)
"""A report has its scripts inside; in a sandbox they cannot ask this server for anything."""


class File:
    """One file of the page, read once."""

    def __init__(self, content: bytes, kind: str, csp: str | None = None) -> None:
        self._content, self._kind = content, kind
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        self._headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if csp:
            self._headers["Content-Security-Policy"] = csp

    async def answer(self, request: Request) -> Response:
        """The file, or that the browser has it already."""
        if request.headers.get("if-none-match") == self._headers["ETag"]:
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, headers=self._headers, media_type=self._kind)


def page_files() -> dict[str, File]:
    """The files of the page by their paths, as they were when the server began."""
    folder = resources.files("tytoalba") / "resources" / "web"
    files = {
        f"/{one.name}": File(one.read_bytes(), KINDS[Path(one.name).suffix])
        for one in folder.iterdir()
        if re.fullmatch(r"[a-z]+\.(html|js|css|svg)", one.name)
    }
    files["/"] = files.pop("/index.html")
    return files


def report_file(path: Path) -> File:
    """A report that `tyto bench` made."""
    content = read_bytes(path, LARGEST_REPORT)
    if not content.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        raise FileError(f"{path} is not a page of `tyto bench`: give its report.html")
    return File(content, "text/html; charset=utf-8", REPORT_CSP)
