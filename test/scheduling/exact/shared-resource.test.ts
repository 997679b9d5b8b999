// LOCO's contention over one resource.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SharedResource } from "../../../src/scheduling/exact/shared-resource.ts";

describe("SharedResource", () => {
  const full = (alpha = 0.25, maxWaiters?: number) => {
    const options = { capacity: 1, alpha, ...(maxWaiters === undefined ? {} : { maxWaiters }) };
    const resource = new SharedResource(options);
    resource.submit("holder", 1);
    resource.acquire("holder");
    return resource;
  };
  const wait = (resource: SharedResource, agent: string, weight = 1) => {
    resource.submit(agent, weight);
    return resource.acquire(agent);
  };

  it("is not first come, first served: the deeper backlog goes first where the ages are equal", () => {
    const resource = full(0.5);
    wait(resource, "early", 1);
    wait(resource, "deep", 5);
    expect(resource.release("holder")).toEqual({ tick: 1, granted: "deep" });
  });

  it("starves no agent: age lets a light agent pass agents with deep backlogs", () => {
    const resource = full(0.5);
    resource.submit("light", 1);
    resource.acquire("light");
    let holder = "holder";
    let grants = 0;
    while (holder !== "light" && grants < 10) {
      wait(resource, `heavy-${grants}`, 10);
      holder = resource.release(holder).granted as string;
      grants += 1;
    }
    expect(holder).toBe("light");
  });

  it("counts queues without requests among the competitors", () => {
    const resource = full(1);
    resource.submit("silent", 100);
    wait(resource, "asking", 1);
    expect(resource.release("holder").granted).toBe("asking");
  });

  it("refuses the waiter beyond maxWaiters, by default 100, and keeps the others", () => {
    const resource = full();
    for (let n = 0; n < 100; n += 1) expect(wait(resource, `w${n}`)).toBe(false);
    resource.submit("late", 1);
    expect(() => resource.acquire("late")).toThrow(expect.objectContaining({ code: "WAGGLE_BACKPRESSURE" }));
    expect(resource.release("holder").granted).toBe("w0");
    expect(resource.acquire("late")).toBe(false);
  });

  it.each([
    ["capacity 0", () => new SharedResource({ capacity: 0, alpha: 0 }), "capacity"],
    ["capacity NaN", () => new SharedResource({ capacity: Number.NaN, alpha: 0 }), "capacity"],
    ["α above 1", () => new SharedResource({ capacity: 1, alpha: 1.1 }), "alpha"],
    ["weight 0", () => full().submit("a", 0), "weight"],
    ["weight NaN", () => full().submit("a", Number.NaN), "weight"],
    ["acquiring for nothing", () => full().acquire("holder"), "agent"],
    ["releasing what is not held", () => full().release("stranger"), "agent"],
  ])("refuses %s", (_, act, field) => {
    expect(act).toThrow(expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field }));
  });

  it("conserves slots under any interleaving, and leaves none free while an agent waits", () => {
    const step = fc.record({ agent: fc.constantFrom("a", "b", "c", "d"), releases: fc.boolean() });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 60 }), (capacity, steps) => {
        const resource = new SharedResource({ capacity, alpha: 0.25 });
        const held: string[] = [];
        let waiting = 0;
        for (const { agent, releases } of steps) {
          if (!releases) {
            if (wait(resource, agent)) held.push(agent);
            else waiting += 1;
          } else if (held.includes(agent)) {
            held.splice(held.indexOf(agent), 1);
            const { granted } = resource.release(agent);
            if (granted !== undefined) {
              held.push(granted);
              waiting -= 1;
            }
          }
          expect(resource.inUse).toBe(held.length);
          expect(resource.inUse).toBe(Math.min(capacity, held.length + waiting));
          expect(resource.utilisation).toBe(held.length / capacity);
        }
      }),
    );
  });
});
