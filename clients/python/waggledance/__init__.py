"""Waggle for Python: submit tasks, run agents, hold slots, follow events. Needs no other package.

    import waggledance

    with waggledance.connect() as swarm:
        with swarm.agent(["shout"], lambda task: task.text().upper(), max_concurrent=4):
            print(swarm.submit("shout", "hello").result())  # HELLO

Every method may be called from any thread. Handlers run in separate threads. Durations are seconds, except fields of
messages that end in `_ms`. Errors are `WaggleError` with a stable `code`. docs/protocol.md describes the messages.
"""
from .agent import Agent, Slot
from .attempt import Attempt, Infrastructure, InvalidInput
from .client import Chunk, Swarm, Task, connect
from .connection import __version__
from .wire import OnHold, WaggleError

__all__ = ["connect", "Swarm", "Task", "Chunk", "Agent", "Attempt", "Slot", "InvalidInput", "Infrastructure", "OnHold",
           "WaggleError"]
