"""The connection to a NATS server, and requests. Not here: the forms of values in messages (wire.py).

A request is published only after the server has confirmed all subscriptions: with a refused inbox nothing is done.
Only an answer or "no responders" says what became of a published request. Without either the outcome is unknown.
"""
import hmac, json, queue, random, re, socket, ssl, threading, time
from urllib.parse import unquote, urlparse

from .wire import MAY_DECIDE_LATER, WaggleError, as_json, error_of, forbidden, fresh, refusal

__version__ = "0.1.0"
REQUEST_SECONDS, PATIENCE_SECONDS = 5.0, 30.0  # wait for one answer; limit of all attempts of a request
PING_SECONDS, SILENCE_SECONDS = 5.0, 15.0  # between two pings; until the client leaves a silent server for the next
REFUSED_SECONDS = 15.0  # of refused credentials, until the connection ends: a server may refuse while it is replaced
VIOLATION = re.compile(r"Permissions Violation for (Publish|Subscription) to \"([^\"]*)\"")
INBOX_PREFIX = re.compile(r"_INBOX[A-Za-z0-9_-]*(\.[^.*>\s]+)*")


def servers_in(urls):
    """The servers of one cluster, as in nats://a:4222,nats://b:4222. @raises WaggleError WAGGLE_INVALID_CONFIG"""
    try:
        servers = [urlparse(url if "//" in url else f"nats://{url}") for url in urls.replace(" ", "").split(",") if url]
        if servers and all(at.hostname and (at.port or 4222) and at.scheme in ("nats", "tls") for at in servers):
            return servers
    except (ValueError, AttributeError):  # a wrong port; not a text
        pass
    shown = re.sub("//[^,]*@", "//…@", urls) if isinstance(urls, str) else repr(urls)  # without a password
    message = f"not the URL of a NATS server: {shown}; write nats://host:4222, or several separated by commas"
    raise WaggleError("WAGGLE_INVALID_CONFIG", message, "url")


