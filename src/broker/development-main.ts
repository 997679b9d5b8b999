// The process of a development broker: `node development-main.js --config <file>`. launch.ts starts it
// detached, with output to broker.log. The secret is in the file, not on the command line.

import { existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as z from "zod";
import { messageOf } from "../errors.ts";
import { DevelopmentBroker } from "./server.ts";

const configSchema = z.object({
  port: z.number().int().min(1).max(65_535),
  secret: z.string().min(1),
  userKey: z.string().optional(),
  serverName: z.string().min(1),
});

/** Interval of checks that the data folder still exists. */
const LOOK_MS = 10_000;

async function main(): Promise<void> {
  const { config: file = "" } = parseArgs({ options: { config: { type: "string" } } }).values;
  const broker = new DevelopmentBroker(configSchema.parse(JSON.parse(readFileSync(file, "utf8"))));
  const port = await broker.listen();
  log(`listens at 127.0.0.1:${port}`);

  const stop = async (why: string) => {
    log(`stops: ${why}`);
    await broker.close();
    process.exit(0);
  };
  process.once("SIGTERM", () => void stop("SIGTERM"));
  process.once("SIGINT", () => void stop("interrupted"));
  process.on("SIGHUP", () => undefined); // the broker outlives the terminal
  // A broker whose folder was deleted could be neither found nor stopped.
  setInterval(() => existsSync(file) || void stop("its data folder is gone"), LOOK_MS);
}

function log(text: string): void {
  process.stdout.write(`${new Date().toISOString()} development broker ${process.pid} ${text}\n`);
}

try {
  await main();
} catch (error) {
  log(`does not start: ${messageOf(error)}`); // the CLI shows the last line
  process.exit(1);
}
