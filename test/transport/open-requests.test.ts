// Timeouts of many requests under a single timer, on a manual clock.

import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { limits } from "../../src/limits.ts";
import { Listeners } from "../../src/listeners.ts";
import { OpenRequests } from "../../src/transport/open-requests.ts";

/** Timers run when the test lets time pass. */
class TestClock implements Clock {
  monotonic = 0;
  timers: { at: number; run: () => void }[] = [];
  timersSet = 0;

  now = () => this.monotonic;
  monotonicMs = () => this.monotonic;
  soon = (run: () => void) => run();
  after = (ms: number, run: () => void) => {
    const timer = { at: this.monotonic + ms, run };
    this.timersSet += 1;
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  };

  advanceTo(at: number): void {
    for (;;) {
      const [next] = this.timers.filter((timer) => timer.at <= at).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.timers = this.timers.filter((timer) => timer !== next);
      this.monotonic = next.at;
      next.run();
    }
    this.monotonic = at;
  }
}

function open(requests: OpenRequests, timeoutMs: number, signal?: AbortSignal) {
  const { token, outcome } = requests.open(signal === undefined ? { timeoutMs } : { timeoutMs, signal });
  const request: { token: string; kind: string | undefined } = { token, kind: undefined };
  void outcome.then(({ kind }) => {
    request.kind = kind;
  });
  return request;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("open requests", () => {
  it("end in time, in any order of their deadlines", async () => {
    const clock = new TestClock();
    const requests = new OpenRequests(clock);
    const opened = [300, 100, 200].map((timeoutMs) => open(requests, timeoutMs));
    const kinds = async () => {
      await settled();
      return opened.map(({ kind }) => kind);
    };
    clock.advanceTo(99);
    expect(await kinds()).toEqual([undefined, undefined, undefined]);
    clock.advanceTo(100);
    expect(await kinds()).toEqual([undefined, "timeout", undefined]);
    clock.advanceTo(200);
    expect(await kinds()).toEqual([undefined, "timeout", "timeout"]);
    clock.advanceTo(300);
    expect(await kinds()).toEqual(["timeout", "timeout", "timeout"]);
  });

  it("set no timer each: one runs while any is open, and none when none is", async () => {
    const clock = new TestClock();
    const requests = new OpenRequests(clock);
    const first = open(requests, 1_000);
    for (let at = 0; at < 5_000; at += 1) {
      clock.monotonic = at / 10;
      requests.settle(open(requests, 1_000).token, { kind: "answered", data: new Uint8Array(0) });
    }
    expect(clock.timersSet).toBe(1);
    requests.settle(first.token, { kind: "answered", data: new Uint8Array(0) });
    expect(clock.timers).toEqual([]);
  });

  it("are looked through no more often than the grain when deadlines are close together", async () => {
    const clock = new TestClock();
    const requests = new OpenRequests(clock);
    const opened = Array.from({ length: 1_000 }, (_, at) => open(requests, 100 + at / 100));
    clock.advanceTo(110 + limits.requestTimeoutGrainMs);
    await settled();
    expect(new Set(opened.map(({ kind }) => kind))).toEqual(new Set(["timeout"]));
    expect(clock.timersSet).toBeLessThan(5);
  });

  it("let go of their signal when they end, and end all at once when the connection does", async () => {
    const requests = new OpenRequests(new TestClock());
    const { signal } = new AbortController();
    const listeners = new Set<unknown>();
    const watched = {
      aborted: false,
      addEventListener: (_type: string, listener: unknown) => listeners.add(listener),
      removeEventListener: (_type: string, listener: unknown) => listeners.delete(listener),
    } as unknown as typeof signal;
    const opened = [open(requests, 1_000, watched), open(requests, 1_000, watched)];
    expect(listeners.size).toBe(2);
    requests.settleAll("disconnected");
    await settled();
    expect(opened.map(({ kind }) => kind)).toEqual(["disconnected", "disconnected"]);
    expect(listeners.size).toBe(0);
  });
});

it("end together when their list is told, and leave the list when they are answered", async () => {
  const requests = new OpenRequests(new TestClock());
  const ending = new Listeners();
  const [first, second] = [1, 2].map(() => requests.open({ timeoutMs: 1_000, ending }));
  requests.settle(first?.token ?? "", { kind: "answered", data: new Uint8Array() });
  ending.notify();
  expect((await first?.outcome)?.kind).toBe("answered");
  expect((await second?.outcome)?.kind).toBe("timeout");
});
