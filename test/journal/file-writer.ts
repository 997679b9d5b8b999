// A child process for file.test.ts. Opens the file journal in a folder and prints `open`, or the error. Then appends
// `record <n>` to the newest segment without end, and prints segment and position of each. After every 25 records it
// seals the segment and creates the next segment.

import { WaggleError } from "../../src/errors.ts";
import { openFileJournal } from "../../src/journal/file.ts";

const RECORDS_PER_SEGMENT = 25;
const [folder = ""] = process.argv.slice(2);

try {
  const journal = await openFileJournal({ folder });
  console.log("open");
  for (let number = (await journal.list()).at(-1) ?? 1; ; number++) {
    await journal.create(number);
    const segment = journal.segment(number);
    let position = (await segment.end())?.position ?? 0;
    for (; position < RECORDS_PER_SEGMENT; position++) {
      const outcome = await segment.append(new TextEncoder().encode(`record ${position + 1}`), position);
      if (outcome.kind !== "stored" && outcome.kind !== "sealed") throw new Error(outcome.kind);
      console.log(`${number} ${position + 1}`);
    }
    await segment.seal();
  }
} catch (error) {
  console.log(error instanceof WaggleError ? error.code : String(error));
}
