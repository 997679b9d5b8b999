"""The argument of a handler: an attempt of a task, with chunks, slots and the report. And the handler's errors."""
import asyncio, base64, email.utils, inspect, json, math, threading, time

from .wire import PAYLOAD_BYTES, OnHold, WaggleError, decoded, encoded, require

CHUNK_SECONDS = 0.05  # between two messages of chunks
ABORT_SECONDS = 0.2  # until an abort cancels a coroutine
CHUNK_BYTES, CHUNKS_BYTES = 128 * 1024, 256 * 1024  # of one chunk; of several in one message, as JSON
HOLD_MS = 7 * 24 * 3600 * 1000  # the longest hold


def wait_of(retry_after=None, until=None):
    """The time until a provider accepts work again, as a field of messages: from 0 ms to 7 days, or no field for a time
    that cannot be read.

    `retry_after`: seconds, or the text of a `Retry-After` header. `until`: a datetime, seconds since 1970, or an HTTP
    date."""
    try:
        if isinstance(retry_after, str) and ":" in retry_after:
            retry_after, until = None, retry_after
        if retry_after is None:
            if isinstance(until, str):
                until = email.utils.parsedate_to_datetime(until)
            retry_after = (until.timestamp() if hasattr(until, "timestamp") else float(until)) - time.time()
        seconds = float(retry_after)
        return {"forMs": round(min(max(0.0, seconds * 1000), HOLD_MS))} if math.isfinite(seconds) else {}
    except (TypeError, ValueError, OverflowError):
        return {}


class InvalidInput(Exception):
    """Raised by a handler for a wrong payload. The task fails without a retry."""


class Infrastructure(Exception):
    """Raised by a handler when the environment is at fault, such as a provider that is down. The task is tried again,
    and the attempt does not count.

    With `retry_after`, `until` or `scope`, the work was refused, for example by a quota, and the swarm places a hold.
    `retry_after`: seconds, or the text of a `Retry-After` header. `until`: a datetime, or seconds since 1970. `scope`:
    "type" puts all agents of the agent's type on hold, {"resource": "gpt-4o"} the resource. Default: the agent alone.
    Without a readable time the swarm chooses the length of the hold."""

    def __init__(self, message="", retry_after=None, scope=None, until=None):
        super().__init__(message)
        self.hold = {**wait_of(retry_after, until), **({} if scope is None else {"scope": scope})}


def release_after(error, resources):
    """The arguments of `Slot.release` after work that ended with `error`, or with None for success. Only an
    `Infrastructure` with a held resource as scope is a refusal by the resource."""
    if error is None:
        return {}
    hold = error.hold if isinstance(error, Infrastructure) else {}
    scope = hold.get("scope")
    resource = scope.get("resource") if isinstance(scope, dict) else None
    if resource is None or resource not in resources:
        return {"unanswered": True}
    seconds = hold["forMs"] / 1000 if "forMs" in hold else None
    return {"refused": True, "retry_after": seconds, "resource": resource, "reason": str(error)}


def joined(yielded):
    """The result of a generator without a return value."""
    if not yielded:
        return None
    if all(isinstance(each, str) for each in yielded):
        return "".join(yielded)
    if all(isinstance(each, (str, bytes, bytearray)) for each in yielded):
        return b"".join(each.encode() if isinstance(each, str) else each for each in yielded)
    return [base64.b64encode(each).decode() if isinstance(each, (bytes, bytearray)) else each for each in yielded]


def key_of(attempt):
    return attempt["project"], attempt["task"], attempt["attempt"]


