// What a journal's durability means, in one line per class. `waggle doctor` prints the journal's full sentence.

import type { Durability } from "../journal/journal.ts";

const texts: Readonly<Record<Durability["class"], string>> = {
  memory: "in memory, lost with the coordinator",
  file: "on the coordinator's disk before each answer",
  "page-cache": "survives a crash, not a power loss",
  replicated: "on a majority of servers before each answer",
};

/** @param durability a class; one of a newer coordinator is printed as it is */
export function durabilityText(durability: string): string {
  return Object.hasOwn(texts, durability) ? texts[durability as Durability["class"]] : durability;
}
