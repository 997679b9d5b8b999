// The answer to `await`: how ended tasks ended is read from the journal, one after the other. What does not fit the
// answer follows on the client's own subject, like the outcome of a task that ends just then.

import type { AwaitAnswer, Outcome } from "../protocol/schemas.ts";

/** Looks a task up; an ended one's outcome is read from the journal. */
export type Look = () => AwaitAnswer | Promise<AwaitAnswer>;

/** @param bytesMax of the outcomes in the answer · @param overflow takes those that do not fit
 *  @throws UnreachableError */
export async function awaitedAnswers(
  looks: readonly Look[],
  bytesMax: number,
  overflow: (outcome: Outcome) => void,
): Promise<AwaitAnswer[]> {
  const answers: AwaitAnswer[] = [];
  let bytes = 0;
  for (const look of looks) {
    const answer = await look();
    if (!("outcome" in answer)) {
      answers.push(answer);
      continue;
    }
    bytes += Buffer.byteLength(JSON.stringify(answer));
    if (bytes <= bytesMax) answers.push(answer);
    else {
      overflow(answer.outcome);
      answers.push({ ok: true, live: true });
    }
  }
  return answers;
}
