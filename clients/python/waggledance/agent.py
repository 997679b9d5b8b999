"""An agent: joins, sends heartbeats, runs attempts in threads, reports each result until the answer, holds slots.

A lease: the agent owns attempts and slots while a leader confirms heartbeats. Without a confirmation for most of a
lease the agent aborts all attempts, because the leader may assign the tasks again. New assignments then wait for the
next confirmation.
"""
import json, threading, time

from .attempt import Attempt, key_of, release_after, wait_of
from .wire import FOREVER, MAY_DECIDE_LATER, WaggleError, error_of, fresh, require, seconds_of, wired

SAFE_SHARE = 0.8  # of a lease
FINAL = {"WAGGLE_STALE_TOKEN", "WAGGLE_UNKNOWN_TASK", "WAGGLE_GONE", "WAGGLE_FENCED"}  # refusals of a result
ENVELOPE_BYTES = 256  # of a message with results, without the results
RESULTS_PER_MESSAGE = 256
ACQUIRE_TERMS = ("timeoutMs", "idleTimeoutMs", "tokens", "project", "user", "label", "as")


def failed(report, why):
    """The report of a failure, in place of a result that the leader cannot accept."""
    names = {name: report[name] for name in ("project", "task", "attempt", "token")}
    return {**names, "outcome": "failed", "error": why[:1024]}


def told_again(report, answer):
    """The next report after the leader's answer to `report`. @returns None after a final answer"""
    if answer["ok"] or answer["code"] in FINAL:
        return None
    if answer["code"] != "WAGGLE_INVALID_MESSAGE":
        return report  # no verdict on the result
    if "hold" in report:
        return {name: each for name, each in report.items() if name != "hold"}
    if report["outcome"] == "failed":
        return None
    return failed(report, f"the result was refused: {answer['message']}")


class Slot:
    """The slots of one `acquire`. `release`, or the end of a `with`, gives the slots back. `lost` is an Event: set when
    the lease is lost, or when the handler that acquired the slots ends. Stop the use of the resource then."""

    def __init__(self, agent, handle, resources, attempt=None):
        self.agent, self.handle, self.resources, self.attempt = agent, handle, resources, attempt
        self.granted, self.lost, self.reason, self.usage = threading.Event(), threading.Event(), None, {}
        self.expected, self.released = None, False  # tokens that the attempt is charged without a report

    def report(self, tokens, *, partial=False):
        """Adds used tokens. The release charges the sum. `partial`: the work was cut off.
        @raises WaggleError WAGGLE_INVALID_MESSAGE unless `tokens` is a whole number"""
        tokens = self.usage.get("usage", {}).get("tokens", 0) + require(tokens, 0, "report", "tokens")
        self.usage = {"usage": {"tokens": tokens, **({"partial": True} if partial else {})}}

    def touch(self):
        """Restarts the idle time. Call it a few times per `idle_timeout`. @returns whether the slots are still held"""
        return self.agent.ask("touch", {"handle": self.handle})["state"] == "held"

    def release(self, *, retry_after=None, until=None, refused=False, resource=None, reason="", unanswered=False):
        """Gives the slots back, once. Repeated calls do nothing.

        Without arguments the release counts as a success of the provider. `retry_after` or `until`, as in
        `Infrastructure`, say that the provider refused the work: the slots' resources, or `resource`, go on hold before
        the slots are free. `refused=True` reports a refusal without a time; a time that cannot be read counts as no
        time. The third refusal in a row then places a hold. `unanswered=True`: the work failed, or was cut off, before
        the provider answered.

        Reported tokens count also after the slots were lost. A refusal counts also after the release, for slots of one
        resource. A `with` that ends by an exception releases as unanswered, or as refused for an `Infrastructure` with
        a resource of the slots as `scope`.
        @raises WaggleError when no leader answers"""
        refused = refused or retry_after is not None or until is not None
        if self.released and not refused:
            return
        is_first, self.released, held = not self.released, True, self.agent.slots.pop(self.handle, None)
        usage = self.usage if is_first else {}
        if self.attempt and is_first:
            used, usage = usage.get("usage", {}).get("tokens", self.expected), {}
            used is None or self.attempt.report_tokens(used)
        if resource is None and len(set(self.resources)) == 1:
            resource = self.resources[0]  # a leader forgets the resources of a lease that ended
        named = {} if resource is None else {"resource": resource}
        refusal = {**wait_of(retry_after, until), "reason": str(reason)[:1024], **named}
        report = {**usage, **({"refused": refusal} if refused else {"unanswered": True} if unanswered else {})}
        if not held and refused:
            report = {"usage": {"tokens": 0}, **report}  # the end of the lease settled its tokens
        if held or report and not self.agent.ended.is_set():
            self.agent.ask("release", {"handle": self.handle, **report})

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        self.release(**release_after(error, self.resources))


