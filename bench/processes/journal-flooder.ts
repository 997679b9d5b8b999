// A client that asks for pages of the journal too often. The parent process gives the rate per second (0: rests). Half
// of the questions are about the oldest quarter, outside of any coordinator's memory, and half about the whole journal.

import { connect } from "@nats-io/transport-node";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

/** Results of a flooding process so far. */
export interface Flooded {
  readonly asked: number;
  readonly pages: number;
  readonly bytes: number;
  /** Requests refused with a coded error and the time of the next request. */
  readonly refused: number;
  readonly failed: number;
}

const STEP_MS = 5;
const TIMEOUT_MS = 10_000;
const connection = await connect({ servers: [...serverFromArguments().urls] });
const count = { asked: 0, pages: 0, bytes: 0, refused: 0, failed: 0 };
let [askedASecond, lastIdx, owed] = [0, 1, 0];

setInterval(() => {
  owed += (askedASecond * STEP_MS) / 1_000;
  for (; owed >= 1; owed -= 1) void ask();
}, STEP_MS);

process.on("message", (said: { readonly ratePerSecond: number; readonly lastIdx: number }) => {
  askedASecond = said.ratePerSecond;
  lastIdx = said.lastIdx;
  process.send?.(count);
});
readyForParent();

async function ask(): Promise<void> {
  count.asked += 1;
  const span = count.asked % 2 === 0 ? lastIdx / 4 : lastIdx;
  const message = JSON.stringify({ from: 1 + Math.floor(Math.random() * span) });
  try {
    const { data } = await connection.request("waggle.v1.bench.project.flooding.query.journal", message, {
      timeout: TIMEOUT_MS,
    });
    const isPage = data[2] === "n".charCodeAt(0); // {"next": …
    if (isPage) count.pages += 1;
    else if (/WAGGLE_BACKPRESSURE.*retryAfterMs/.test(Buffer.from(data).toString())) count.refused += 1;
    else count.failed += 1;
    count.bytes += data.length;
  } catch {
    count.failed += 1; // no answer in time
  }
}
