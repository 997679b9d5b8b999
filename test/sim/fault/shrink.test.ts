// Shrinking leaves only faults and operations needed for the failure, and is deterministic.

import { describe, expect, it } from "vitest";
import { planOf, type SeedRequest } from "../../../src/sim/fault/run-seed.ts";
import { shrink } from "../../../src/sim/fault/shrink.ts";
import type { Operation } from "../../../src/sim/fault/workload.ts";

const options = { signal: new AbortController().signal, onTried: () => undefined };

describe("shrink", () => {
  it("leaves only the failing operation, and no fault", async () => {
    const request: SeedRequest = { seed: 3, forMs: 3_000, without: [] };
    const { workload } = planOf(request);
    const broken = { atMs: 2_000, client: "k1", does: "submit" } as unknown as Operation;
    const operations = [...workload.operations.slice(0, 5), broken, ...workload.operations.slice(5)];
    const shrunk = await shrink({ ...request, operations }, options);
    expect(shrunk?.request.schedule).toEqual([]);
    expect(shrunk?.request.operations).toEqual([broken]);
    expect(shrunk?.report.findings[0]?.check).toBe("nothing-escapes");
  });

  it("does nothing if the seed passes", async () => {
    expect(await shrink({ seed: 3, forMs: 2_000, without: [] }, options)).toBeUndefined();
  });
});
