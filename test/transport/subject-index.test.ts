// The index of subjects against the plain rule (subjectMatches), for any history of subscriptions.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { type Interest, isValidPattern, SubjectIndex } from "../../src/transport/subject-index.ts";
import { subjectMatches } from "../../src/transport/transport.ts";

const token = fc.constantFrom("a", "b", "c");
const subject = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join("."));
const pattern = fc
  .tuple(fc.array(fc.oneof(token, fc.constant("*")), { maxLength: 4 }), fc.boolean())
  .map(([tokens, hasRest]) => (hasRest || tokens.length === 0 ? [...tokens, ">"] : tokens).join("."));
const queue = fc.constantFrom(undefined, undefined, "q1", "q2");

interface Subscriber {
  readonly id: number;
}
type Step =
  | { readonly add: string; readonly queue: string | undefined }
  | { readonly remove: number }
  | { readonly match: string };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ add: pattern, queue }),
  fc.record({ remove: fc.nat(20) }),
  fc.record({ match: subject }),
  fc.record({ match: subject }),
);

describe("the subject index", () => {
  it("finds the same receivers as the plain rule, through any history", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const index = new SubjectIndex<Subscriber>();
        let interests: Interest<Subscriber>[] = [];
        steps.forEach((one, id) => {
          if ("add" in one) {
            const interest = { pattern: one.add, queue: one.queue, subscriber: { id } };
            interests.push(interest);
            index.add(interest);
          } else if ("remove" in one) {
            const interest = interests[one.remove % Math.max(1, interests.length)];
            if (interest === undefined) return;
            interests = interests.filter((other) => other !== interest);
            index.remove(interest);
          } else {
            expect(found(index, one.match)).toEqual(expected(interests, one.match));
          }
        });
      }),
      { numRuns: 1_000 },
    );
  });

  it.each(["", ".", "a.", ".a", "a..b"])("finds no receiver for the subject %j", (nobodys) => {
    const index = new SubjectIndex<Subscriber>();
    for (const wide of [">", "*", "*.*", "a.>", "a.*", "*.*.*"]) {
      index.add({ pattern: wide, queue: undefined, subscriber: { id: 1 } });
    }
    expect(index.match(nobodys).each).toEqual([]);
  });

  it("stays correct when its cache is dropped", () => {
    const index = new SubjectIndex<Subscriber>();
    index.add({ pattern: "inbox.*.*", queue: undefined, subscriber: { id: 1 } });
    index.add({ pattern: "inbox.7.x", queue: undefined, subscriber: { id: 2 } });
    for (let at = 0; at < limits.subjectCacheMax * 2; at += 1) {
      expect(index.match(`inbox.${at}.1`).each.length).toBe(1);
    }
    expect(index.match("inbox.7.x").each.length).toBe(2);
  });

  it("matches subjects of thousands of tokens, which it does not remember", () => {
    const index = new SubjectIndex<string>();
    const long = Array.from({ length: 2_000 }, () => "a").join(".");
    index.add({ pattern: `${long}.>`, queue: undefined, subscriber: "long" });
    index.add({ pattern: ">", queue: undefined, subscriber: "all" });
    for (let times = 0; times < 2; times += 1)
      expect([...index.match(`${long}.b.c`).each].sort()).toEqual(["all", "long"]);
    index.remove({ pattern: `${long}.>`, queue: undefined, subscriber: "long" });
    expect(index.match(`${long}.b.c`).each).toEqual(["all"]);
  });

  it("gives the members of a group turns that go on when the index changes", () => {
    const index = new SubjectIndex<Subscriber>();
    for (const id of [1, 2]) index.add({ pattern: "q", queue: "team", subscriber: { id } });
    const takeTurn = () => {
      const [group] = index.match("q").groups;
      if (group === undefined) throw new Error("no group");
      return group.members[group.turn.next++ % group.members.length]?.id;
    };
    const turns = [takeTurn()];
    index.add({ pattern: "other", queue: undefined, subscriber: { id: 3 } });
    turns.push(takeTurn());
    expect(turns.sort()).toEqual([1, 2]);
  });

  it.each([
    ["a", true],
    ["a.*.b", true],
    ["a.>", true],
    [">", true],
    ["a.b*", true],
    ["", false],
    ["a..b", false],
    [".a", false],
    ["a.", false],
    ["a.>.b", false],
    ["a b", false],
    ["a\r\n", false],
  ])("%j is a pattern: %s", (text, isOne) => {
    expect(isValidPattern(text)).toBe(isOne);
  });
});

function found(index: SubjectIndex<Subscriber>, at: string) {
  const { each, groups } = index.match(at);
  return {
    each: idsOf(each),
    groups: groups.map(({ name, members }) => ({ name, members: idsOf(members) })).sort(byName),
  };
}

function expected(interests: readonly Interest<Subscriber>[], at: string) {
  const matching = interests.filter((interest) => subjectMatches(interest.pattern, at));
  const members = (name: string | undefined) =>
    idsOf(matching.filter((interest) => interest.queue === name).map(({ subscriber }) => subscriber));
  const groups = ["q1", "q2"].map((name) => ({ name, members: members(name) }));
  return {
    each: members(undefined),
    groups: groups.filter((group) => group.members.length > 0).sort(byName),
  };
}

function idsOf(subscribers: readonly Subscriber[]): number[] {
  return subscribers.map(({ id }) => id).sort((a, b) => a - b);
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name.localeCompare(b.name);
}
