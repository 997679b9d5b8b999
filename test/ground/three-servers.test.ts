// The facts that segments stand on, on three servers of each version. A stream sealed by its setting is asked about on
// 2.15 alone: 2.9 does not restart with one, and a lagging replica of 2.10 loses records by it (docs/adr/0024).

import { natsServersFor } from "../support/nats-server.ts";
import { describeGround } from "./facts.ts";

for (const { path, version } of natsServersFor("the ground on three servers"))
  describeGround(`three servers of ${version}`, {
    binary: path,
    replicas: 3,
    keepsSealed: !/^2\.(9|10)\./.test(version),
  });
