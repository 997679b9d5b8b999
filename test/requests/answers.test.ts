// The wording of refusals for want of room: whose bound, how full, which tasks count, and a remedy.

import { describe, expect, it } from "vitest";
import type { QueueRefusal } from "../../src/core/command.ts";
import { projectId, userId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { submitAnswer } from "../../src/requests/answers.ts";

const refused: Omit<QueueRefusal, "reason"> = {
  kind: "refused",
  project: projectId("acme"),
  user: userId("ann"),
  has: 1_500,
  max: 1_000,
  retryAfterMs: limits.retryAfterMs,
};

/** The message of the answer. */
function messageOf(refusal: Partial<QueueRefusal> & Pick<QueueRefusal, "reason">): string {
  const answer = submitAnswer({ ...refused, ...refusal });
  expect(answer).toMatchObject({
    ok: false,
    code: "WAGGLE_BACKPRESSURE",
    retryAfterMs: limits.retryAfterMs,
  });
  return "message" in answer ? answer.message : "";
}

describe("no room for a task", () => {
  it.each<[QueueRefusal["reason"], RegExp]>([
    ["swarm-queue-full", /^the swarm has 1,500 tasks waiting .*may have 1,000: try again/],
    ["project-queue-full", /^project acme has 1,500 tasks waiting .*may have 1,000: try again/],
    [
      "user-queue-full",
      /^user ann of project acme has 1,500 tasks waiting .*more than the mean .*may have 1,000 now/,
    ],
    ["too-many-users", /^project acme has 1,500 users with live tasks.*try again/],
    ["too-many-needs", /^live tasks need 1,500 different sets of labels, at most 1,000 may: try again/],
    ["too-many-projects", /^1,500 projects have tasks.*acme has none: try again/],
  ])("%s names the owner, the number and the maximum", (reason, message) => {
    expect(messageOf({ reason })).toMatch(message);
  });

  it("says which tasks count as waiting, retries included", () => {
    for (const reason of ["swarm-queue-full", "project-queue-full", "user-queue-full"] as const)
      expect(messageOf({ reason })).toContain("(queued, not due yet, or to be tried again)");
  });

  it("of a project names the flag for a higher bound, unless the bound is the maximum", () => {
    const reason = "project-queue-full";
    expect(messageOf({ reason })).toContain("`waggle project set acme --queue-max N`");
    expect(messageOf({ reason, max: limits.queuedTasksPerProjectMax })).not.toContain("--queue-max");
  });
});
