"""What /api answers, as JSON Schema."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TRUTH: Schema = {"type": "boolean"}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
DEGREES: Schema = {"type": "number", "minimum": 0, "maximum": 360}


def ref(name: str) -> Schema:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Schema, **limits: int) -> Schema:
    """A list."""
    return {"type": "array", "items": items, **limits}


def or_null(schema: Schema) -> Schema:
    """A value that may be missing.

    >>> or_null({"type": "string"})
    {'type': ['string', 'null']}
    """
    if "$ref" in schema or not isinstance(schema.get("type"), str):
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _object(optional: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


SCHEMAS: dict[str, Schema] = {
    "Error": _object(error=TEXT),
    "Fault": _object(kind=TEXT, channels=array_of(COUNT), text=TEXT),
    "Track": _object(id=COUNT, azimuth=DEGREES, probability=NUMBER, since=NUMBER, speaking=TRUTH),
    "State": _object(
        version=TEXT,
        needs_token=TRUTH,
        array=_object(
            name=TEXT,
            n_mics=COUNT,
            sample_rate=COUNT,
            positions=array_of(array_of(NUMBER, minItems=3, maxItems=3)),
            ambiguities=array_of(TEXT),
        ),
        input=_object(
            name=TEXT,
            live=TRUTH,
            state={"enum": ["listening", "waiting", "ended", "none"]},
            faults=array_of(ref("Fault")),
        ),
        localizer=or_null(TEXT),
        can_teach=TRUTH,
        why_not_teach=or_null(TEXT),
        report=TRUTH,
    ),
    "Update": _object(
        type={"const": "update"},
        time=NUMBER,
        tracks=array_of(ref("Track")),
        level=NUMBER,
        dropped=COUNT,
        latency=or_null(NUMBER),
        faults=array_of(ref("Fault")),
        scores=or_null(
            array_of({"type": "integer", "minimum": 0, "maximum": 1000}, minItems=360, maxItems=360)
        ),
    ),
    "Doa": _object(angle={"type": "number", "minimum": 0, "maximum": 3.141593}, speech_detected=TRUTH),
    "Located": _object(
        array=TEXT,
        n_frames=COUNT,
        seconds=NUMBER,
        hop=NUMBER,
        summary=TEXT,
        segments=array_of(
            _object(id=COUNT, start=NUMBER, end=NUMBER, azimuth=DEGREES, first=DEGREES, last=DEGREES)
        ),
        frames=array_of(_object(time=NUMBER, level=NUMBER, tracks=array_of(ref("Track")))),
        map=_object(
            columns=COUNT,
            frames_per_column=COUNT,
            scores=array_of(
                array_of({"type": "integer", "minimum": 0, "maximum": 100}, minItems=120, maxItems=120)
            ),
        ),
    ),
    "Localizer": _object(
        file=TEXT,
        kind={"enum": ["state", "model"]},
        digest=DIGEST,
        bytes=COUNT,
        n_frames=COUNT,
        n_lessons=COUNT,
        evidence=array_of(COUNT, minItems=72, maxItems=72),
        lessons=array_of(
            _object(id=TEXT, who=TEXT, azimuth=array_of(NUMBER), n_frames=COUNT, when={"type": "integer"})
        ),
        budget=or_null(_object(budget=NUMBER, spent=or_null(NUMBER), delta=NUMBER, known=TRUTH)),
        steps=array_of(_object(sequence=COUNT, what=TEXT, when={"type": "integer"}, frames=COUNT)),
        ledger=or_null(TEXT),
    ),
    "Begun": _object(id=TEXT),
    "TakeBegun": _object(id=COUNT),
    "Lesson": _object(
        id=TEXT,
        azimuth=NUMBER,
        seconds=NUMBER,
        who=TEXT,
        state={"enum": ["recording", "learning", "done", "failed", "cancelled"]},
        frames=COUNT,
        lesson=or_null(TEXT),
        before=or_null(DIGEST),
        digest=or_null(DIGEST),
        recorded=NUMBER,
        heard=NUMBER,
        error=or_null(TEXT),
    ),
    "Learned": _object(frames=COUNT, lesson=TEXT, before=DIGEST, digest=DIGEST),
    "Forgotten": _object(frames=COUNT, lessons=COUNT, before=DIGEST, digest=DIGEST),
    "Takes": _object(
        takes=array_of(_object(id=COUNT, azimuth=or_null(NUMBER), seconds=NUMBER, heard=NUMBER)),
        recording=TRUTH,
        most=COUNT,
    ),
    "Dropped": _object(dropped=COUNT),
    "Checked": _object(
        findings=array_of(
            _object(
                kind={"enum": ["fault", "cannot tell", "fine"]},
                what=TEXT,
                evidence=TEXT,
                confidence=TEXT,
                remedy=TEXT,
            )
        ),
        array_toml=or_null(TEXT),
    ),
}
