// Plays each transcript in test/scenarios (*.txt) and compares the outcome with the transcript. WAGGLE_SAVE_SCENARIOS=1
// writes the real outcome to the files instead; the diff is the review.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { play } from "./transcript.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));
const stories = readdirSync(folder).filter((name) => name.endsWith(".txt"));

it.each(stories)("%s", async (name) => {
  const path = `${folder}${name}`;
  const transcript = readFileSync(path, "utf8");
  const played = await play(transcript);
  if (process.env.WAGGLE_SAVE_SCENARIOS === "1") writeFileSync(path, played);
  else expect(played).toBe(transcript);
});
