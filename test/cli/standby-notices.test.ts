// Notices of `up` while its coordinator is a standby, in virtual time.

import { TestScheduler } from "rxjs/testing";
import { expect, it } from "vitest";
import { standbyNotices } from "../../src/cli/standby-notices.ts";
import type { Role } from "../../src/coordinator/coordinator.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { limits } from "../../src/limits.ts";

const roles: Record<string, Role> = { s: "standing-by", l: "leading", x: "stopped" };

/** @param role$ as marbles: s stands by, l leads, x is stopped */
function expectNotices(role$: string, expected: string, sentences: Record<string, string>) {
  new TestScheduler((actual, wanted) => expect(actual).toEqual(wanted)).run(({ cold, expectObservable }) => {
    const coordinator = {
      role$: cold(role$, roles),
      silenceMsMax: timingOf(limits.leaderTimeoutMs).silenceMsMax,
    };
    const notices = standbyNotices({ coordinator, transport: { status: () => "connected" } });
    expectObservable(notices).toBe(expected, sentences);
  });
}

const waits = "standing by: waiting to see whether another coordinator leads (up to 4.5 s)";
const follows = "standing by: another coordinator leads";

it("is the delay of the notice of a new leader", () => {
  expectNotices("s", "500ms w 4499ms f", { w: waits, f: follows });
});

it("is nothing of a moment", () => {
  expectNotices("s 499ms l", "500ms |", {});
});

it("ends when the coordinator leads: later its log names the leader", () => {
  expectNotices("s 4399ms l 99ms s 9999ms x", "500ms w 3899ms |", { w: waits });
});
