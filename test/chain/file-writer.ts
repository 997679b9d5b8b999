// A process of its own that opens the file journal in a folder, says `open` or why not, and appends `record <n>` to its
// newest segment without end, saying each position. Every 25 records it seals the segment and creates the next one.
// Killed by file.test.ts.

import { openFileJournal } from "../../src/chain/file.ts";
import { WaggleError } from "../../src/errors.ts";

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
