"""The description of /api for programs: OpenAPI 3.1, exactly what `app.routes_of` answers."""

from __future__ import annotations

from typing import Any

from tytoalba import __version__
from tytoalba.live.web.bodies import LARGEST_JSON, LARGEST_SOUND
from tytoalba.live.web.schemas import SCHEMAS, or_null, ref

JSON, SOUND = "application/json", "application/octet-stream"
COMMON = {
    401: "no token, or a wrong one",
    403: "asked by a name, or by a page, that does not belong here",
    429: "too many requests from one address",
    500: "nobody expected this",
}
"""Refusals of every path."""
AZIMUTH = {"type": "number", "minimum": -360, "maximum": 360, "description": "Degrees: 0 front, 90 left."}
WHO = {"type": "string", "maxLength": 200, "description": "A name to forget it by; printable, one line."}


def described(*, needs_token: bool = False) -> dict[str, Any]:
    """The whole document."""
    paths = _paths()
    for answer in paths["/api/session"].values():
        answer["security"] = []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tyto serve",
            "version": __version__,
            "summary": "Where does a sound come from: live directions, lessons, checks.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "tyto_session"},
            },
        },
        "security": [{"token": []}, {"session": []}] if needs_token else [],
    }


def _paths() -> dict[str, Any]:
    who, lesson = {"who": WHO}, {"id": {"type": "string", "description": "A kept lesson."}}
    return {
        "/api/state": {"get": _reads("What is here", "State")},
        "/api/update": {"get": _reads("The newest frame", "Update", {503: "nothing was heard yet"})},
        "/api/state/doa": {
            "get": _reads("The direction as Reachy Mini tells it", "Doa", {503: "nobody spoke yet"})
        },
        "/api/session": {
            "post": _does(
                "Sign in: a token for a cookie",
                204,
                None,
                _body({"token": {"type": "string"}}, ["token"]),
                _JSON_REFUSALS,
            ),
            "delete": _does("Sign out", 204, None),
        },
        "/api/locate": {
            "post": _does(
                "Who is where in a recording", 200, "Located", _sound(), _SOUND_REFUSALS | {409: "busy"}
            )
        },
        "/api/localizer": {
            "get": _reads(
                "What is stored",
                "Localizer",
                {404: "only an array is served", 503: "its file cannot be read"},
            )
        },
        "/api/lessons": {
            "post": _does(
                "Teach from the live sound",
                202,
                "Begun",
                _body({"azimuth": AZIMUTH, "seconds": _seconds(1, 30, 5), **who}, ["azimuth"]),
                _JSON_REFUSALS | _NOT_NOW,
            ),
            "delete": _does(
                "Forget lessons: all under a name, or one", 200, "Forgotten", _query(who | lesson), _NOT_NOW
            ),
        },
        "/api/lessons/upload": {
            "post": _does(
                "Teach from a recording",
                200,
                "Learned",
                {**_query({"azimuth": AZIMUTH, **who}, ["azimuth"]), **_sound()},
                _SOUND_REFUSALS | _NOT_NOW,
            )
        },
        "/api/lessons/current": {
            "get": _reads("The lesson that runs", "Lesson", {404: "none runs"}),
            "delete": _does("Cancel it", 200, "Begun", refusals={404: "none runs"}),
        },
        "/api/lessons/last": {"get": _reads("The last lesson", "Lesson", {404: "there was none"})},
        "/api/takes": {
            "post": _does(
                "Record a take to check the array by",
                202,
                "TakeBegun",
                _body({"azimuth": or_null(AZIMUTH), "seconds": _seconds(1, 10, 3)}, []),
                _JSON_REFUSALS | {409: "not now, or there are 8 already"},
            ),
            "get": _reads("The takes", "Takes"),
            "delete": _does("Drop them", 200, "Dropped"),
        },
        "/api/check": {
            "get": _reads("What is wrong with the array, by the takes", "Checked", {409: "no take, or busy"})
        },
        "/api/openapi.json": {"get": _answers("This document", 200, {"type": "object"})},
    }


_JSON_REFUSALS = {408: "it came too slowly", 413: f"more than {LARGEST_JSON} bytes", 415: "no JSON"}
_SOUND_REFUSALS = {408: "it came too slowly", 413: f"more than {LARGEST_SOUND} bytes", 415: "no octet-stream"}
_NOT_NOW = {
    404: "only an array is served, or nothing is meant",
    409: "not now",
    503: "the file cannot be used",
}


def _reads(summary: str, schema: str, refusals: dict[int, str] | None = None) -> dict[str, Any]:
    return _answers(summary, 200, ref(schema), refusals)


def _does(
    summary: str,
    status: int,
    schema: str | None,
    takes: dict[str, Any] | None = None,
    refusals: dict[int, str] | None = None,
) -> dict[str, Any]:
    return (takes or {}) | _answers(summary, status, ref(schema) if schema else None, refusals)


def _answers(
    summary: str, status: int, schema: dict[str, Any] | None, refusals: dict[int, str] | None = None
) -> dict[str, Any]:
    done: dict[str, Any] = {"description": summary}
    if schema is not None:
        done["content"] = {JSON: {"schema": schema}}
    refused = {
        str(code): {"description": why, "content": {JSON: {"schema": ref("Error")}}}
        for code, why in sorted(({400: "the request is not right"} | COMMON | (refusals or {})).items())
    }
    return {"summary": summary, "responses": {str(status): done, **refused}}


def _body(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


def _sound() -> dict[str, Any]:
    return {
        "requestBody": {
            "required": True,
            "content": {SOUND: {"schema": {"type": "string", "format": "binary"}}},
        }
    }


def _query(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in (required or []), "schema": schema}
            for name, schema in properties.items()
        ]
    }


def _seconds(low: float, high: float, usual: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high, "default": usual}
