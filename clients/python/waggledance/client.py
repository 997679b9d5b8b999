"""A swarm for its users: tasks, results, chunks, queries, events."""
import collections, json, os, queue, socket, threading, time

from .connection import MAY_DECIDE_LATER, PATIENCE_SECONDS, PAYLOAD_BYTES, Nats, WaggleError
from .connection import decoded, encoded, error_of, fresh, require, wired

ASK_AGAIN_SECONDS = 5.0  # a list of waiting clients does not survive its leader
KEPT_CHUNKS, KEPT_CHUNKS_LENGTH = 65_536, 4 * 1024 * 1024  # of a task; beyond, the oldest are dropped
SUBMIT_FIELDS = ("id", "user", "role", "needs", "affinity", "attributes", "weight", "priority", "tokens", "deadline", "notBefore",
                 "maxAttempts", "timeoutMs", "stallMs", "stream", "encoding", "traceparent", "tracestate")
PROFILE_FIELDS = ("role", "type", "labels", "maxConcurrent", "prefetch")

Chunk = collections.namedtuple("Chunk", "attempt index data")
Chunk.__doc__ = "A part of a result: `data` is text or bytes. A missing `index` was lost on the way; the result is whole."


def connect(url=None, *, swarm=None, project=None, user=None, token=None, inbox_prefix=None):
    """Connects to `url` (nats://user:password@host:4222, tls://…, several servers of a cluster with commas), else NATS_URL, else
    .waggle/broker.json of this folder. Swarm, project and user are else WAGGLE_SWARM, WAGGLE_PROJECT and WAGGLE_USER.

    @raises WaggleError WAGGLE_NO_BROKER, WAGGLE_INVALID_CONFIG, WAGGLE_UNREACHABLE, WAGGLE_UNAUTHORIZED"""
    url, folder = url or os.environ.get("NATS_URL"), False
    if url is None:
        try:
            with open(os.path.join(".waggle", "broker.json"), encoding="utf8") as file:
                broker = json.load(file)
        except (OSError, ValueError):
            raise WaggleError("WAGGLE_NO_BROKER", "no url, no NATS_URL, no .waggle/broker.json: run `waggle up` here")
        url, token, folder = broker["url"], broker["secret"], broker["kind"] == "development"
        if not folder:
            url = url.replace("//", f"//waggle:{token}@")  # its user for clients without keys (nkeys)
    nats = Nats(url, token, inbox_prefix or os.environ.get("NATS_INBOX_PREFIX", "_INBOX"), folder)
    said = lambda name: os.environ.get(f"WAGGLE_{name}")
    user = user or said("USER") or os.environ.get("USER") or "default"
    return Swarm(nats, swarm or said("SWARM") or "default", project or said("PROJECT") or "default", user)


