"""A connection to a swarm: submit tasks, read results and chunks, ask about the swarm, follow events."""
import collections, json, os, queue, re, socket, threading, time

from .connection import PATIENCE_SECONDS, Nats
from .wire import FOREVER, MAY_DECIDE_LATER, PAYLOAD_BYTES, WaggleError
from .wire import decoded, encoded, error_of, fresh, name_of, require, seconds_of, wired

ASK_AGAIN_SECONDS = 5.0  # a new leader does not know which clients wait
KEPT_CHUNKS, KEPT_CHUNKS_LENGTH = 65_536, 4 * 1024 * 1024  # of a task; beyond, the oldest are dropped
SUBMIT_FIELDS = ("id", "user", "role", "needs", "affinity", "attributes", "weight", "priority", "tokens", "deadline",
                 "notBefore", "maxAttempts", "timeoutMs", "stallMs", "stream", "encoding", "traceparent", "tracestate")
PROFILE_FIELDS = ("role", "type", "labels", "maxConcurrent", "prefetch")

Chunk = collections.namedtuple("Chunk", "attempt index data")
Chunk.__doc__ = "A part of a result. `data` is text or bytes. A gap in `index` is a lost chunk; the result is complete."


def connect(url=None, *, swarm=None, project=None, user=None, token=None, inbox_prefix=None, group=None):
    """Connects to a swarm. Every argument is optional:

    - `url`: the NATS server, such as nats://user:password@host:4222, or tls://…; servers of one cluster are separated
      by commas. Default: NATS_URL, or the broker that `waggle up` started in the working directory.
    - `swarm`, `project`, `user`: default WAGGLE_SWARM, WAGGLE_PROJECT and WAGGLE_USER, or else "default"; for the user
      also USER.
    - `token`: the token of a server with token authentication.
    - `inbox_prefix`: prefix of the subjects on which answers arrive, such as _INBOX_ann. Required if the server permits
      only this prefix. Default: NATS_INBOX_PREFIX, or _INBOX.
    - `group`: group of agents without a group of their own, and of `acquire`. Default: no group.

    @raises WaggleError WAGGLE_NO_BROKER, WAGGLE_INVALID_CONFIG, WAGGLE_UNREACHABLE, WAGGLE_UNAUTHORIZED"""
    def named(field, given):
        return name_of(given or os.environ.get(f"WAGGLE_{field.upper()}") or "default", field, "WAGGLE_INVALID_CONFIG")

    swarm, project = named("swarm", swarm), named("project", project)
    group = "_" if group is None else name_of(group, "group", "WAGGLE_INVALID_CONFIG")
    user = user or os.environ.get("WAGGLE_USER") or os.environ.get("USER") or "default"
    url, folder = url or os.environ.get("NATS_URL"), False
    if url is None:
        try:
            with open(os.path.join(".waggle", "broker.json"), encoding="utf8") as file:
                broker = json.load(file)
            url, token, folder = broker["url"], broker["secret"], broker["kind"] == "development"
        except (OSError, ValueError, KeyError, TypeError):
            message = "no url, no NATS_URL, and no .waggle/broker.json in the working directory: run `waggle up` " \
                      "there, or give the URL of a NATS server"
            raise WaggleError("WAGGLE_NO_BROKER", message) from None
        if not folder:
            url = url.replace("//", f"//waggle:{token}@")  # the broker's user for clients without nkeys
    nats = Nats(url, token, inbox_prefix or os.environ.get("NATS_INBOX_PREFIX") or "_INBOX", folder)
    return Swarm(nats, swarm, project, user, group)


