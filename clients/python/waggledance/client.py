"""A connection to a swarm: tasks, queries, events."""
import base64, collections, hmac, json, os, queue, random, socket, ssl, threading, time, uuid
from urllib.parse import unquote, urlparse

__version__ = "0.1.0"
REQUEST_SECONDS, PATIENCE_SECONDS = 5.0, 30.0  # until a request is repeated; until a request without a leader fails
ASK_AGAIN_SECONDS = 5.0  # a list of waiting clients does not survive its leader
PAYLOAD_BYTES = 256 * 1024  # of a payload, and of a result
MAY_DECIDE_LATER = {"WAGGLE_NO_LEADER", "WAGGLE_OUTCOME_UNKNOWN", "WAGGLE_UNREACHABLE", "WAGGLE_BACKPRESSURE", "WAGGLE_JOURNAL_FULL"}

Chunk = collections.namedtuple("Chunk", "attempt index data")
Chunk.__doc__ = "A part of a result: text or bytes. A missing index was lost on the way; the result is whole."


class WaggleError(Exception):
    """Has a stable `code`, as WAGGLE_NO_LEADER. `field` names a wrong argument; `outcome` tells how a task ended."""

    def __init__(self, code, message, field=None, outcome=None):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.field, self.outcome = code, message, field, outcome


def fresh():
    return uuid.uuid4().hex


def encoded(value, what, most):
    """Text as is, bytes as base64, anything else as JSON. @raises ValueError beyond `most` bytes"""
    if isinstance(value, (bytes, bytearray)):
        form = {"text": base64.b64encode(value).decode(), "encoding": "base64"}
    else:
        form = {"text": value if isinstance(value, str) else json.dumps(value)}
    size = len(form["text"].encode())
    if size > most:
        raise ValueError(f"the {what} has {size} bytes, above the maximum of {most}")
    return form


def decoded(text, encoding):
    return base64.b64decode(text or "") if encoding == "base64" else text


def error_of(answer):
    """Requests hold one task: the error names its field alone."""
    message, field = answer["message"].replace("tasks[0].", ""), answer.get("field", "").replace("tasks[0].", "")
    return WaggleError(answer["code"], message, field or None)