class Agent:
    """A running agent, from `Swarm.agent`. `ended` is an Event that is set at the agent's end. An agent that ended by
    itself has an `error`: WAGGLE_FORBIDDEN, WAGGLE_FENCED or WAGGLE_UNAUTHORIZED. `drain` and the end of a `with` raise
    the error."""

    def __init__(self, swarm, id, group, handler, profile):
        self.nats, self.id, self.handler, self.profile = swarm.nats, id, handler, profile
        self.prefix, self.term = f"{swarm.prefix}.agent.{group}.{id}", 0
        self.lock, self.changed = threading.RLock(), threading.Event()
        self.is_draining, self.is_over, self.error, self.ended = False, False, None, threading.Event()
        self.newest = None  # incarnation of the agent's newest session, if known: a join names the incarnation
        self.running, self.slots = 0, {}  # handlers of all incarnations; slots by handle
        self.reports, self.has_reports, self.ttl, self.period = [], threading.Event(), 10.0, 1.0
        self.begin()
        self.assign = self.prefix + ".assign"
        self.subscription = self.nats.subscribe(self.assign, lambda _, data: self.pushed(json.loads(data)))
        try:
            self.join()
        except WaggleError:
            self.nats.unsubscribe(self.subscription)
            raise
        self.nats.on_connected.append(self.changed.set)
        for work in (self.live, self.report):
            threading.Thread(target=work, daemon=True).start()

    def begin(self):
        """Begins a session without attempts of earlier sessions, under a new incarnation."""
        self.incarnation, self.seen, self.early, self.held, self.deferred = fresh(), 0, set(), {}, []
        self.confirmed_at, self.must_join = -FOREVER, True

    def ask(self, verb, message, patience=30.0):
        if self.error:
            raise self.error
        incarnation = self.incarnation
        still = lambda: not self.ended.is_set() and self.incarnation == incarnation
        return self.nats.ask(f"{self.prefix}.{verb}", {"incarnation": incarnation, **message}, patience, still)

    def publish(self, verb, message):
        self.nats.publish(f"{self.prefix}.{verb}", {"incarnation": self.incarnation, **message})

    def join(self):
        self.nats.confirm(self.assign, is_undone=None)
        sent_at = time.monotonic()
        free = self.profile["maxConcurrent"] - self.running
        after = {} if self.newest is None else {"after": self.newest}
        offer = {**self.profile, **after, "maxConcurrent": max(1, free), "seen": self.seen, "held": self.listed()}
        try:
            answer = self.ask("join", offer)
        except WaggleError as error:
            if error.newest is None:
                raise
            with self.lock:
                self.begin()
                self.newest = error.newest
            return self.join()
        with self.lock:
            self.newest = self.incarnation
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
                message = f"a second process joined as agent {self.id}: give each process an id of its own"
                self.fail(WaggleError("WAGGLE_FENCED", message))
            elif refusal := push.get("refusal"):
                self.fail(error_of(refusal))  # a grant or the policy no longer permits the agent to join
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
            return  # repeated by the leader
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
        """Repeats each result until the answer. The agent holds the attempt until then."""
        while not self.ended.is_set():
            self.has_reports.wait(0.5)
            with self.lock:
                self.has_reports.clear()
                batch = self.next_batch()
            answers = []
            try:
                if batch:
                    answers = self.ask("result", {"results": [report for _, report in batch]}, FOREVER)["answers"]
            except WaggleError as error:
                if error.code in MAY_DECIDE_LATER:
                    continue  # a new session began, or the agent ends
                self.fail(error)
            with self.lock:
                for (attempt, report), answer in zip(batch, answers):
                    at = next(at for at, each in enumerate(self.reports) if each[0] is attempt)
                    if again := told_again(report, answer):
                        self.reports[at] = (attempt, again)
                        continue
                    del self.reports[at]
                    self.has_reports.set()  # for results that had no room in the message
                    if self.held.get(attempt.key) is attempt:
                        del self.held[attempt.key]

    def next_batch(self):
        """The oldest reports, as many as the server accepts in one message."""
        self.reports = [each for each in self.reports if each[0].incarnation == self.incarnation]
        room, size, batch = self.nats.payload_max - ENVELOPE_BYTES, 0, []
        for at, (attempt, report) in enumerate(self.reports[:RESULTS_PER_MESSAGE]):
            own = len(json.dumps(report)) + 2
            if own > room:
                why = f"the result needs {own} bytes in a message, and the server accepts {room}"
                self.reports[at] = attempt, report = attempt, failed(report, why)
                own = len(json.dumps(report)) + 2
            if batch and size + own > room:
                break
            batch.append((attempt, report))
            size += own
        return batch

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
        """Joins, sends heartbeats, and leaves after a drain."""
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
                if error.code not in MAY_DECIDE_LATER:
                    self.fail(error)
            self.changed.wait(self.period)
            self.changed.clear()

    def heartbeat(self):
        with self.lock:
            held, sent_at, incarnation = self.listed(), time.monotonic(), self.incarnation
            slots = {"held": [], "waiting": []}
            for handle, slot in self.slots.items():
                slots["held" if slot.granted.is_set() else "waiting"].append(handle)
            message = {"incarnation": incarnation, "status": "busy" if held else "ready", "inFlight": len(held),
                       "held": held, "seen": self.seen, "draining": self.is_draining,
                       **({"slots": slots} if self.slots else {})}
        answer = self.nats.request(self.prefix + ".heartbeat", message, self.period)
        with self.lock:
            if answer.get("renewed") and answer["term"] >= self.term and incarnation == self.incarnation:
                self.confirmed_at, self.term = sent_at, answer["term"]
                self.obey_deferred()
            elif time.monotonic() - self.confirmed_at > self.ttl * SAFE_SHARE:
                self.abort()  # the leader may assign the tasks again

    def acquire(self, *resources, attempt=None, weight=1, timeout=None, idle_timeout=None, as_=None, **terms):
        terms = wired(terms, ACQUIRE_TERMS, "acquire", ("timeout", "idle_timeout", "weight"))
        times = {}
        for name, field, wait in (("timeoutMs", "timeout", timeout), ("idleTimeoutMs", "idle_timeout", idle_timeout)):
            if wait is not None:
                times[name] = round(seconds_of(wait, "acquire", field) * 1000)
        slot = Slot(self, fresh(), resources, attempt)
        self.slots[slot.handle] = slot
        holder = attempt.holder if attempt else slot.handle
        wish = {"handle": slot.handle, "resources": list(resources), "weight": weight, "holder": holder, "as": as_,
                **times, **terms}
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
        while not slot.granted.wait(0.2 if attempt else None):
            if attempt.aborted.is_set() and self.slots.pop(slot.handle, None):
                self.ask("release", {"handle": slot.handle})
                raise WaggleError("WAGGLE_HANDLE_ENDED", f"{' and '.join(resources)}: the attempt was aborted")
        if slot.reason == "on-hold":  # the answer to a new request has the end of the hold
            again = {"weight": weight, "timeout": timeout, "idle_timeout": idle_timeout, "as_": as_, **terms}
            return self.acquire(*resources, attempt=attempt, **again)
        if slot.reason is not None:
            code = "WAGGLE_ACQUIRE_TIMED_OUT" if slot.reason == "timed-out" else "WAGGLE_HANDLE_ENDED"
            raise WaggleError(code, f"{' and '.join(resources)}: the request ended ({slot.reason})")
        return slot

    def fail(self, error):
        self.error = self.error or error
        self.ended.set()
        with self.lock:
            self.abort()

    def drain(self, timeout=None):
        """Takes no new attempts, finishes running attempts, and leaves the swarm.
        @returns whether the agent has left within `timeout` seconds; None waits without limit
        @raises WaggleError when the agent ended by itself"""
        has_left = self.leave(timeout)
        if self.error:
            raise self.error
        return has_left

    def leave(self, timeout=None):
        self.is_draining = self.is_over = True
        self.changed.set()
        return self.ended.wait(timeout)

    def stop(self):
        """Aborts running attempts, so that the leader assigns the tasks again, and leaves within 3 s."""
        with self.lock:
            self.abort()
        self.leave(3.0)
        self.ended.set()
        self.nats.unsubscribe(self.subscription)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.drain() if kind is None else self.leave()  # an exception of the block hides the agent's error