class Swarm:
    """A connection to a swarm, from `connect`. `close`, or the end of a `with`, stops its agents."""

    def __init__(self, nats, swarm, project, user, group="_"):
        self.nats, self.prefix, self.project, self.user = nats, f"waggle.v1.{swarm}", project, user
        self.group, self.done, self.chunk = group, nats.inbox + ".done", nats.inbox + ".chunk"
        self.tasks, self.agents, self.holder, self.lock = {}, [], None, threading.Lock()
        nats.subscribe(self.done, lambda _, data: [self.ended(each) for each in json.loads(data)["ended"]])
        nats.subscribe(self.chunk, self.chunked)
        nats.on_connected.append(lambda: [task.ask_now.set() for task in list(self.tasks.values())])

    def submit(self, kind, payload=None, *, project=None, timeout=PATIENCE_SECONDS, **fields):
        """Submits a task, and returns its handle once the task is accepted.

        The payload is text, bytes, or a value for JSON. `fields` are the fields of the message, in snake_case or as in
        messages (maxAttempts):

        - the task: id, user, attributes, stream;
        - the agents: role, needs, affinity;
        - the order of tasks: weight, priority, tokens;
        - the attempts: deadline and not_before (milliseconds since 1970), max_attempts, timeout_ms, stall_ms.

        For example `needs={"gpu": "a100", "region": ["eu", "us"]}, affinity="session-42"`. The handle's `warnings` say
        why an accepted task waits: no agent runs the kind, or no agent has the labels.

        Errors have the task's id as `task`, also an id that was not given. `timeout`: seconds, None for no limit.
        @raises WaggleError WAGGLE_NO_LEADER or WAGGLE_UNREACHABLE after `timeout`: nothing was done
        @raises WaggleError WAGGLE_OUTCOME_UNKNOWN after `timeout`: the task may have been accepted. Submit again with
        the same content and `id=error.task`: the task runs once. Or ask with `swarm.task(error.task).outcome()`
        @raises WaggleError WAGGLE_FORBIDDEN and all other codes: the refusal"""
        patience = seconds_of(timeout, "submit")
        fields = wired(fields, SUBMIT_FIELDS, "submit", ("project", "timeout"))
        fields = {"id": fresh(), "user": self.user, **fields, "kind": kind}
        if payload is not None:
            try:
                form = encoded(payload, "payload", PAYLOAD_BYTES)
            except (ValueError, TypeError) as cause:
                raise WaggleError("WAGGLE_INVALID_MESSAGE", f"payload: {cause}", "payload") from None
            fields.update({"payload" if name == "text" else name: value for name, value in form.items()})
        task = self.task(fields["id"], project)
        message = {"tasks": [fields], "notify": self.nats.inbox}
        try:
            subject = f"{self.prefix}.project.{task.project}.submit"
            answer = self.nats.ask(subject, message, patience, task=task.id)["answers"][0]
            if not answer["ok"]:
                raise error_of(answer)
        except WaggleError as error:
            error.task = task.id
            self.tasks.pop((task.project, task.id), None)
            raise
        task.warnings, task.has_chunks = answer.get("warnings", []), bool(fields.get("stream"))
        return task

    def task(self, id, project=None):
        """A handle of a task by its id, also of a task of a different client. Asks nothing yet."""
        if not isinstance(id, str):
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"id: must be text, not {id!r}", "id")
        key = (name_of(project or self.project, "project"), id)
        return self.tasks.setdefault(key, Task(self, *key))

    def query(self, what, message=None, project="_"):
        """The answer to `status`, `task`, `tasks`, `explain`, `slots` or `settings`, as in docs/protocol.md. `message`
        has the fields of the query. Project `_`, the default, is the whole swarm. For example
        `query("tasks", {"attributes": {"ticket": "OPS-17"}})` finds tasks by attributes.
        @raises WaggleError of the refusal; WAGGLE_NO_LEADER or WAGGLE_UNREACHABLE after 30 s"""
        subject = f"{self.prefix}.project.{name_of(project, 'project')}.query.{name_of(what, 'what')}"
        return self.nats.ask(subject, message or {}, is_query=True)

    def events(self, start=1, *, follow=False, project="_"):
        """Iterates over the events of the journal in order, from batch `start`. Ends at the newest event; with `follow`
        only when the connection is closed. Project `_`, the default, is the whole swarm."""
        name_of(project, "project")
        if self.nats.closed:
            raise WaggleError("WAGGLE_UNREACHABLE", "the connection is closed")
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

    def agent(self, kinds, handler, *, max_concurrent=1, id=None, group=None, **profile):
        """Starts an agent for tasks of `kinds`, a list such as ["shout"], and waits until a leader accepts the agent.

        `handler(task)` gets an `Attempt`, and returns the result or yields its parts. An `async` handler runs in an
        event loop per attempt. `max_concurrent` attempts run at a time, each in its own thread. `id` is unique in the
        swarm; default: the host's name and random characters. `profile`: role, type, labels={"gpu": "a100"}. The end
        of a `with` drains the agent.
        @raises WaggleError WAGGLE_INVALID_MESSAGE naming a wrong argument; of the leader's refusal"""
        profile = {"maxConcurrent": max_concurrent, **wired(profile, PROFILE_FIELDS, "agent", ("id", "group"))}
        require(profile["maxConcurrent"], 1, "agent", "max_concurrent")
        is_list = isinstance(kinds, (list, tuple, set, frozenset)) and all(isinstance(kind, str) for kind in kinds)
        if not is_list or not kinds and handler is not None:
            needs = "must name a kind of task" if is_list else 'must be a list of texts, as ["shout"]'
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"agent: kinds: {needs}, not {kinds!r}", "kinds")
        if kinds and not callable(handler):
            message = f"agent: handler: must be a function of a task, not {handler!r}"
            raise WaggleError("WAGGLE_INVALID_MESSAGE", message, "handler")
        host = re.sub("[^A-Za-z0-9_-]", "-", socket.gethostname().split(".")[0])[:48]
        id = name_of(id or f"{host}-py-{fresh()[:6]}", "id")
        group = self.group if group is None else name_of(group, "group")
        from .agent import Agent

        agent = Agent(self, id, group, handler, {"kinds": list(kinds), **profile})
        self.agents.append(agent)
        return agent

    def acquire(self, *resources, **terms):
        """Waits for one slot of each named resource, all or none: `with swarm.acquire("gpt-4o") as slot: …`. A resource
        named twice gives two slots. All holders of the swarm compete.

        `terms`:

        - `timeout`: maximum wait in seconds. Default: no limit.
        - `idle_timeout`: the leader takes the slots back after so many seconds without `slot.touch()`. Default: never.
        - `weight`: weight against competitors. Default 1.
        - `tokens` and `project`: reserve tokens of the project's budget.
        - `user` and `label`: shown in the status.
        - `as_`: name of the queue that the request waits in.

        @raises WaggleError WAGGLE_ACQUIRE_TIMED_OUT after `timeout`; of the leader's refusal
        @raises OnHold when a resource is on hold for longer than `timeout`"""
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
    """A handle of one task, from `Swarm.submit` or `Swarm.task`: `id`, `project`, and `warnings` of its submission."""

    def __init__(self, swarm, project, id):
        self.swarm, self.project, self.id = swarm, project, id
        self.ended, self.has_chunks = None, None  # None: not known
        self.log, self.log_length = collections.deque(), 0  # the kept chunks of `attempt`
        self.changed, self.ask_now, self.attempt, self.warnings = threading.Condition(), threading.Event(), 0, []

    def result(self, timeout=None):
        """Waits for the end of the task.
        @returns text or bytes; the empty text without a result
        @raises WaggleError WAGGLE_TASK_FAILED, WAGGLE_TASK_CANCELLED or WAGGLE_TASK_EXPIRED, with `outcome`
        @raises WaggleError WAGGLE_GONE, with `outcome`, when the swarm no longer has the result
        @raises WaggleError of `outcome()`: the task goes on"""
        end = self.outcome(timeout)
        state, is_gone = end["state"], end.get("gone") or "resultDigest" in end and "result" not in end
        if state == "completed" and not is_gone:
            return decoded(end.get("result"), end.get("encoding"))
        names = {"dead-lettered": "TASK_FAILED", "completed": "GONE"}
        name = names.get(state, f"TASK_{state.upper()}")
        why = "its result is no longer kept" if name == "GONE" else end.get("error") or end.get("reason") or state
        raise WaggleError(f"WAGGLE_{name}", f"task {self.id}: {why}", outcome=end, task=self.id)

    def outcome(self, timeout=None):
        """Waits for the end of the task, in any state. `timeout`: seconds, None for no limit.
        @returns a dict: `state`, `attempts`, `result`, `error` and more (docs/protocol.md, Outcomes)
        @raises WaggleError WAGGLE_WAIT_TIMED_OUT after `timeout`; WAGGLE_UNKNOWN_TASK
        @raises WaggleError WAGGLE_NO_LEADER or WAGGLE_UNREACHABLE after 30 s without an answer; WAGGLE_FORBIDDEN"""
        until = time.monotonic() + seconds_of(timeout, "outcome")
        while self.ended is None:
            if time.monotonic() >= until:
                message = f"task {self.id} has not ended within {timeout:g} s; it goes on"
                raise WaggleError("WAGGLE_WAIT_TIMED_OUT", message, task=self.id)
            self.wait(until, lambda: False)
        return self.ended

    def chunks(self):
        """Iterates over the chunks of a task with `stream=True`, until the task ends. A chunk with a higher `attempt`
        replaces the chunks of earlier attempts.
        @raises WaggleError WAGGLE_INVALID_MESSAGE when the task was submitted without `stream`"""
        if self.has_chunks is False:
            message = f"chunks: task {self.id} has no chunks: submit the task with stream=True"
            raise WaggleError("WAGGLE_INVALID_MESSAGE", message, "stream", task=self.id)
        return self.parts()

    def parts(self):
        self.swarm.nats.confirm(self.swarm.chunk, is_undone=None)
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
                has_more = lambda: self.attempt != attempt or self.log and self.log[-1].index > last
                self.wait(time.monotonic() + FOREVER, has_more)

    def wait(self, until, is_enough):
        """Asks a leader to notify this client, and waits until the notice, or for 5 s."""
        self.swarm.tasks.setdefault((self.project, self.id), self)
        self.ask_now.clear()
        nats, subject = self.swarm.nats, f"{self.swarm.prefix}.project.{self.project}.await"
        message, left = {"tasks": [self.id], "notify": nats.inbox}, min(PATIENCE_SECONDS, until - time.monotonic())
        try:
            nats.confirm(self.swarm.done, is_undone=None)
            answer = nats.ask(subject, message, max(1.0, left), is_query=True)["answers"][0]
            if not answer.get("outcome") and not answer["ok"] and answer["code"] not in MAY_DECIDE_LATER:
                raise error_of(answer)
        except WaggleError as error:
            error.task = self.id
            raise
        if answer.get("outcome"):
            self.swarm.ended(answer["outcome"])
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