class Attempt:
    """The argument of a handler: one attempt of a task.

    `id`, `project`, `kind` and `user` are the task's; `attributes` is the submitter's dict; `payload` is text or bytes.
    `attempt` is the number of the attempt, from 1. `aborted` is an Event: end soon after it is set."""

    def __init__(self, agent, assignment, incarnation):
        self.agent, self.assignment, self.incarnation, self.key = agent, assignment, incarnation, key_of(assignment)
        self.project, self.id, self.attempt = self.key
        self.kind, self.user = assignment["kind"], assignment["user"]
        self.attributes = assignment.get("attributes", {})
        self.payload = decoded(assignment["payload"], assignment.get("encoding"))
        self.aborted, self.is_revoked, self.tokens, self.slots = threading.Event(), False, None, []
        self.lock, self.waiting, self.sent, self.sent_at, self.timer = threading.Lock(), [], 0, 0.0, None

    @property
    def holder(self):
        """The attempt's name as a holder of slots."""
        return f"{self.incarnation}.{self.assignment['number']}"

    @property
    def name(self):
        return {"project": self.project, "task": self.id, "attempt": self.attempt}

    def text(self):
        """The payload as text. @raises UnicodeDecodeError for bytes that are not UTF-8"""
        return self.payload.decode() if isinstance(self.payload, bytes) else self.payload

    def json(self):
        """The payload as a value of JSON. @raises InvalidInput when the payload is not JSON"""
        try:
            return json.loads(self.payload)
        except ValueError as cause:
            raise InvalidInput(f"the payload is not JSON: {cause}") from None

    def emit(self, chunk):
        """Sends a part of the result before the end of the attempt. Does nothing for a task without `stream`.
        @raises ValueError beyond 128 KiB"""
        part = encoded(chunk, "chunk", CHUNK_BYTES)
        if not self.assignment.get("stream"):
            return
        with self.lock:
            self.waiting.append(part)
            if self.timer is None:
                self.timer = threading.Timer(max(0.0, self.sent_at + CHUNK_SECONDS - time.monotonic()), self.flush)
                self.timer.daemon = True
                self.timer.start()

    def flush(self):
        with self.lock:
            waiting, self.waiting, self.timer, self.sent_at = self.waiting, [], None, time.monotonic()
            start, size = 0, 0
            for at, part in enumerate(waiting):
                own = len(json.dumps(part)) + 2
                if size + own > CHUNKS_BYTES and at > start:
                    self.send(waiting[start:at])
                    start, size = at, 0
                size += own
            if waiting:
                self.send(waiting[start:])

    def send(self, chunks):
        self.agent.publish("chunk", {**self.name, "first": self.sent, "chunks": chunks})
        self.sent += len(chunks)

    def progress(self, fraction=None, message=None):
        """Reports progress to observers, and restarts the stall limit (`stall_ms`). `fraction`: from 0 to 1. Call it at
        most four times per second."""
        more = {"fraction": fraction, "message": None if message is None else message[:1024]}
        self.agent.publish("progress", {**self.name, **{name: each for name, each in more.items() if each is not None}})

    def report_tokens(self, count):
        """Adds used tokens. The project's budget is charged with the sum.
        @raises WaggleError WAGGLE_INVALID_MESSAGE unless `count` is a whole number"""
        self.tokens = (self.tokens or 0) + require(count, 0, "report_tokens", "count")

    def acquire(self, *resources, project=None, user=None, tokens=None, **terms):
        """As `Swarm.acquire`, for the attempt. The end of the attempt releases the slots, and an abort ends the wait.

        Project and user are the task's. The attempt is charged for the tokens that `slot.report` counts, or else for
        `tokens`. While the attempt holds slots, `acquire` accepts only resources with names after the held ones."""
        if project not in (None, self.project):
            message = f"acquire: project: must be the task's project in a handler, {self.project!r}"
            raise WaggleError("WAGGLE_INVALID_MESSAGE", message, "project")
        slot = self.agent.acquire(*resources, attempt=self, **terms)
        slot.expected = tokens
        self.slots.append(slot)
        return slot

    def run(self):
        """Calls the handler. @returns the report of the attempt"""
        failure = None
        try:
            given = self.agent.handler(self)
            if inspect.isgenerator(given):
                given = self.drain(given)
            elif inspect.isawaitable(given) or inspect.isasyncgen(given):
                given = asyncio.run(self.awaited(given))
            result = {} if given is None else encoded(given, "result", PAYLOAD_BYTES)
            report = {"outcome": "completed", **({"result": result.pop("text")} if result else {}), **result}
        except InvalidInput as error:
            failure = error
            report = {"outcome": "invalid", "error": str(error)[:1024]}
        except OnHold as error:
            failure, hold = error, {"scope": {"resource": error.resource}}
            report = {"outcome": "infrastructure", "error": error.message[:1024], "hold": hold}
        except Infrastructure as error:
            failure = error
            report = {"outcome": "infrastructure", "error": str(error)[:1024], "hold": error.hold}
        except BaseException as error:  # every exception of a handler counts against the agent, also of sys.exit()
            failure = error
            report = {"outcome": "failed", "error": (str(error) or repr(error))[:1024]}
        if self.aborted.is_set() and report["outcome"] != "completed":
            report = {"outcome": "revoked"}
        for slot in self.slots:
            try:
                if not slot.released:  # a hold is placed before the slot is free
                    slot.lost.set()  # for threads that the handler left running
                    slot.release(**release_after(failure, slot.resources))
            except WaggleError:
                pass  # heartbeats no longer list the slot, so the leader takes the slot back
        self.flush()
        used = {} if self.tokens is None else {"tokens": self.tokens}
        return {**self.name, "token": self.assignment["token"], **report, **used}

    def drain(self, parts):
        yielded = []
        try:
            while not self.aborted.is_set():
                yielded.append(next(parts))
                self.emit(yielded[-1])
            raise RuntimeError("aborted")
        except StopIteration as end:
            return joined(yielded) if end.value is None else end.value
        finally:
            parts.close()

    async def awaited(self, given):
        """The result of a coroutine or an asynchronous generator, which an abort of the attempt cancels."""
        work = asyncio.ensure_future(self.drain_async(given) if inspect.isasyncgen(given) else given)
        while not (work.done() or self.aborted.is_set()):
            await asyncio.wait([work], timeout=ABORT_SECONDS)
        work.cancel()
        return await work

    async def drain_async(self, parts):
        yielded = []
        async for part in parts:
            yielded.append(part)
            self.emit(part)
        return joined(yielded)
