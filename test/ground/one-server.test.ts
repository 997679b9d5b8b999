// The facts that segments rely on, on one server of each supported version.

import { natsServersFor } from "../support/nats-server.ts";
import { describeGround } from "./facts.ts";

for (const { path, version } of natsServersFor("the ground on one server"))
  describeGround(`one server of ${version}`, { binary: path, replicas: 1, keepsSealed: true });
