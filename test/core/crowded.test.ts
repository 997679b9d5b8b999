// Full tables: rows in use admit no new row, idle rows are evicted, and agents that left are forgotten for new agents.

import { expect, it } from "vitest";
import type { Reply } from "../../src/core/command.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { Turn } from "../../src/core/step.ts";
import {
  agentId,
  assignmentNumber,
  batchIndex,
  incarnation,
  instant,
  kind,
  projectId,
  taskId,
  term,
  userId,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { ContentHasher, taskSpec } from "../../src/requests/task-spec.ts";
import { emptyState, type SwarmState } from "../../src/state/state.ts";

function turnOf(state: SwarmState): Turn {
  return new Turn(state, instant(state.at + 1), batchIndex(state.idx + 1));
}

function startedState(): SwarmState {
  const state = emptyState();
  turnOf(state).take({ type: "StartTerm", term: term(1), leader: "c1", opened: "o1", timeoutMs: 3_000 });
  return state;
}

function submit(turn: Turn, user: string, project = "p"): Reply {
  const input = { kind: kind("count"), user: userId(user), id: taskId(`${project}-${user}`) };
  const task = taskSpec(input, projectId(project), () => taskId("unused"));
  return turn.take({ type: "SubmitTask", task, hash: new ContentHasher().hashOf(task) });
}

function join(turn: Turn, name: string): Reply {
  const session = { agent: agentId(name), incarnation: incarnation(`${name}-1`) };
  const rest = { kinds: [kind("count")], maxConcurrent: 1, held: [], seen: assignmentNumber(0) };
  return turn.take({ type: "JoinAgent", ...session, ...rest });
}

it("a project with the maximum of busy users refuses one more, and admits a user once another is idle", () => {
  const state = startedState();
  const turn = turnOf(state);
  for (let n = 0; n < limits.usersPerProjectMax; n += 1) submit(turn, `user-${n}`);
  const users = { has: limits.usersPerProjectMax, max: limits.usersPerProjectMax };
  expect(submit(turn, "one-more")).toMatchObject({ reason: "too-many-users", ...users });
  expect(submit(turn, "one-more", "another-project")).toMatchObject({ kind: "accepted" });

  turn.take({ type: "CancelTask", project: projectId("p"), task: taskId("p-user-7"), round: 1 });
  expect(submit(turn, "one-more")).toMatchObject({ kind: "accepted" });
  expect(state.projectById.get(projectId("p"))?.userByName.has(userId("user-7"))).toBe(false);
  expect(checkInvariants(state)).toEqual([]);
});

it("the maximum of projects leaves no room for another while all are busy", () => {
  const state = startedState();
  const turn = turnOf(state);
  for (let n = 0; n < limits.projectsMax; n += 1) submit(turn, "ann", `project-${n}`);
  const projects = { has: limits.projectsMax, max: limits.projectsMax };
  expect(submit(turn, "ann", "one-more")).toMatchObject({ reason: "too-many-projects", ...projects });
  expect(checkInvariants(state)).toEqual([]);
});

it("agents that left are forgotten for new agents, longest gone first; online agents are not", () => {
  const state = startedState();
  let turn = turnOf(state);
  for (let n = 0; n < limits.agentsMax; n += 1) join(turn, `agent-${n}`);
  expect(join(turn, "one-more")).toMatchObject({ kind: "too-many-agents" });

  turn.take({ type: "LeaveAgent", agent: agentId("agent-5"), incarnation: incarnation("agent-5-1") });
  turn = turnOf(state);
  turn.take({ type: "LeaveAgent", agent: agentId("agent-3"), incarnation: incarnation("agent-3-1") });
  expect(join(turn, "one-more")).toMatchObject({ kind: "joined" });
  expect([state.agentById.has(agentId("agent-5")), state.agentById.has(agentId("agent-3"))]).toEqual([
    false,
    true,
  ]);
});
