from __future__ import annotations

from tytoalba.live.outputs import rates
from tytoalba.live.outputs.rates import Rates, network_of


def test_a_bucket_fills_again_and_never_beyond_its_size() -> None:
    now = 0.0
    limit = Rates(10.0, 5, clock=lambda: now)
    assert [limit.allow("a") for _ in range(7)] == [True] * 5 + [False] * 2
    now = 0.1
    assert [limit.allow("a") for _ in range(2)] == [True, False]
    now = 1000.0
    assert [limit.allow("a") for _ in range(6)] == [True] * 5 + [False]


def test_many_addresses_take_no_memory() -> None:
    limit = Rates(1.0, 1, clock=lambda: 0.0)
    assert all(limit.allow(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}") for n in range(3 * rates.MOST_ADDRESSES))
    assert len(limit._left) == rates.MOST_ADDRESSES
    assert not limit.allow("10.0.47.255")  # the newest is remembered


def test_one_who_has_many_addresses_counts_once() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:192.0.2.7") == "192.0.2.7"
    assert network_of("fe80::1%eth0") == "fe80::/64"
