// Notices of `up` while its coordinator is a standby, in virtual time.

import { TestScheduler } from "rxjs/testing";
import { expect, it } from "vitest";
import { standbyNotices } from "../../src/cli/standby-notices.ts";
import type { Role } from "../../src/coordinator/coordinator.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { limits } from "../../src/limits.ts";

const roles: Record<string, Role> = { s: "standing-by", l: "leading", x: "stopped" };

/** @param role$ as marbles: s stands by, l leads, x is stopped
 *  @param heard when a leader is heard, virtual ms */
function expectNotices(
  role$: string,
  expected: string,
  { heard = Number.POSITIVE_INFINITY, sentences }: { heard?: number; sentences: Record<string, string> },
) {
  const scheduler = new TestScheduler((actual, wanted) => expect(actual).toEqual(wanted));
  scheduler.run(({ cold, expectObservable }) => {
    const coordinator = {
      role$: cold(role$, roles),
      silenceMsMax: timingOf(limits.leaderTimeoutMs).silenceMsMax,
      get heardLeader() {
        return scheduler.now() >= heard ? { id: "s2", term: 4 } : undefined;
      },
    };
    const notices = standbyNotices({ coordinator, transport: { status: () => "connected" } });
    expectObservable(notices).toBe(expected, sentences);
  });
}

const waits = "standing by: no leader heard; taking the lead if none announces itself within 4 s";
const follows = "standing by: coordinator s2 leads, term 4";
const sentences = { w: waits, f: follows };

it("names the leader as soon as one is heard", () => {
  expectNotices("s", "500ms (f|)", { heard: 200, sentences });
});

it("says first that no leader is heard, and names the leader once", () => {
  expectNotices("s", "500ms w 1999ms (f|)", { heard: 2_300, sentences });
});

it("is nothing of a moment", () => {
  expectNotices("s 499ms l", "500ms |", { sentences });
});

it("never says that a coordinator leads while none is heard", () => {
  expectNotices("s 4399ms l 99ms s 9999ms x", "500ms w 3899ms |", { sentences });
});
