"""Notifies other nodes of changed cache versions through Redis (ARCHITECTURE: "Several nodes").

A process that bumps a cache version notifies the processes of all nodes, which then read the cache versions at the next
use instead of up to CHECK_SECONDS later. A lost notification costs only that delay, so nothing waits for one.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable

import redis
from redis.backoff import EqualJitterBackoff

logger = logging.getLogger(__name__)

#: Seconds. The interval between attempts to reach Redis grows.
_BACKOFF = EqualJitterBackoff(cap=30.0, base=0.5)
_CONNECT_SECONDS = 1.0


class CacheVersionSignals:
    """A Redis channel: `announce` notifies the other processes, `on_signal` is called for their notifications."""

    def __init__(self, url: str, channel: str, on_signal: Callable[[], None]) -> None:
        self._sender = uuid.uuid4().hex.encode()
        self.channel = channel
        self._on_signal = on_signal
        self._redis = redis.Redis.from_url(
            url, socket_connect_timeout=_CONNECT_SECONDS, socket_timeout=_CONNECT_SECONDS, health_check_interval=30
        )
        self.listening = threading.Event()
        threading.Thread(target=self._listen, name="cache-version-signals", daemon=True).start()

    def announce(self) -> None:
        """Notify the other processes that some cache version has changed."""
        try:
            self._redis.publish(self.channel, self._sender)
        except redis.RedisError as error:
            logger.warning("Other processes notice this change a little later: Redis cannot be reached: %s", error)

    def _listen(self) -> None:
        failures = 0
        wait = threading.Event()
        while True:
            try:
                with self._redis.pubsub() as channel:  # type: ignore[no-untyped-call]
                    channel.subscribe(self.channel)
                    while True:
                        message = channel.get_message(timeout=30.0)
                        if message is None:
                            continue
                        failures = 0
                        if message["type"] == "subscribe":
                            self.listening.set()
                        # The subscription itself counts as a notification: changes before it were missed.
                        if message.get("data") != self._sender:
                            self._on_signal()
            except (redis.RedisError, OSError) as error:
                self.listening.clear()
                failures += 1
                if failures == 1:
                    logger.warning("Change signals through Redis are interrupted: %s", error)
                wait.wait(_BACKOFF.compute(failures))
