// A client that submits and prints accepted tasks, one per line, until it is killed. argv: the data folder.

import { connect } from "../../dist/src/index.js";

const swarm = await connect({ dataFolder: process.argv[2] });
for (let number = 1; ; number += 1) {
  const { id } = await swarm.submit({ id: `t${number}`, kind: "nap", payload: String(number) });
  process.stdout.write(`accepted ${id}\n`);
}
