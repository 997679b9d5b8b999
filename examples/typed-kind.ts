// A kind with schemas: payloads and results are checked on both sides, and typed without a cast. The example uses
// zod; valibot, arktype and any other implementation of https://standardschema.dev work as well.
//
//   waggle up
//   node examples/typed-kind.ts

import { connect, defineKind } from "waggledance";
import { z } from "zod";

const count = defineKind("count-words", {
  input: z.object({ text: z.string(), least: z.number().int().default(1) }),
  output: z.object({ words: z.number().int() }),
});

await using swarm = await connect();

await swarm.agent({
  kind: count,
  handler: ({ input }) => ({
    words: input.text.split(/\s+/).filter(({ length }) => length >= input.least).length,
  }),
});

const handle = await swarm.submit({ kind: count, payload: { text: "the quick brown fox", least: 4 } });
const { value } = await handle.result();
console.log(`${value.words} words of four letters or more`);