class Nats:
    """A connection to a NATS server that reconnects by itself. Handlers of subscriptions run in the reading thread, and
    so may not wait for an answer."""

    def __init__(self, url, token, inbox_prefix, folder=False):
        if not INBOX_PREFIX.fullmatch(inbox_prefix):
            message = f"inbox_prefix: must begin with _INBOX, such as _INBOX_ann, not {inbox_prefix!r}: coordinators " \
                      "answer to no other prefix"
            raise WaggleError("WAGGLE_INVALID_CONFIG", message, "inbox_prefix")
        self.servers, self.token, self.inbox = servers_in(url), token, f"{inbox_prefix}.{fresh()}"
        self.folder = folder  # the token is the secret of .waggle, for its development broker alone
        self.handlers, self.waiting, self.on_connected = {}, {}, []
        self.lock, self.closed, self.socket, self.error = threading.RLock(), False, None, None
        self.pings, self.pongs, self.confirmed = 0, 0, threading.Event()  # confirmed: the server answered every PING
        self.refused_subjects, self.payload_max = set(), 1024 * 1024
        self.replies = self.inbox + ".reply.*"
        self.subscribe(self.replies, self.answered)
        self.open()
        for work in (self.read, self.keep_alive):
            threading.Thread(target=work, daemon=True).start()

    def open(self):
        """Connects to the first server that answers. @raises WaggleError of the last server"""
        for rest in range(len(self.servers) - 1, -1, -1):
            try:
                return self.open_at(self.servers[0])
            except WaggleError:
                self.servers.append(self.servers.pop(0))
                if rest == 0:
                    raise

    def open_at(self, at):
        host, port = at.hostname or "127.0.0.1", at.port or 4222
        user, password = (part and unquote(part) for part in (at.username, at.password))
        options = {"verbose": False, "headers": True, "no_responders": True, "lang": "python", "version": __version__}
        try:
            raw = socket.create_connection((host, port), timeout=5)
            info = b""
            while not info.endswith(b"\r\n"):  # byte by byte: TLS may follow
                info += raw.recv(1) or b"closed\r\n"
            info = json.loads(info[5:])
            login = {"user": user, "pass": password}, b""
            auth, proof = login if password else self.login(info.get("nonce", ""), port, user)
            if at.scheme == "tls" or info.get("tls_required"):
                raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
            raw.sendall(f"CONNECT {json.dumps({**options, **auth})}\r\nPING\r\n".encode())
            self.input = raw.makefile("rb")
            line = self.input.readline()
            if proof and not line.startswith(b"-ERR"):
                if proof not in line:
                    raise ValueError("it does not know the secret, so it is not the broker")
                line = self.input.readline()
            raw.settimeout(SILENCE_SECONDS)
        except ssl.SSLError as cause:
            message = f"no encrypted connection to NATS at {host}:{port} ({cause}): check the certificate, and " \
                      "whether the server offers TLS"
            raise WaggleError("WAGGLE_UNREACHABLE", message) from cause
        except (OSError, ValueError) as cause:
            message = f"no NATS server at {host}:{port} ({cause}); `waggle up` starts one"
            raise WaggleError("WAGGLE_UNREACHABLE", message) from cause
        if not line.startswith(b"PONG"):
            raise not_accepted(f"{host}:{port}", line.decode().strip().replace("-ERR ", "").strip("'"))
        with self.lock:
            self.socket, self.pings, self.pongs, self.refused_subjects = raw, 0, 0, set()
            self.payload_max = info.get("max_payload", self.payload_max)
            self.subscribe_all()

    def login(self, nonce, port, user):
        """The login by token. A development broker never sees the secret: client and broker answer random texts
        (docs/protocol.md). @returns the fields of CONNECT, and the broker's proof. @raises ValueError for a process
        that is not the broker of this folder"""
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
                pass  # the reading thread reconnects; a message is repeated, or may be lost

    def ping(self):
        with self.lock:
            self.pings += 1
            self.confirmed.clear()
            self.write(b"PING\r\n")

    def subscribe(self, subject, handler):
        with self.lock:
            sid = fresh()[:12]
            self.handlers[sid] = (subject, handler)
            self.write(f"SUB {subject} {sid}\r\n".encode())
            self.ping()
        return sid

    def subscribe_all(self, to=None):
        for sid, (subject, _) in self.handlers.items():
            if to in (None, subject):
                self.write(f"SUB {subject} {sid}\r\n".encode())
        self.ping()

    def unsubscribe(self, sid):
        with self.lock:
            self.handlers.pop(sid, None)
            self.write(f"UNSUB {sid}\r\n".encode())

    def confirm(self, subject, timeout=REQUEST_SECONDS, is_undone=True):
        """Waits until the server has answered all subscriptions: PONG follows the errors of all messages before PING.
        Subscribes again to a refused subject, because the permission may have been added.
        @returns whether the server answered in time. @raises WaggleError WAGGLE_FORBIDDEN if it refused `subject`"""
        with self.lock:
            if subject in self.refused_subjects:
                self.refused_subjects.discard(subject)
                self.subscribe_all(subject)
        is_confirmed = self.closed or self.confirmed.wait(timeout)
        if subject in self.refused_subjects:
            raise forbidden("subscribe", subject, is_undone)
        return is_confirmed

    def publish(self, subject, message):
        """For messages that may be lost."""
        data = as_json(message)
        if len(data) <= self.payload_max:  # the server would close the connection
            self.send(subject, data)

    def send(self, subject, data, reply=""):
        self.write(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")

    def request(self, subject, message, timeout=REQUEST_SECONDS, is_undone=True):
        """The answer. Without an answer a refusal: WAGGLE_UNREACHABLE with `unsent`, before the request was published;
        WAGGLE_NO_LEADER, if no coordinator listens; or WAGGLE_OUTCOME_UNKNOWN.
        @param is_undone no earlier message of the request may have been carried out
        @raises WaggleError WAGGLE_FORBIDDEN, WAGGLE_UNAUTHORIZED, WAGGLE_INVALID_MESSAGE"""
        data, until, box = as_json(message), time.monotonic() + max(0.01, timeout), queue.SimpleQueue()
        if len(data) > self.payload_max:
            message = f"a message of {len(data)} bytes; the server accepts {self.payload_max}"
            raise WaggleError("WAGGLE_INVALID_MESSAGE", message)
        is_confirmed = self.confirm(self.replies, until - time.monotonic(), is_undone)
        if self.error:
            raise self.error
        if not is_confirmed or self.closed:
            return refusal("WAGGLE_UNREACHABLE", "not connected to a NATS server. Nothing was done", unsent=True)
        reply = f"{self.inbox}.reply.{fresh()}"
        self.waiting[reply] = (subject, box)
        try:
            self.send(subject, data, reply)
            answer = box.get(timeout=max(0.01, until - time.monotonic()))
        except queue.Empty:
            return refusal("WAGGLE_OUTCOME_UNKNOWN", "no answer came in time")
        finally:
            self.waiting.pop(reply, None)
        if isinstance(answer, WaggleError):
            raise answer
        if isinstance(answer, tuple):
            operation, refused = answer
            raise forbidden(operation, refused, is_undone and operation == "publish")
        return answer

    def ask(self, subject, message, patience=PATIENCE_SECONDS, is_wanted=lambda: True, is_query=False, task=None):
        """Repeats the request for `patience` seconds, until an answer decides it.
        @param task the id of the submitted task.
        @raises WaggleError of a refusal.
        @raises WaggleError WAGGLE_NO_LEADER, WAGGLE_BACKPRESSURE or WAGGLE_UNREACHABLE: nothing was done.
        @raises WaggleError WAGGLE_OUTCOME_UNKNOWN after a published request without an answer. A query changes
        nothing: the code is then WAGGLE_UNREACHABLE."""
        until, pause, doubt, error = time.monotonic() + patience, 0.05, None, None
        while is_wanted() and not self.closed:
            answer = self.request(subject, message, min(REQUEST_SECONDS, until - time.monotonic()), doubt is None)
            if answer.get("ok") is not False:
                return answer
            error = error_of(answer)
            if error.code not in MAY_DECIDE_LATER:
                raise error
            if error.code in ("WAGGLE_OUTCOME_UNKNOWN", "WAGGLE_UNREACHABLE") and "unsent" not in answer:
                doubt = error.message
            pause = max(min(1.0, pause * 2), answer.get("retryAfterMs", 0) / 1000) * random.uniform(0.5, 1)
            if time.monotonic() + pause > until:
                break
            time.sleep(pause)
        if doubt is not None and is_query:
            raise WaggleError("WAGGLE_UNREACHABLE", f"no coordinator answered: {doubt}. `waggle doctor` shows more")
        if doubt is not None:
            again = "Repeat the request" if task is None else f"Submit again with id={task!r}"
            was = "the request was carried out" if task is None else f"task {task} was accepted"
            message = f"whether {was} is unknown: {doubt}. {again}: nothing is done twice"
            raise WaggleError("WAGGLE_OUTCOME_UNKNOWN", message)
        if self.error:
            raise self.error
        if self.closed or error is None:
            ended = "the connection is closed" if self.closed else "the agent has ended, or has begun a new session"
            raise WaggleError("WAGGLE_UNREACHABLE", f"{ended}. Nothing was done")
        if error.code == "WAGGLE_NO_LEADER":
            swarm, undone = subject.split(".")[2], "" if is_query else ". Nothing was done"
            sentence = f"no coordinator of swarm {swarm} listened within {patience:g} s; `waggle up` starts one"
            raise WaggleError("WAGGLE_NO_LEADER", sentence + undone)
        raise error

    def answered(self, subject, data):
        if subject in self.waiting:
            nobody = refusal("WAGGLE_NO_LEADER", "no coordinator listens")
            self.waiting[subject][1].put(json.loads(data) if data else nobody)  # without data: no responders

    def settle_all(self, answer, of=None):
        for subject, box in list(self.waiting.values()):
            if of in (None, subject):
                box.put(answer)

    def read(self):
        while not self.closed:
            try:
                for line in self.input:
                    self.obey(line)
            except (OSError, ValueError):
                pass
            self.hang_up()
            pause, refused_at = 0.05, None
            while not self.closed:
                time.sleep(pause * random.uniform(0.5, 1))
                try:
                    self.open()
                except WaggleError as error:
                    pause, now = min(2.0, pause * 2), time.monotonic()
                    refused_at = (refused_at or now) if error.code == "WAGGLE_UNAUTHORIZED" else None
                    if refused_at and now - refused_at >= REFUSED_SECONDS:
                        self.refused(error)
                    continue
                self.settle_all(refusal("WAGGLE_OUTCOME_UNKNOWN", "the connection to the server was lost"))
                for notify in list(self.on_connected):
                    notify()
                break
        self.settle_all(refusal("WAGGLE_OUTCOME_UNKNOWN", "the connection was closed"))

    def refused(self, error):
        """The server refuses the credentials: they were revoked, or have expired. Every request raises `error`."""
        self.error, self.closed = error, True
        self.confirmed.set()  # requests that wait to be published see the error
        self.settle_all(error)
        for notify in list(self.on_connected):
            notify()

    def obey(self, line):
        op, *args = line.decode().split()
        if op == "PING":
            self.write(b"PONG\r\n")
        elif op == "PONG":
            with self.lock:
                self.pongs += 1
                if self.pongs == self.pings:
                    self.confirmed.set()
        elif op in ("MSG", "HMSG"):
            body = self.input.read(int(args[-1]) + 2)[:-2]
            if args[1] in self.handlers:
                self.handlers[args[1]][1](args[0], body[int(args[-2]):] if op == "HMSG" else body)
        elif op == "-ERR" and (violation := VIOLATION.search(line.decode())):
            operation, subject = violation.groups()
            if operation == "Publish":
                return self.settle_all(("publish", subject), of=subject)
            self.refused_subjects.add(subject)
            if subject == self.replies:
                self.settle_all(("subscribe", subject))

    def keep_alive(self):
        """A silent server is gone, or hangs: reading then fails, and the client connects to the next server."""
        while not self.closed:
            time.sleep(PING_SECONDS)
            self.ping()

    def close(self):
        self.closed = True
        self.hang_up()
        self.confirmed.set()  # requests that wait to be published see the end

    def hang_up(self):
        self.confirmed.clear()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def not_accepted(where, reason):
    """The error for a server that ended the login. Other reasons than the credentials may pass."""
    if re.search("authoriz|authentic", reason, re.IGNORECASE):
        message = f"NATS at {where} refused the credentials ({reason}): check user and password in the URL, or " \
                  "`token`. This client has no nkeys, JWTs or client certificates"
        return WaggleError("WAGGLE_UNAUTHORIZED", message)
    return WaggleError("WAGGLE_UNREACHABLE", f"NATS at {where} ended the connection ({reason or 'without a reason'})")
