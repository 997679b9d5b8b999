// The far end of a bare NATS round trip with the NATS client's own API: answers each request with a few bytes, keeps
// nothing.

import { connect } from "@nats-io/transport-node";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const connection = await connect({ servers: [...serverFromArguments().urls] });
connection.subscribe("bare.request", {
  callback: (_, message) => {
    message.respond("done");
  },
});
await connection.flush();
readyForParent();
