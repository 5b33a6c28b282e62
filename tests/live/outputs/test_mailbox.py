from __future__ import annotations

import asyncio

from tytoalba.live.outputs.mailbox import LONGEST_QUEUE, Mailbox


def taken(box: Mailbox, n: int) -> list[str]:
    async def take() -> list[str]:
        return [await asyncio.wait_for(box.get(), 5) for _ in range(n)]

    return asyncio.run(take())


def test_the_oldest_updates_are_lost_and_news_are_not() -> None:
    box = Mailbox()
    box.tell("lesson", "recording")
    for number in range(1000):
        box.put(str(number))
    box.tell("state", "listening")
    box.tell("lesson", "done")
    assert len(box) == LONGEST_QUEUE + 2
    assert taken(box, LONGEST_QUEUE + 2) == [
        "done",
        "listening",
        *map(str, range(1000 - LONGEST_QUEUE, 1000)),
    ]


def test_who_waits_gets_the_next_message() -> None:
    async def wait() -> str:
        box = Mailbox()
        waiting = asyncio.create_task(box.get())
        await asyncio.sleep(0)
        box.put("now")
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(wait()) == "now"
