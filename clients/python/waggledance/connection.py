"""A connection to a NATS server, and the forms of the wire."""
import base64, difflib, hmac, json, queue, random, re, socket, ssl, threading, time, uuid
from urllib.parse import unquote, urlparse

__version__ = "0.1.0"
REQUEST_SECONDS, PATIENCE_SECONDS = 5.0, 30.0  # until a request is repeated; until a request without a leader fails
PING_SECONDS, SILENCE_SECONDS = 5.0, 15.0  # between two pings; until a silent server is left for the next
REFUSED_SECONDS = 15.0  # of refused credentials, until the connection ends: a server that is being replaced may refuse for a moment
PAYLOAD_BYTES = 256 * 1024  # of a payload, and of a result
MAY_DECIDE_LATER = {"WAGGLE_NO_LEADER", "WAGGLE_OUTCOME_UNKNOWN", "WAGGLE_UNREACHABLE", "WAGGLE_BACKPRESSURE", "WAGGLE_JOURNAL_FULL"}


class WaggleError(Exception):
    """Has a stable `code`, as WAGGLE_NO_LEADER. `field` names a wrong argument; `outcome` tells how a task ended. `newest` is the
    newest session of an agent whose join is refused."""

    def __init__(self, code, message, field=None, outcome=None, newest=None):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.field, self.outcome, self.newest = code, message, field, outcome, newest


class OnHold(WaggleError):
    """A resource is on hold for longer than a request for its slots may wait. `until`: seconds since 1970. An attempt that lets it
    pass counts towards no limit."""

    def __init__(self, message, resource, until):
        super().__init__("WAGGLE_ON_HOLD", message, "resources")
        self.resource, self.until = resource, until


def fresh():
    return uuid.uuid4().hex


def encoded(value, what, most):
    """Text as is, bytes as base64, anything else as JSON. @raises ValueError beyond `most` bytes"""
    if isinstance(value, (bytes, bytearray)):
        form = {"text": base64.b64encode(value).decode(), "encoding": "base64"}
    else:
        form = {"text": value if isinstance(value, str) else json.dumps(value, allow_nan=False)}
    size = len(form["text"].encode())
    if size > most:
        raise ValueError(f"the {what} has {size} bytes, above the maximum of {most}")
    return form


def wired(options, names, of, others=()):
    """Options by the names of the wire: each may also be in snake_case. `others`: parameters, for the suggestion.
    @raises WaggleError WAGGLE_INVALID_MESSAGE for any other name, which would be dropped in silence"""
    spelled, given = {name: re.sub("([A-Z])", r"_\1", name).lower() for name in names}, {}
    wire_names = {**{snake: name for name, snake in spelled.items()}, **{name: name for name in names}}
    for option, value in options.items():
        name = wire_names.get(option)
        if name is None:
            near = difflib.get_close_matches(option, [*spelled.values(), *others, *names], 1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join([*spelled.values(), *others])}"
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"{of} has no option {option}; {hint}", option)
        if name in given:
            raise WaggleError("WAGGLE_INVALID_MESSAGE", f"{of} has {name} twice, in both spellings", option)
        given[name] = value
    return given


def require(count, least, call, field):
    """@returns the count. @raises WaggleError WAGGLE_INVALID_MESSAGE unless it is an int of at least `least`"""
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        message = f"{call}: {field}: must be a whole number of at least {least}, not {count!r}"
        raise WaggleError("WAGGLE_INVALID_MESSAGE", message, field)
    return count


def decoded(text, encoding):
    return base64.b64decode(text or "") if encoding == "base64" else text


def error_of(answer):
    """Requests hold one task: the error names its field alone."""
    message, field = answer["message"].replace("tasks[0].", ""), answer.get("field", "").replace("tasks[0].", "")
    if "hold" in answer:
        return OnHold(message, answer["hold"]["resource"], answer["hold"]["until"] / 1000)
    return WaggleError(answer["code"], message, field or None, newest=answer.get("newest"))


def servers_in(urls):
    """Of nats://a:4222,nats://b:4222: servers of one cluster. @raises WaggleError"""
    servers = [urlparse(url if "//" in url else f"nats://{url}") for url in urls.replace(" ", "").split(",") if url]
    try:
        if servers and all(at.hostname and (at.port or 4222) and at.scheme in ("nats", "tls") for at in servers):
            return servers
    except ValueError:  # of the port
        pass
    raise WaggleError("WAGGLE_INVALID_CONFIG", f"not the URL of a NATS server: {urls!r}; write nats://host:4222, or several with commas", "url")


class Nats:
    """A connection to a NATS server that comes back by itself. Handlers of subscriptions run in the reading thread."""

    def __init__(self, url, token, inbox_prefix, folder=False):
        self.servers, self.token, self.inbox = servers_in(url), token, f"{inbox_prefix}.{fresh()}"
        self.folder = folder  # the token is the secret of .waggle, for its development broker alone
        self.handlers, self.waiting, self.on_connected = {}, {}, []
        self.lock, self.closed, self.socket, self.error = threading.RLock(), False, None, None
        self.subscribe(self.inbox + ".reply.*", self.answered)
        self.open()
        for work in (self.read, self.ping):
            threading.Thread(target=work, daemon=True).start()

    def open(self):
        """Connects to the first server that answers. @raises WaggleError of the last one"""
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
            auth, proof = ({"user": user, "pass": password}, b"") if password else self.login(info.get("nonce", ""), port, user)
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
            sid = fresh()[:12]
            self.handlers[sid] = (subject, handler)
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
        if self.error:
            raise self.error
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
        raise self.error or error

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
                for _, box in list(self.waiting.values()):
                    box.put(None)  # requests that were on the way are repeated at once
                for notify in list(self.on_connected):
                    notify()
                break

    def refused(self, error):
        """The server no longer accepts the credentials: they were revoked, or have expired. Every request raises this."""
        self.error, self.closed = error, True
        for _, box in list(self.waiting.values()):
            box.put(error)
        for notify in list(self.on_connected):
            notify()

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

    def ping(self):
        """A server that answers nothing is gone, or hangs: then reading fails, and the next server is tried."""
        while not self.closed:
            time.sleep(PING_SECONDS)
            self.write(b"PING\r\n")

    def close(self):
        self.closed = True
        self.hang_up()

    def hang_up(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
