// Payloads and results sealed with AES-256-GCM: submitters and agents have the key; the server, the coordinator and the
// journal see sealed bytes. The task's project and id are authenticated, so sealed bytes cannot be moved to a second
// task.
//
//   waggle up
//   node examples/sealed-payloads.ts

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { type CodecContext, connect, type PayloadCodec } from "waggledance";

const key = process.env.SEAL_KEY ? Buffer.from(process.env.SEAL_KEY, "hex") : randomBytes(32);

const boundTo = ({ of, project, task }: CodecContext) => Buffer.from(JSON.stringify([of, project, task]));

/** The nonce is derived from the content, so a repeated submission has the same bytes and is the same task. */
const codec: PayloadCodec = {
  encode(bytes, context) {
    const nonce = createHmac("sha256", key).update(boundTo(context)).update(bytes).digest().subarray(0, 12);
    const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(boundTo(context));
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  },
  decode(bytes, context) {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12)).setAAD(boundTo(context));
    decipher.setAuthTag(bytes.subarray(-16));
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]);
  },
};

await using swarm = await connect({ codec });
await swarm.agent({ kinds: ["secret-count"], handler: (task) => `${task.text().split(/\s+/).length} words` });

const handle = await swarm.submit({ kind: "secret-count", payload: "nobody else reads this" });
console.log((await handle.result()).text());
for await (const { event } of swarm.events({ from: "start", follow: false, contents: true }))
  if (event.type === "TaskSubmitted" && event.task.id === handle.id)
    console.log("the journal has", event.task.payload);