class Swarm:
    """A connection to a swarm. Closing it, or leaving it as a context manager, stops its agents."""

    def __init__(self, nats, swarm, project, user):
        self.nats, self.prefix, self.project, self.user = nats, f"waggle.v1.{swarm}", project, user
        self.tasks, self.agents, self.holder, self.lock = {}, [], None, threading.Lock()
        nats.subscribe(nats.inbox + ".done", lambda _, data: [self.ended(each) for each in json.loads(data)["ended"]])
        nats.subscribe(nats.inbox + ".chunk", self.chunked)
        nats.on_connected.append(lambda: [task.ask_now.set() for task in list(self.tasks.values())])

    def submit(self, kind, payload=None, *, project=None, timeout=PATIENCE_SECONDS, **fields):
        """Submits a task: text as is, bytes as base64, other payloads as JSON. `fields` are those of the wire: id, user,
        role, needs, affinity, attributes, weight, priority, tokens, deadline, not_before, max_attempts, timeout_ms, stall_ms,
        stream. The wire's spelling (maxAttempts) works too; any other name is refused. For example
        `needs={"gpu": "a100", "region": ["eu", "us"]}, affinity="session-42"`. The handle's `warnings` say what keeps an
        accepted task waiting: no agent of its kind, or none with the labels it needs.

        @raises WaggleError of the refusal; WAGGLE_NO_LEADER after `timeout` seconds: then submit the same `id` again"""
        fields = {"id": fresh(), "user": self.user, **wired(fields, SUBMIT_FIELDS, "submit", ("project", "timeout")), "kind": kind}
        if payload is not None:
            try:
                form = encoded(payload, "payload", PAYLOAD_BYTES)
            except (ValueError, TypeError) as cause:
                raise WaggleError("WAGGLE_INVALID_MESSAGE", f"payload: {cause}", "payload")
            fields.update({"payload" if name == "text" else name: value for name, value in form.items()})
        task = self.task(fields["id"], project)
        message = {"tasks": [fields], "notify": self.nats.inbox}
        answer = self.nats.ask(f"{self.prefix}.project.{task.project}.submit", message, timeout)["answers"][0]
        if not answer["ok"]:
            self.tasks.pop((task.project, task.id), None)
            raise error_of(answer)
        task.warnings, task.has_chunks = answer.get("warnings", []), bool(fields.get("stream"))
        return task

    def task(self, id, project=None):
        """A handle of a task, whoever submitted it."""
        key = (project or self.project, id)
        return self.tasks.setdefault(key, Task(self, *key))

    def query(self, what, message=None, project="_"):
        """`status`, `task`, `tasks`, `explain`, `slots` or `settings` (docs/protocol.md) of a project; `_` is the swarm.
        `query("tasks", {"attributes": {"ticket": "OPS-17"}})` finds tasks by their attributes."""
        return self.nats.ask(f"{self.prefix}.project.{project}.query.{what}", message or {})

    def events(self, start=1, *, follow=False, project="_"):
        """Events of the journal in order, from batch `start`, to the present; with `follow` without end."""
        news = queue.SimpleQueue()
        scope = "" if project == "_" else project + "."
        sid = self.nats.subscribe(f"{self.prefix}.event.{scope}>", lambda *_: news.put(1)) if follow else None
        try:
            while not self.nats.closed:
                page = self.query("journal", {"from": start}, project)
                for batch in page["batches"]:
                    for event in batch["events"]:
                        yield {"idx": batch["idx"], "term": batch["term"], "at": batch["at"], **event}
                start = page["next"]
                if start > page["last"] and not follow:
                    return
                if start > page["last"]:
                    try:
                        news.get(timeout=1.0)
                    except queue.Empty:
                        pass
        finally:
            sid and self.nats.unsubscribe(sid)

    def agent(self, kinds, handler, *, max_concurrent=1, id=None, group="_", **profile):
        """Starts an agent, and waits until a leader accepts it. `handler(task)` gets an `Attempt`; it returns the result,
        or yields its parts, and may be `async`: each attempt then has an event loop of its own. `profile`: role, type,
        labels={"gpu": "a100"}. Leaving it as a context manager drains it. @raises WaggleError naming a wrong argument"""
        profile = {"maxConcurrent": max_concurrent, **wired(profile, PROFILE_FIELDS, "agent", ("id", "group"))}
        require(profile["maxConcurrent"], 1, "agent", "max_concurrent")
        is_list = isinstance(kinds, (list, tuple, set, frozenset)) and all(isinstance(kind, str) for kind in kinds)
        if not is_list or not kinds and handler is not None:
            needs = "must name a kind of task" if is_list else 'must be a list of texts, as ["shout"]'
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"agent: kinds: {needs}, not {kinds!r}", "kinds")
        if kinds and not callable(handler):
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"agent: handler: must be a function of a task, not {handler!r}", "handler")
        id = id or f"{socket.gethostname().split('.')[0]}-py-{fresh()[:6]}"
        from .agent import Agent

        agent = Agent(self, id, group, handler, {"kinds": list(kinds), **profile})
        self.agents.append(agent)
        return agent

    def acquire(self, *resources, **terms):
        """Slots, all or none, in competition with the whole swarm: `with swarm.acquire("gpt-4o"): …`. `terms`: weight, timeout,
        idle_timeout (seconds), tokens and project (a budget), user, label, as_ (a queue of its own, as LOCO's agent id).
        `timeout_ms` and `idle_timeout_ms` are the wire's. Any other name is refused.

        @raises WaggleError WAGGLE_ACQUIRE_TIMED_OUT after `timeout` seconds; of the refusal"""
        with self.lock:
            self.holder = self.holder or self.agent([], None)
        return self.holder.acquire(*resources, **terms)

    def ended(self, outcome):
        if task := self.tasks.pop((outcome["project"], outcome["task"]), None):
            task.change(outcome=outcome)

    def chunked(self, _, data):
        push = json.loads(data)
        if task := self.tasks.get((push["project"], push["task"])):
            task.change(push=push)

    def close(self):
        for agent in self.agents:
            agent.stop()
        self.nats.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Task:
    """A handle of one task."""

    def __init__(self, swarm, project, id):
        self.swarm, self.project, self.id, self.ended, self.has_chunks = swarm, project, id, None, None  # None: not known
        self.log, self.log_length = collections.deque(), 0  # the kept chunks of `attempt`
        self.changed, self.ask_now, self.attempt, self.warnings = threading.Condition(), threading.Event(), 0, []

    def result(self, timeout=None):
        """Text or bytes, empty without a result. @raises WaggleError WAGGLE_TASK_FAILED, WAGGLE_TASK_CANCELLED, WAGGLE_TASK_EXPIRED, or
        WAGGLE_GONE when the result is no longer kept, with `outcome`; WAGGLE_WAIT_TIMED_OUT: the task goes on"""
        end = self.outcome(timeout)
        state, is_gone = end["state"], end.get("gone") or "resultDigest" in end and "result" not in end
        if state == "completed" and not is_gone:
            return decoded(end.get("result"), end.get("encoding"))
        name = "TASK_FAILED" if state == "dead-lettered" else "GONE" if state == "completed" else f"TASK_{state.upper()}"
        why = "its result is no longer kept" if name == "GONE" else end.get("error") or end.get("reason") or state
        raise WaggleError(f"WAGGLE_{name}", f"task {self.id}: {why}", outcome=end)

    def outcome(self, timeout=None):
        """How the task ended, in any state. @raises WaggleError WAGGLE_WAIT_TIMED_OUT, WAGGLE_UNKNOWN_TASK"""
        until = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.ended is None:
            if time.monotonic() >= until:
                raise WaggleError("WAGGLE_WAIT_TIMED_OUT", f"task {self.id} has not ended within {timeout:g} s; it goes on")
            self.wait(until, lambda: False)
        return self.ended

    def chunks(self):
        """Parts of the result of a task with `stream=True`, until its end. Parts of an earlier attempt are void.
        @raises WaggleError WAGGLE_INVALID_MESSAGE when the task was submitted without `stream`"""
        if self.has_chunks is False:
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"chunks: task {self.id} has none: submit it with stream=True", "stream")
        return self.parts()

    def parts(self):
        attempt, last = 0, -1
        while True:
            with self.changed:
                attempt, last = (attempt, last) if self.attempt == attempt else (self.attempt, -1)
                new, is_over = [chunk for chunk in self.log if chunk.index > last], self.ended is not None
            yield from new
            if new:
                last = new[-1].index
            elif is_over:
                return
            else:
                self.wait(time.monotonic() + 1e9, lambda: self.attempt != attempt or self.log and self.log[-1].index > last)

    def wait(self, until, is_enough):
        """Asks a leader to notify, and waits for a while."""
        self.swarm.tasks.setdefault((self.project, self.id), self)
        self.ask_now.clear()
        message, left = {"tasks": [self.id], "notify": self.swarm.nats.inbox}, max(1.0, min(PATIENCE_SECONDS, until - time.monotonic()))
        answer = self.swarm.nats.ask(f"{self.swarm.prefix}.project.{self.project}.await", message, left)["answers"][0]
        if answer.get("outcome"):
            self.swarm.ended(answer["outcome"])
        elif not answer["ok"] and answer["code"] not in MAY_DECIDE_LATER:
            raise error_of(answer)
        until = min(until, time.monotonic() + ASK_AGAIN_SECONDS)
        with self.changed:
            while self.ended is None and not is_enough() and not self.ask_now.is_set() and time.monotonic() < until:
                self.changed.wait(min(0.5, max(0.0, until - time.monotonic())))

    def change(self, outcome=None, push=None):
        with self.changed:
            self.ended = outcome or self.ended
            attempt = push["attempt"] if push else outcome["attempts"]
            if attempt > self.attempt:  # what earlier attempts sent is void
                self.attempt, self.log, self.log_length = attempt, collections.deque(), 0
            if push and attempt == self.attempt:
                known = self.log[-1].index if self.log else -1
                for index, each in enumerate(push["chunks"], push["first"]):
                    if index > known:
                        self.log.append(Chunk(attempt, index, decoded(each["text"], each.get("encoding"))))
                        self.log_length += len(self.log[-1].data)
                while self.log_length > KEPT_CHUNKS_LENGTH or len(self.log) > KEPT_CHUNKS:
                    self.log_length -= len(self.log.popleft().data)
            self.changed.notify_all()
