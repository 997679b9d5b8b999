"""An agent: joins, sends heartbeats, runs attempts in threads, reports results until they are answered, holds slots.

Leases: an attempt or a slot counts while a leader confirms the heartbeats. Without a confirmation for most of a lease the
agent aborts what it runs, for another agent may have it. Assignments that arrive then wait for the next confirmation.
"""
import inspect, json, threading, time

from .client import PAYLOAD_BYTES, WaggleError, decoded, encoded, error_of, fresh

CHUNK_SECONDS = 0.05  # between two messages of chunks
CHUNK_BYTES, CHUNKS_BYTES = 128 * 1024, 256 * 1024  # of one chunk; of several in one message, as JSON
SAFE_SHARE = 0.8  # of a lease
FOREVER = 1e9


class InvalidInput(Exception):
    """Raised by a handler: the payload is at fault. The task ends, without a retry."""


class Infrastructure(Exception):
    """Raised by a handler: the environment is at fault. The task is tried again, and the attempt does not count.

    `retry_after` (seconds) or `scope`: something refused the work, as a quota does. The agent is on hold for so long; with
    `scope` "type" all agents of its type, with {"resource": "gpt-4o"} the resource. Without a time the swarm guesses."""

    def __init__(self, message="", retry_after=None, scope=None):
        super().__init__(message)
        self.hold = {} if retry_after is None else {"forMs": round(retry_after * 1000)}
        self.hold.update({} if scope is None else {"scope": scope})


def key_of(attempt):
    return attempt["project"], attempt["task"], attempt["attempt"]


class Attempt:
    """What a handler gets: `id`, `attempt`, `kind`, `project`, `user`, `attributes` (a dict of texts), `payload` (text or
    bytes), `aborted` (an Event)."""

    def __init__(self, agent, assignment, incarnation):
        self.agent, self.assignment, self.incarnation, self.key = agent, assignment, incarnation, key_of(assignment)
        self.project, self.id, self.attempt = self.key
        self.kind, self.user = assignment["kind"], assignment["user"]
        self.attributes = assignment.get("attributes", {})
        self.payload = decoded(assignment["payload"], assignment.get("encoding"))
        self.aborted, self.is_revoked, self.tokens, self.slots = threading.Event(), False, None, []
        self.lock, self.waiting, self.sent, self.sent_at, self.timer = threading.Lock(), [], 0, 0.0, None

    @property
    def name(self):
        return {"project": self.project, "task": self.id, "attempt": self.attempt}

    def text(self):
        return self.payload.decode() if isinstance(self.payload, bytes) else self.payload

    def json(self):
        """@raises InvalidInput when the payload is not JSON"""
        try:
            return json.loads(self.payload)
        except ValueError as cause:
            raise InvalidInput(f"the payload is not JSON: {cause}")

    def emit(self, chunk):
        """Sends a part of the result at once, if the task was submitted with `stream`. @raises ValueError beyond 128 KiB"""
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
        self.agent.tell("chunk", {**self.name, "first": self.sent, "chunks": chunks})
        self.sent += len(chunks)

    def progress(self, fraction=None, message=None):
        """Resets the stall limit, and is shown to watchers. Call it at most four times a second."""
        more = {"fraction": fraction, "message": None if message is None else message[:1024]}
        self.agent.tell("progress", {**self.name, **{name: each for name, each in more.items() if each is not None}})

    def report_tokens(self, count):
        """Adds used tokens: the project's budget is charged with the sum."""
        self.tokens = (self.tokens or 0) + count

    def acquire(self, *resources, **terms):
        """As `Swarm.acquire`, for this attempt: at its end, its slots are released."""
        slot = self.agent.acquire(*resources, **terms)
        self.slots.append(slot)
        return slot

    def run(self):
        """Calls the handler. @returns the report of the result"""
        try:
            given = self.agent.handler(self)
            if inspect.isgenerator(given):
                given = self.drain(given)
            result = {} if given is None else encoded(given, "result", PAYLOAD_BYTES)
            report = {"outcome": "completed", **({"result": result.pop("text")} if result else {}), **result}
        except InvalidInput as error:
            report = {"outcome": "invalid", "error": str(error)[:1024]}
        except Infrastructure as error:
            report = {"outcome": "infrastructure", "error": str(error)[:1024], **({"hold": error.hold} if error.hold else {})}
        except Exception as error:  # whatever a handler raises counts against the agent
            report = {"outcome": "failed", "error": (str(error) or repr(error))[:1024]}
        if self.aborted.is_set() and report["outcome"] != "completed":
            report = {"outcome": "revoked"}
        for slot in self.slots:
            slot.release()
        self.flush()
        return {**self.name, "token": self.assignment["token"], **report, **({} if self.tokens is None else {"tokens": self.tokens})}

    def drain(self, parts):
        yielded = []
        try:
            while not self.aborted.is_set():
                yielded.append(next(parts))
                self.emit(yielded[-1])
            raise RuntimeError("aborted")
        except StopIteration as end:
            if end.value is not None or not yielded:
                return end.value
            kind = type(yielded[0])
            return kind().join(yielded) if kind in (str, bytes) and all(type(each) is kind for each in yielded) else yielded
        finally:
            parts.close()


