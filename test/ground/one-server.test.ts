// The facts that segments stand on, on one server of each version that is supported.

import { natsServersFor } from "../support/nats-server.ts";
import { describeGround } from "./facts.ts";

for (const { path, version } of natsServersFor("the ground on one server"))
  describeGround(`one server of ${version}`, { binary: path, replicas: 1, keepsSealed: true });
