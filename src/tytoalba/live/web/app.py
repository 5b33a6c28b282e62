"""The routes: what is asked, checked and handed on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tytoalba.errors import TytoError
from tytoalba.live.outputs.rates import Rates
from tytoalba.live.web.bodies import name_of, number, query, read_object
from tytoalba.live.web.guard import Guard, answer_of
from tytoalba.live.web.hosts import Hosts
from tytoalba.live.web.lessons import LONGEST_LESSON, Lessons
from tytoalba.live.web.openapi import described
from tytoalba.live.web.pages import page_files
from tytoalba.live.web.recording import refuse_unfit
from tytoalba.live.web.refusals import Refusal
from tytoalba.live.web.sessions import Sessions
from tytoalba.live.web.station import Station
from tytoalba.live.web.takes import LONGEST_TAKE, Takes
from tytoalba.live.web.uploads import Uploads

RATES = (100.0, 200)
"""Requests of one address: per second, and at once."""
SHORTEST = 1.0
"""Seconds of a lesson or a take."""
TURN = 360.0


class Api:
    """The answers of /api."""

    def __init__(self, station: Station, sessions: Sessions) -> None:
        self.station, self.sessions = station, sessions
        self.lessons, self.takes = Lessons(station), Takes(station)
        self.uploads = Uploads(station.array, station.parts.method)
        self.guard: Guard | None = None
        self.document = described(needs_token=sessions.needs_token)

    # ---- what is here ----

    async def state(self, request: Request) -> Any:
        """What is here."""
        query(request, set())
        return self.station.state()

    async def update(self, request: Request) -> Response:
        """The newest frame."""
        query(request, set())
        if self.station.newest is None:
            raise Refusal(503, "nothing was heard yet: try again in a moment")
        return Response(self.station.newest, media_type="application/json")

    async def doa(self, request: Request) -> Any:
        """The direction as Reachy Mini tells it."""
        query(request, set())
        if (told := self.station.doa.told) is None:
            raise Refusal(503, "nobody spoke yet")
        return told

    async def localizer(self, request: Request) -> Any:
        """What is stored."""
        query(request, set())
        return await asyncio.to_thread(self.station.stored.facts)

    async def openapi(self, request: Request) -> Any:
        """The description of all this."""
        query(request, set())
        return self.document

    async def live(self, socket: WebSocket) -> None:
        """The live channel."""
        await self.station.fanout.attend(socket)

    # ---- sessions ----

    async def sign_in(self, request: Request) -> Response:
        """A token for a cookie."""
        query(request, set())
        given = (await read_object(request, {"token"})).get("token")
        if not isinstance(given, str):
            raise Refusal(400, 'send {"token": "..."}')
        if not self.sessions.needs_token:
            return Response(status_code=204)
        assert self.guard
        if not self.guard.is_right(given, request.client.host if request.client else ""):
            raise Refusal(401, "this is not the token")
        return Response(status_code=204, headers={"Set-Cookie": self.sessions.cookie(self.sessions.new())})

    async def sign_out(self, request: Request) -> Response:
        """Take the cookie away."""
        query(request, set())
        return Response(status_code=204, headers={"Set-Cookie": self.sessions.cookie()})

    # ---- recordings ----

    async def locate(self, request: Request) -> Any:
        """Who is where in a recording."""
        query(request, set())
        located = await self.uploads.located(request, self.station.localizer)
        return Response(located, media_type="application/json")

    # ---- lessons ----

    async def teach(self, request: Request) -> Response:
        """Begin a lesson by speaking."""
        query(request, set())
        given = await read_object(request, {"azimuth", "seconds", "who"})
        azimuth = number(given.get("azimuth"), "azimuth", -TURN, TURN)
        seconds = number(given.get("seconds", 5), "seconds", SHORTEST, LONGEST_LESSON)
        lesson = self.lessons.start(azimuth, seconds, name_of(given.get("who", "")))
        return JSONResponse({"id": lesson.id}, 202)

    async def teach_upload(self, request: Request) -> Any:
        """Teach from a recording."""
        given = query(request, {"azimuth", "who"})
        azimuth = number(given.get("azimuth"), "azimuth", -TURN, TURN)
        who, stored = name_of(given.get("who", "")), self.station.stored
        if why := stored.why_not_teach:
            raise Refusal(409, why)
        samples = await self.uploads.decoded(request)
        refuse_unfit(samples, self.station.array)
        changed = await asyncio.to_thread(stored.teach, samples, azimuth, who)
        (lesson,) = changed.lessons
        return {
            "frames": changed.n_frames,
            "lesson": lesson,
            "before": changed.before,
            "digest": changed.digest,
        }

    async def current_lesson(self, request: Request) -> Any:
        """The lesson that runs."""
        query(request, set())
        return self.lessons.current.told

    async def last_lesson(self, request: Request) -> Any:
        """The last lesson, whatever became of it."""
        query(request, set())
        if self.lessons.last is None:
            raise Refusal(404, "there was no lesson yet")
        return self.lessons.last.told

    async def cancel_lesson(self, request: Request) -> Any:
        """Cancel the lesson that runs."""
        query(request, set())
        return {"id": self.lessons.cancel().id}

    async def forget(self, request: Request) -> Any:
        """Forget lessons that were kept."""
        given = query(request, {"who", "id"})
        if not given:
            raise Refusal(400, "say which lessons to forget: ?who=NAME, or ?id=LESSON")
        who = name_of(given["who"]) if "who" in given else None
        changed = await asyncio.to_thread(self.station.stored.forget, who, given.get("id"))
        return {
            "frames": changed.n_frames,
            "lessons": len(changed.lessons),
            "before": changed.before,
            "digest": changed.digest,
        }

    # ---- takes ----

    async def take(self, request: Request) -> Response:
        """Begin to record a take."""
        query(request, set())
        given = await read_object(request, {"azimuth", "seconds"})
        azimuth = given.get("azimuth")
        known = None if azimuth is None else number(azimuth, "azimuth", -TURN, TURN)
        seconds = number(given.get("seconds", 3), "seconds", SHORTEST, LONGEST_TAKE)
        return JSONResponse({"id": self.takes.start(known, seconds)}, 202)

    async def list_takes(self, request: Request) -> Any:
        """The takes, without their sound."""
        query(request, set())
        return self.takes.told

    async def drop_takes(self, request: Request) -> Any:
        """Forget the takes."""
        query(request, set())
        return {"dropped": self.takes.drop()}

    async def check(self, request: Request) -> Any:
        """What the takes say of the array."""
        query(request, set())
        return await self.takes.check()


def routes_of(api: Api) -> dict[str, dict[str, Callable[[Request], Awaitable[Any]]]]:
    """Every path of /api, its methods and who answers them; `openapi` describes exactly these."""
    return {
        "/api/state": {"GET": api.state},
        "/api/update": {"GET": api.update},
        "/api/state/doa": {"GET": api.doa},
        "/api/session": {"POST": api.sign_in, "DELETE": api.sign_out},
        "/api/locate": {"POST": api.locate},
        "/api/localizer": {"GET": api.localizer},
        "/api/lessons": {"POST": api.teach, "DELETE": api.forget},
        "/api/lessons/upload": {"POST": api.teach_upload},
        "/api/lessons/current": {"GET": api.current_lesson, "DELETE": api.cancel_lesson},
        "/api/lessons/last": {"GET": api.last_lesson},
        "/api/takes": {"POST": api.take, "GET": api.list_takes, "DELETE": api.drop_takes},
        "/api/check": {"GET": api.check},
        "/api/openapi.json": {"GET": api.openapi},
    }


def make_app(station: Station, hosts: Hosts, sessions: Sessions, rates: Rates | None = None) -> Guard:
    """Everything that is served, as an ASGI application."""
    api = Api(station, sessions)
    routes: list[Any] = [
        Route(path, _by_method(answers), methods=list(answers)) for path, answers in routes_of(api).items()
    ]
    page = page_files()
    routes += [Route(path, file.answer, methods=["GET"]) for path, file in page.items()]
    if station.parts.report is not None:
        routes.append(Route("/report", station.parts.report.answer, methods=["GET"]))
    routes.append(WebSocketRoute("/api/live", api.live))

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        await station.start()
        try:
            yield
        finally:
            await api.lessons.close()
            await api.takes.close()
            await station.stop()

    handlers: dict[Any, Any] = {TytoError: _refused, HTTPException: _unknown, Exception: _refused}
    app = Starlette(routes=routes, lifespan=running, exception_handlers=handlers)
    app.router.redirect_slashes = False
    api.guard = Guard(
        app,
        hosts=hosts,
        sessions=sessions,
        rates=rates or Rates(*RATES),
        fanout=station.fanout,
        page=page,
        unexpected=station.unexpected,
    )
    return api.guard


def _by_method(
    answers: dict[str, Callable[[Request], Awaitable[Any]]],
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        found = await answers["GET" if request.method == "HEAD" else request.method](request)
        return found if isinstance(found, Response) else JSONResponse(found)

    return answer


async def _refused(_: Request, error: Exception) -> Response:
    return answer_of(error)


async def _unknown(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {
        404: "there is nothing here; /api/openapi.json says what is",
        405: "this path takes other methods",
    }
    text = texts.get(error.status_code, "this request cannot be answered")
    return JSONResponse({"error": text}, error.status_code, error.headers)