class Nats:
    """A connection to a NATS server that comes back by itself. Handlers of subscriptions run in the reading thread."""

    def __init__(self, url, token, inbox_prefix, folder=False):
        self.at, self.token, self.inbox = urlparse(url), token, f"{inbox_prefix}.{fresh()}"
        self.folder = folder  # the token is the secret of .waggle, for its development broker alone
        self.handlers, self.waiting, self.on_connected = {}, {}, []
        self.lock, self.closed, self.socket = threading.RLock(), False, None
        self.subscribe(self.inbox + ".reply.*", self.answered)
        self.open()
        threading.Thread(target=self.read, daemon=True).start()

    def open(self):
        host, port = self.at.hostname or "127.0.0.1", self.at.port or 4222
        user, password = (part and unquote(part) for part in (self.at.username, self.at.password))
        options = {"verbose": False, "headers": True, "no_responders": True, "lang": "python", "version": __version__}
        try:
            raw = socket.create_connection((host, port), timeout=5)
            info = b""
            while not info.endswith(b"\r\n"):  # byte by byte: TLS may follow
                info += raw.recv(1) or b"closed\r\n"
            info = json.loads(info[5:])
            auth, proof = ({"user": user, "pass": password}, b"") if password else self.login(info.get("nonce", ""), port, user)
            if self.at.scheme == "tls" or info.get("tls_required"):
                raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
            raw.sendall(f"CONNECT {json.dumps({**options, **auth})}\r\nPING\r\n".encode())
            self.input = raw.makefile("rb")
            line = self.input.readline()
            if proof and not line.startswith(b"-ERR"):
                if proof not in line:
                    raise ValueError("it does not know the secret, so it is not the broker")
                line = self.input.readline()
            raw.settimeout(None)
        except (OSError, ValueError) as cause:
            raise WaggleError("WAGGLE_UNREACHABLE", f"no NATS server at {host}:{port} ({cause}); `waggle up` starts one")
        if not line.startswith(b"PONG"):
            raise WaggleError("WAGGLE_UNAUTHORIZED", f"{host}:{port} refused the connection: {line.decode().strip()}")
        with self.lock:
            self.socket = raw
            for sid, (subject, _) in self.handlers.items():
                self.write(f"SUB {subject} {sid}\r\n".encode())

    def login(self, nonce, port, user):
        """A development broker never sees the secret: it and the client answer random texts (docs/protocol.md). @returns the
        fields of CONNECT, and the broker's proof. @raises ValueError when the secret is for another process"""
        secret, challenge = self.token or user or "", fresh()

        def answer(side):
            return hmac.new(secret.encode(), f"{side}\n{nonce}\n{challenge}".encode(), "sha256").hexdigest()

        if nonce.startswith(f"waggle-{port}-"):
            return {"auth_token": answer("client"), "challenge": challenge}, answer("broker").encode()
        if self.folder:
            raise ValueError("it is not the broker of this folder")
        return {"auth_token": secret}, b""

    def write(self, data):
        with self.lock:
            try:
                self.socket and self.socket.sendall(data)
            except OSError:
                pass  # the reading thread connects again; every message is repeated, or may be lost

    def subscribe(self, subject, handler):
        with self.lock:
            self.handlers[sid := fresh()[:12]] = (subject, handler)
            self.write(f"SUB {subject} {sid}\r\n".encode())
        return sid

    def unsubscribe(self, sid):
        with self.lock:
            self.handlers.pop(sid, None)
            self.write(f"UNSUB {sid}\r\n".encode())

    def publish(self, subject, message, reply=""):
        data = json.dumps(message).encode()
        self.write(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

    def request(self, subject, message, timeout=REQUEST_SECONDS):
        """The answer, or None without an answer in time. @raises WaggleError WAGGLE_FORBIDDEN"""
        reply, box = f"{self.inbox}.reply.{fresh()}", queue.SimpleQueue()
        self.waiting[reply] = (subject, box)
        try:
            self.publish(subject, message, reply)
            answer = box.get(timeout=max(0.01, timeout))
        except queue.Empty:
            return None
        finally:
            self.waiting.pop(reply, None)
        if isinstance(answer, WaggleError):
            raise answer
        return answer

    def ask(self, subject, message, patience=PATIENCE_SECONDS, is_wanted=lambda: True):
        """Repeats the request until it is decided. @raises WaggleError of a refusal, or after `patience` seconds"""
        until, pause = time.monotonic() + patience, 0.05
        error = WaggleError("WAGGLE_NO_LEADER", f"no coordinator answered within {patience:g} s; `waggle up` starts one")
        while is_wanted() and not self.closed:
            answer = self.request(subject, message, min(REQUEST_SECONDS, until - time.monotonic()))
            if answer and answer.get("ok") is not False:
                return answer
            if answer and (error := error_of(answer)).code not in MAY_DECIDE_LATER:
                raise error
            pause = max(min(1.0, pause * 2), (answer or {}).get("retryAfterMs", 0) / 1000) * random.uniform(0.5, 1)
            if time.monotonic() + pause > until:
                break
            time.sleep(pause)
        raise error

    def answered(self, subject, data):
        if subject in self.waiting:
            self.waiting[subject][1].put(json.loads(data) if data else None)  # without data: there is no responder

    def read(self):
        while not self.closed:
            try:
                for line in self.input:
                    self.obey(line)
            except (OSError, ValueError):
                pass
            pause = 0.05
            while not self.closed:
                time.sleep(pause * random.uniform(0.5, 1))
                try:
                    self.open()
                except WaggleError:
                    pause = min(2.0, pause * 2)
                    continue
                for notify in list(self.on_connected):
                    notify()
                break

    def obey(self, line):
        op, *args = line.decode().split()
        if op == "PING":
            self.write(b"PONG\r\n")
        elif op in ("MSG", "HMSG"):
            body = self.input.read(int(args[-1]) + 2)[:-2]
            if args[1] in self.handlers:
                self.handlers[args[1]][1](args[0], body[int(args[-2]):] if op == "HMSG" else body)
        elif op == "-ERR" and b"Permissions Violation" in line:
            sentence = line.decode().strip()[6:-1]
            for subject, box in list(self.waiting.values()):
                if f'"{subject}"' in sentence or self.inbox in sentence:
                    box.put(WaggleError("WAGGLE_FORBIDDEN", sentence))

    def close(self):
        self.closed = True
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def connect(url=None, *, swarm="default", project="default", user=None, token=None, inbox_prefix=None):
    """Connects to `url` (nats://user:password@host:4222, tls://…), else NATS_URL, else .waggle/broker.json of this folder.

    @raises WaggleError WAGGLE_NO_BROKER, WAGGLE_UNREACHABLE, WAGGLE_UNAUTHORIZED"""
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
    return Swarm(nats, swarm, project, user or os.environ.get("WAGGLE_USER") or os.environ.get("USER") or "default")


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
        role, needs, affinity, attributes, weight, priority, tokens, deadline, notBefore, maxAttempts, timeoutMs, stallMs,
        stream. For example `needs={"gpu": "a100", "region": ["eu", "us"]}, affinity="session-42"`. The handle's `warnings`
        say what keeps an accepted task waiting: no agent of its kind, or none with the labels it needs.

        @raises WaggleError of the refusal; WAGGLE_NO_LEADER after `timeout` seconds: then submit the same `id` again"""
        fields = {"id": fresh(), "user": self.user, **fields, "kind": kind}
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
        task.warnings = answer.get("warnings", [])
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
        or yields its parts. `profile`: role, type, labels={"gpu": "a100"}. Leaving it as a context manager drains it."""
        id = id or f"{socket.gethostname().split('.')[0]}-py-{fresh()[:6]}"
        from .agent import Agent

        agent = Agent(self, id, group, handler, {"kinds": list(kinds), "maxConcurrent": max_concurrent, **profile})
        self.agents.append(agent)
        return agent

    def acquire(self, *resources, **terms):
        """Slots, all or none, in competition with the whole swarm: `with swarm.acquire("gpt-4o"): …`. `terms`: weight, timeout,
        idle_timeout (seconds), tokens and project (a budget), user, label, as_ (a queue of its own, as LOCO's agent id).

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
        self.swarm, self.project, self.id, self.ended, self.log = swarm, project, id, None, []
        self.changed, self.ask_now, self.attempt, self.warnings = threading.Condition(), threading.Event(), 0, []

    def result(self, timeout=None):
        """Text or bytes, empty without a result. @raises WaggleError WAGGLE_TASK_FAILED and so on; WAGGLE_WAIT_TIMED_OUT: the task goes on"""
        end = self.outcome(timeout)
        if end["state"] == "completed":
            return decoded(end.get("result"), end.get("encoding"))
        code = "WAGGLE_TASK_" + end["state"].upper().replace("-", "_")
        raise WaggleError(code, f"task {self.id}: {end.get('error') or end.get('reason') or end['state']}", outcome=end)

    def outcome(self, timeout=None):
        """How the task ended, in any state. @raises WaggleError WAGGLE_WAIT_TIMED_OUT, WAGGLE_UNKNOWN_TASK"""
        until = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.ended is None:
            if time.monotonic() >= until:
                raise WaggleError("WAGGLE_WAIT_TIMED_OUT", f"task {self.id} has not ended within {timeout:g} s; it goes on")
            self.wait(until, lambda: False)
        return self.ended

    def chunks(self):
        """Parts of the result of a task with `stream=True`, until its end. Parts of an earlier attempt are void."""
        attempt, at = 0, 0
        while True:
            with self.changed:
                attempt, at = (attempt, at) if self.attempt == attempt else (self.attempt, 0)
                new, at, is_over = self.log[at:], len(self.log), self.ended is not None
            yield from new
            if is_over and not new:
                return
            if not new:
                self.wait(time.monotonic() + 1e9, lambda: self.attempt != attempt or len(self.log) > at)

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
            if push and push["attempt"] > self.attempt:
                self.attempt, self.log = push["attempt"], []
            if push and push["attempt"] == self.attempt:
                known = self.log[-1].index if self.log else -1
                for index, each in enumerate(push["chunks"], push["first"]):
                    if index > known:
                        self.log.append(Chunk(self.attempt, index, decoded(each["text"], each.get("encoding"))))
            self.changed.notify_all()
