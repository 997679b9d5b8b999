// A run of the benchmark with invented figures, for tests of tables, charts and the page.

import type { Figure, Run } from "../../bench/harness/record.ts";

export function aFigure(more: Partial<Figure> & Pick<Figure, "system" | "round">): Figure {
  return {
    case: "c1024",
    tasks: 1_000,
    ms: 1_000,
    ratePerSecond: 1_000,
    p50: 1,
    p99: 2,
    max: 3,
    usByRole: { server: 10, workers: 20, client: 30 },
    cores: 1.5,
    foreign: 0,
    stolen: 0,
    ...more,
  };
}

export function aRun(more: Partial<Run> = {}): Run {
  return {
    startedAt: "2026-11-27T01:00:00.000Z",
    endedAt: "2026-11-27T01:20:00.000Z",
    version: "1.2.3",
    codeDate: "2026-11-26",
    commit: "abc",
    rounds: 2,
    quick: false,
    node: "v24.1.0",
    servers: { "nats-server": "2.10.1" },
    machine: { cores: 2, model: "A Processor", memoryGiB: 8, system: "linux 6", load: [0.5, 1.5] },
    leftOut: [],
    figures: [
      aFigure({ system: "bare", round: 1, ratePerSecond: 2_000 }),
      aFigure({ system: "waggle", round: 1, ratePerSecond: 1_000 }),
      aFigure({ system: "bare", round: 2, ratePerSecond: 1_000 }),
      aFigure({ system: "waggle", round: 2, ratePerSecond: 800 }),
    ],
    ...more,
  };
}
