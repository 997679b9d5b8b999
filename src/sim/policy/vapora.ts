// The three worked examples of VAPORA's ADR-018: scores only, without draws or runs.

import { score, vaporaScore } from "../../scheduling/score.ts";
import type { RunInit, RunResult, Scenario } from "./scenario.ts";

const agents = [
  { successRate: 0.95, inFlight: 2, maxConcurrent: 5 },
  { successRate: 0.85, inFlight: 0, maxConcurrent: 5 },
  { successRate: 0.9, inFlight: 5, maxConcurrent: 5 },
];

export const vaporaExamples: Scenario = {
  name: "vapora-examples",
  summary: "the three agents worked out in VAPORA's ADR-018",
  rules: {
    vapora: "VAPORA's assignment score",
    waggle: "ours, for agents without a backlog",
  },
  metrics: {
    scoreA: "of the agent with success rate 0.95 and 2 of 5 in flight",
    scoreB: "with 0.85 and none of 5",
    scoreC: "with 0.90 and 5 of 5",
    selected: "rank of the highest, from 1",
  },
  better: {},
  isDeterministic: true,
  tasks: 3,
  charted: {
    scoreA: { title: "Score of agent A", axis: "score, 0 to 1" },
    scoreB: { title: "Score of agent B", axis: "score, 0 to 1" },
    scoreC: { title: "Score of agent C", axis: "score, 0 to 1" },
  },
  run({ rule }: RunInit): RunResult {
    const scores = agents.map((agent) => (rule === "waggle" ? score(agent, 1, 0) : vaporaScore(agent)));
    const [scoreA = 0, scoreB = 0, scoreC = 0] = scores;
    return { metrics: { scoreA, scoreB, scoreC, selected: scores.indexOf(Math.max(...scores)) + 1 } };
  },
};
