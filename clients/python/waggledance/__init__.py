"""Waggle for Python: submit tasks, run agents, hold slots, follow events. The standard library is enough.

    import waggledance

    with waggledance.connect() as swarm:
        with swarm.agent(["shout"], lambda task: task.text().upper(), max_concurrent=4):
            print(swarm.submit("shout", "hello").result())  # HELLO

The wire is docs/protocol.md. Every method may be called from any thread; handlers run in threads of their own. Times
are seconds. Errors of the swarm are `WaggleError` with a stable `code`.
"""
from .agent import Agent, Slot
from .attempt import Attempt, Infrastructure, InvalidInput
from .client import Chunk, Swarm, Task, connect
from .connection import OnHold, WaggleError, __version__

__all__ = ["connect", "Swarm", "Task", "Chunk", "Agent", "Attempt", "Slot", "InvalidInput", "Infrastructure", "OnHold", "WaggleError"]
