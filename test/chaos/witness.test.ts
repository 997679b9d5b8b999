// Reading a log on a server that ends during the reading: all readable records are returned.

import { expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { readEach } from "./witness.ts";

it("reads what stands around a record at which the server ends, and leaves gaps out", async () => {
  let isRunning = true;
  const read = async (seq: number) => {
    if (!isRunning) throw new Error("nobody started the server again");
    if (seq === 4) return undefined;
    if (seq !== 3) return { position: seq, bytes: new Uint8Array([seq]) };
    isRunning = false;
    throw new UnreachableError("the connection is broken");
  };
  const reopen = async () => {
    isRunning = true;
  };
  const records = await readEach(read, { last: 6, reopen });
  expect(records.map(({ position }) => position)).toEqual([1, 2, 5, 6]);
});
