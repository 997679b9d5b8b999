#!/usr/bin/env python3
"""A Waggle agent in plain Python, no packages: joins, sends heartbeats, runs tasks, drains on Ctrl-C or SIGTERM.
    python3 agent.py --kind shout [--swarm default] [--nats nats://TOKEN@127.0.0.1:4222] [--max-concurrent 4] [--group GROUP] [--inbox-prefix _INBOX_me]
Without --nats, reads .waggle/broker.json in the current folder. Exit code 3: the connection was lost; 5: forbidden. See docs/protocol.md.
"""
import argparse, hmac, json, os, signal, socket, sys, threading, time, uuid
from urllib.parse import urlparse

def handle(task):
    """Runs one task: returns the result for task["payload"]. Raise ValueError for invalid input, ConnectionError to be on hold."""
    return task["payload"].upper()
NAME = ("project", "task", "attempt")  # identify an attempt: task ids are unique within a project
def fresh(): return uuid.uuid4().hex
def key_of(attempt): return tuple(attempt[part] for part in NAME)
def refused(by): os._exit(print(f"{by['code']}: {by['message']}", file=sys.stderr) or 5)  # from every thread; asking again does not help

class Nats:
    """A minimal NATS client: one connection, publish, subscribe, request."""
    def __init__(self, url, token, inbox_prefix):
        at = urlparse(url)
        self.socket = socket.create_connection((at.hostname, at.port or 4222))
        self.input, self.lock, self.handlers, self.waiting = self.socket.makefile("rb"), threading.Lock(), {}, {}
        nonce, challenge, secret = json.loads(self.input.readline()[5:]).get("nonce", ""), fresh(), token or at.username or ""
        def proof(side): return hmac.new(secret.encode(), f"{side}\n{nonce}\n{challenge}".encode(), "sha256").hexdigest()
        if at.password: auth = {"user": at.username, "pass": at.password}
        elif nonce.startswith(f"waggle-{at.port}-"): auth = {"auth_token": proof("client"), "challenge": challenge}
        elif token: sys.exit(f"the process at {at.netloc} is not this folder's broker")
        else: auth = {"auth_token": secret}
        self.write(f"CONNECT {json.dumps({'verbose': False, 'headers': True, 'no_responders': True, **auth})}\r\n".encode())
        if "challenge" in auth and proof("broker").encode() not in self.input.readline(): sys.exit(f"{at.port}: wrong secret, or not the broker")
        self.inbox = f"{inbox_prefix}.{fresh()}"
        self.subscribe(self.inbox + ".*", lambda subject, data: self.waiting.pop(subject, lambda _: None)(data))
        threading.Thread(target=self.read, daemon=True).start()
    def write(self, data):
        with self.lock: self.socket.sendall(data)
    def publish(self, subject, message, reply=""):
        data = json.dumps(message).encode()
        self.write(f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")
    def subscribe(self, subject, handler):
        self.handlers[sid := str(len(self.handlers) + 1)] = handler
        self.write(f"SUB {subject} {sid}\r\n".encode())
    def request(self, subject, message, timeout=5.0):
        """The answer, or None without an answer: then ask again with the same content."""
        reply, answered, box = f"{self.inbox}.{fresh()}", threading.Event(), []
        self.waiting[reply] = lambda data: (box.append(data), answered.set())
        self.publish(subject, message, reply); answered.wait(timeout)
        return json.loads(box[0]) if box and box[0] else None
    def read(self):
        for line in self.input:
            op, *args = line.decode().split()
            if op == "PING": self.write(b"PONG\r\n")
            elif op == "-ERR": print("server:", line.decode().strip(), file=sys.stderr); b"Permissions" in line and os._exit(5)  # asking again does not help
            elif op in ("MSG", "HMSG"):
                body = self.input.read(int(args[-1]) + 2)[:-2]
                data = body[int(args[-2]):] if op == "HMSG" else body  # "no responders" is a header without data
                self.handlers[args[1]](args[0], data)
        os._exit(print("the connection to the server was lost", file=sys.stderr) or 3)

class Agent:
    def __init__(self, nats, swarm, group, name, kinds, capacity):
        self.nats, self.name, self.kinds, self.capacity = nats, name, kinds, capacity
        self.prefix = f"waggle.v1.{swarm}.agent.{group}.{name}."
        self.incarnation, self.after, self.term, self.seen = fresh(), {}, 0, 0
        self.early, self.held, self.revoked, self.draining = set(), {}, set(), False
        nats.subscribe(self.prefix + "assign", lambda _, data: self.pushed(json.loads(data)))
    def ask(self, verb, message):
        while True:
            answer = self.nats.request(self.prefix + verb, {"incarnation": self.incarnation, **message})
            if answer is not None and answer.get("code") != "WAGGLE_BACKPRESSURE": return answer
            time.sleep(0.5)  # no leader, or backpressure
    def join(self):
        answer = self.ask("join", {"kinds": self.kinds, "maxConcurrent": self.capacity, "seen": self.seen, "held": self.listed(), **self.after})
        if "newest" in answer: self.incarnation, self.after = fresh(), {"after": answer["newest"]}; return self.join()  # an earlier start's session
        print(f"{self.name} joined, term {answer['term']}", file=sys.stderr) if answer.get("ok") else refused(answer)
    def listed(self): return [dict(zip(NAME, key)) for key in list(self.held)]
    def pushed(self, push):
        if push["incarnation"] != self.incarnation or push["term"] < self.term: return
        self.term = push["term"]
        if push["type"] == "assign":
            for task in push["assignments"]: self.start(task)
        elif push["type"] == "revoke": self.revoked.update(key_of(each) for each in push["attempts"])
        elif "refusal" in push: refused(push["refusal"])  # the grant of the group changed
        elif push["type"] == "rejoin":  # after a long silence, the leader reassigned all attempts
            self.incarnation, self.seen, self.early, self.held = fresh(), 0, set(), {}
            threading.Thread(target=self.join).start()
        elif push["type"] == "fenced": refused({"code": "WAGGLE_FENCED", "message": "another process joined under the agent's id"})
    def start(self, task):
        if task["number"] <= self.seen or task["number"] in self.early: return  # a repetition
        self.early.add(task["number"])
        while self.seen + 1 in self.early: self.seen += 1; self.early.discard(self.seen)
        self.held[key_of(task)] = task; threading.Thread(target=self.run, args=(task,)).start()
    def run(self, task):
        key = key_of(task)
        try: report = {"outcome": "revoked"} if task.get("revoked") else {"outcome": "completed", "result": handle(task)}
        except ConnectionError as error: report = {"outcome": "infrastructure", "error": repr(error), "hold": {"forMs": 5000}}
        except Exception as error: report = {"outcome": "invalid" if isinstance(error, ValueError) else "failed", "error": str(error) or repr(error)}
        if key in self.revoked: report = {"outcome": "revoked"}
        self.ask("result", {"results": [{**dict(zip(NAME, key)), "token": task["token"], **report}]})
        self.held.pop(key, None)  # held until the result was answered
    def heartbeat(self):
        held = self.listed()
        self.nats.publish(self.prefix + "heartbeat", {"incarnation": self.incarnation, "status": "busy" if held else "ready",
            "inFlight": len(held), "held": held, "seen": self.seen, "draining": self.draining})
    def live(self):
        self.join()
        for each in (signal.SIGINT, signal.SIGTERM): signal.signal(each, lambda *_: setattr(self, "draining", True))
        while self.held or not self.draining:
            self.heartbeat(); time.sleep(1)
        print("left:", self.ask("leave", {}), file=sys.stderr)

if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--kind", action="append", required=True)
    for flag in ("--swarm", "--nats", "--group", "--id", "--max-concurrent"): flags.add_argument(flag)
    flags.add_argument("--inbox-prefix", default=os.environ.get("NATS_INBOX_PREFIX", "_INBOX"))
    given = flags.parse_args()
    broker = {"url": given.nats} if given.nats else json.load(open(".waggle/broker.json"))
    if broker.get("kind") == "nats-server": broker["url"] = broker["url"].replace("//", f"//waggle:{broker.pop('secret')}@")
    name = given.id or f"{socket.gethostname().split('.')[0]}-{given.kind[0]}-{fresh()[:4]}"
    Agent(Nats(broker["url"], broker.get("secret"), given.inbox_prefix), given.swarm or "default", given.group or "_", name, given.kind, int(given.max_concurrent or 4)).live()
