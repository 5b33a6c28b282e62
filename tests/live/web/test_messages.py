from __future__ import annotations

import json

import numpy as np
import pytest

from tests.helpers.updates import frame, track
from tytoalba.live.segments import Moment
from tytoalba.live.update import Update
from tytoalba.live.web.messages import MOST_COLUMNS, Map, update_message


def test_a_frame_has_the_update_and_its_scores() -> None:
    moment = frame(3, track(1, 77.0, probability=0.5))
    update = Update.of(moment, latency=0.01)
    told = json.loads(json.dumps(update_message(update, moment)))
    assert told.pop("type") == "update"
    scores = told.pop("scores")
    assert told == json.loads(update.json)
    assert (len(scores), scores[77], sum(scores)) == (360, 500, 500)


def test_silence_has_no_scores_and_mirror_images_have_none() -> None:
    assert update_message(Update(0.1, (), -90.0), Moment(0.1, -90.0, ()))["scores"] is None
    scores = np.full(360, -np.inf)
    assert update_message(Update(0.1, (), -9.0), Moment(0.1, -9.0, (), scores))["scores"] == [0] * 360


@pytest.mark.parametrize("n_frames", [0, 1, 7, MOST_COLUMNS, MOST_COLUMNS + 1, 5 * MOST_COLUMNS])
def test_a_map_has_few_columns_and_means_of_all_frames(n_frames: int) -> None:
    columns = Map()
    scores = np.zeros(360)
    scores[100] = 0.8
    for _ in range(n_frames):
        columns.add(scores)
    told = columns.told
    width = told["frames_per_column"]
    assert told["columns"] == len(told["scores"]) == -(-n_frames // width) <= MOST_COLUMNS
    assert all(column[33] == 80 and sum(column) == 80 for column in told["scores"])


def test_silent_frames_count_as_nothing() -> None:
    columns = Map()
    for number in range(2 * MOST_COLUMNS):
        columns.add(np.full(360, 0.5) if number % 2 else None)
    assert columns.told["scores"] == [[25] * 120] * MOST_COLUMNS
