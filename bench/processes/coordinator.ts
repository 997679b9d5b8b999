// The production coordinator with its journal in JetStream.

import { pino } from "pino";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const server = serverFromArguments();
const swarm = swarmId("bench");
const transport = await connectNats({ ...server, name: "coordinator" });
const journal = await openNatsJournal({ connection: { ...server, name: "journal" }, swarm, create: true });
const logger = pino({ level: "warn" });
const parts = { swarm, transport, journal, clock: systemClock, random: systemRandom, logger };
const coordinator = await startCoordinator({ id: "bench", ...parts });
await coordinator.whenLeading();
readyForParent();
