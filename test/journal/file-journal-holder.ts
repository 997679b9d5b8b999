// A process of its own that opens the file journal in the folder given, with segments of the size given, says `open`
// or why not, and then appends `record <n>` without end, saying each position. Killed by file.test.ts and
// file-segments.test.ts.

import { WaggleError } from "../../src/errors.ts";
import { openFileJournal } from "../../src/journal/file.ts";

const [folder = "", segmentBytes] = process.argv.slice(2);

try {
  const journal = await openFileJournal({
    folder,
    ...(segmentBytes === undefined ? {} : { segmentBytes: Number(segmentBytes) }),
  });
  console.log("open");
  for (let { lastSeq } = await journal.position(); ; lastSeq++) {
    const outcome = await journal.append(new TextEncoder().encode(`record ${lastSeq + 1}`), lastSeq);
    if (outcome.kind !== "stored") break;
    console.log(outcome.seq);
  }
} catch (error) {
  console.log(error instanceof WaggleError ? error.code : String(error));
}