class Slot:
    """Held slots. Release them, or leave the context manager. `lost` is set when the lease was lost: stop the use."""

    def __init__(self, agent, handle, resources):
        self.agent, self.handle, self.resources = agent, handle, resources
        self.granted, self.lost, self.reason, self.usage = threading.Event(), threading.Event(), None, {}

    def report(self, tokens, *, partial=False):
        """Adds tokens used; the sum is charged at the release. `partial`: the work was cut off."""
        self.usage = {"usage": {"tokens": self.usage.get("usage", {}).get("tokens", 0) + tokens, **({"partial": True} if partial else {})}}

    def touch(self):
        """Starts the idle time anew: call it a few times per idle time. @returns whether the slots are held"""
        return self.agent.ask("touch", {"handle": self.handle})["state"] == "held"

    def release(self, *, retry_after=None, reason=""):
        """Idempotent. `retry_after`, seconds: the provider refused the work, and its resources go on hold before the slots are
        free. @raises WaggleError when no leader answers"""
        refused = {} if retry_after is None else {"refused": {"forMs": round(retry_after * 1000), "reason": reason[:1024]}}
        if self.agent.slots.pop(self.handle, None):
            self.agent.ask("release", {"handle": self.handle, **self.usage, **refused})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


class Agent:
    """A running agent (`Swarm.agent`). `error` tells why it ended by itself."""

    def __init__(self, swarm, id, group, handler, profile):
        self.nats, self.id, self.handler, self.profile = swarm.nats, id, handler, profile
        self.prefix, self.term, self.lock, self.changed = f"{swarm.prefix}.agent.{group}.{id}", 0, threading.RLock(), threading.Event()
        self.is_draining, self.is_over, self.error, self.ended = False, False, None, threading.Event()
        self.running, self.slots = 0, {}  # handlers of all incarnations; slots by handle
        self.reports, self.has_reports, self.ttl, self.period = [], threading.Event(), 10.0, 1.0
        self.begin()
        self.subscription = self.nats.subscribe(self.prefix + ".assign", lambda _, data: self.pushed(json.loads(data)))
        self.nats.on_connected.append(self.changed.set)
        self.join()
        for work in (self.live, self.report):
            threading.Thread(target=work, daemon=True).start()

    def begin(self):
        """A new incarnation: a new session without memory."""
        self.incarnation, self.seen, self.early, self.held, self.deferred = fresh(), 0, set(), {}, []
        self.confirmed_at, self.must_join = -FOREVER, True

    def ask(self, verb, message, patience=30.0):
        incarnation = self.incarnation
        still = lambda: not self.ended.is_set() and self.incarnation == incarnation
        return self.nats.ask(f"{self.prefix}.{verb}", {"incarnation": incarnation, **message}, patience, still)

    def tell(self, verb, message):
        self.nats.publish(f"{self.prefix}.{verb}", {"incarnation": self.incarnation, **message})

    def join(self):
        sent_at = time.monotonic()
        free = self.profile["maxConcurrent"] - self.running
        answer = self.ask("join", {**self.profile, "maxConcurrent": max(1, free), "seen": self.seen, "held": self.listed()})
        with self.lock:
            self.ttl, self.period = answer["leaseTtlMs"] / 1000, answer["heartbeatMs"] / 1000
            self.term, self.confirmed_at, self.must_join = max(self.term, answer["term"]), sent_at, False
            self.revoke(answer["unknown"])
            self.obey_deferred()

    def listed(self):
        return [attempt.name for attempt in list(self.held.values())]

    def is_recent(self):
        return time.monotonic() - self.confirmed_at < self.ttl * SAFE_SHARE - 2 * self.period

    def pushed(self, push):
        with self.lock:
            if push["incarnation"] != self.incarnation or push["term"] < self.term:
                return
            self.term, kind = push["term"], push["type"]
            if kind in ("assign", "slots-granted") and not self.is_recent():
                self.deferred.append(push)
                return self.changed.set()
            self.obey(push)

    def obey_deferred(self):
        deferred, self.deferred = self.deferred, []
        for push in deferred:
            self.obey(push)

    def obey(self, push):
        kind = push["type"]
        if kind == "assign":
            for assignment in push["assignments"]:
                self.start(assignment)
        elif kind == "revoke":
            self.revoke(push["attempts"])
        elif kind in ("drain", "undrain"):
            self.is_draining = kind == "drain"
        elif kind in ("rejoin", "fenced"):
            self.abort()
            if kind == "fenced":
                self.fail(WaggleError("WAGGLE_FENCED", f"another process joined as {self.id}: give each its own id"))
            self.begin()
        elif kind == "slots-granted":
            for handle in push["handles"]:
                if handle in self.slots:
                    self.slots[handle].granted.set()
        elif kind in ("slots-revoked", "slot-waits-ended"):
            for each in push.get("waits") or [{"handle": handle, "reason": "revoked"} for handle in push["handles"]]:
                if slot := self.slots.pop(each["handle"], None):
                    slot.reason = each["reason"]
                    slot.lost.set()
                    slot.granted.set()

    def start(self, assignment):
        number = assignment["number"]
        if number <= self.seen or number in self.early:
            return  # a repetition
        self.early.add(number)
        while self.seen + 1 in self.early:
            self.seen += 1
            self.early.discard(self.seen)
        attempt = Attempt(self, assignment, self.incarnation)
        self.held[attempt.key] = attempt
        if assignment.get("revoked"):
            return self.reported(attempt, {**attempt.name, "token": assignment["token"], "outcome": "revoked"})
        self.running += 1
        threading.Thread(target=self.work, args=(attempt,), daemon=True).start()

    def work(self, attempt):
        report = attempt.run()
        with self.lock:
            self.running -= 1
            self.reported(attempt, report)
        self.changed.set()

    def reported(self, attempt, report):
        if attempt.incarnation == self.incarnation:
            self.reports.append((attempt, report))
            self.has_reports.set()

    def report(self):
        """Sends results until each is answered: an attempt is held until then."""
        while not self.ended.is_set():
            self.has_reports.wait(0.5)
            with self.lock:
                batch = [(attempt, report) for attempt, report in self.reports if attempt.incarnation == self.incarnation][:256]
                self.has_reports.clear()
            try:
                if batch:
                    self.ask("result", {"results": [report for _, report in batch]}, FOREVER)
            except WaggleError as error:
                if error.code in ("WAGGLE_NO_LEADER", "WAGGLE_UNREACHABLE"):
                    continue  # of an earlier incarnation, or the agent ends
                self.fail(error)
            with self.lock:
                done = {id(attempt) for attempt, _ in batch}
                self.reports = [each for each in self.reports if id(each[0]) not in done]
                for attempt, _ in batch:
                    if self.held.get(attempt.key) is attempt:
                        del self.held[attempt.key]

    def revoke(self, attempts):
        for each in attempts:
            if attempt := self.held.get(key_of(each)):
                attempt.aborted.set()

    def abort(self):
        for attempt in self.held.values():
            attempt.aborted.set()
        for slot in self.slots.values():
            slot.lost.set()
            slot.granted.set()
        self.slots = {}

    def live(self):
        """Heartbeats, and the watch over leases."""
        while not self.ended.is_set():
            try:
                if self.must_join:
                    if self.running < self.profile["maxConcurrent"] or not self.profile["kinds"]:
                        self.join()
                else:
                    self.heartbeat()
                if self.is_draining and self.is_over and not self.held:
                    self.ask("leave", {}, 2.0)
                    return self.ended.set()
            except WaggleError as error:
                if error.code not in ("WAGGLE_NO_LEADER", "WAGGLE_UNREACHABLE"):
                    self.fail(error)
            self.changed.wait(self.period)
            self.changed.clear()

    def heartbeat(self):
        with self.lock:
            held, sent_at, incarnation = self.listed(), time.monotonic(), self.incarnation
            slots = {"held": [], "waiting": []}
            for handle, slot in self.slots.items():
                slots["held" if slot.granted.is_set() else "waiting"].append(handle)
            message = {"incarnation": incarnation, "status": "busy" if held else "ready", "inFlight": len(held), "held": held,
                       "seen": self.seen, "draining": self.is_draining, **({"slots": slots} if self.slots else {})}
        answer = self.nats.request(self.prefix + ".heartbeat", message, self.period)
        with self.lock:
            if answer and answer.get("renewed") and answer["term"] >= self.term and incarnation == self.incarnation:
                self.confirmed_at, self.term = sent_at, answer["term"]
                self.obey_deferred()
            elif time.monotonic() - self.confirmed_at > self.ttl * SAFE_SHARE:
                self.abort()  # another agent may have the attempts by now

    def acquire(self, *resources, weight=1, timeout=None, idle_timeout=None, as_=None, **terms):
        slot = Slot(self, fresh(), resources)
        self.slots[slot.handle] = slot
        times = {"timeoutMs": timeout and round(timeout * 1000), "idleTimeoutMs": idle_timeout and round(idle_timeout * 1000)}
        wish = {"handle": slot.handle, "resources": list(resources), "weight": weight, "holder": slot.handle, "as": as_, **times, **terms}
        wish = {name: each for name, each in wish.items() if each is not None}
        try:
            answer = self.ask("acquire", wish)["answer"]
            if not answer["ok"]:
                raise error_of(answer)
        except WaggleError:
            self.slots.pop(slot.handle, None)
            raise
        if answer["state"] == "granted":
            slot.granted.set()
        slot.granted.wait()
        if slot.reason is not None:
            code = "WAGGLE_ACQUIRE_TIMED_OUT" if slot.reason == "timed-out" else "WAGGLE_HANDLE_ENDED"
            raise WaggleError(code, f"{' and '.join(resources)}: the request ended ({slot.reason})")
        return slot

    def fail(self, error):
        self.error = self.error or error
        self.ended.set()

    def drain(self, timeout=None):
        """Takes nothing new, finishes what runs, leaves. @returns whether it has left within `timeout` seconds"""
        self.is_draining = self.is_over = True
        self.changed.set()
        return self.ended.wait(timeout)

    def stop(self):
        """Aborts what runs, gives it back, leaves."""
        with self.lock:
            self.abort()
        self.drain(3.0)
        self.ended.set()
        self.nats.unsubscribe(self.subscription)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.drain()
