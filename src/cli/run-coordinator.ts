// A coordinator in this process with its broker, connections and journal, for `up` and the demo. On a server with
// JetStream the journal is a stream, and further coordinators are standbys. On Waggle's own broker without JetStream
// the journal is a file, for one coordinator at a time.

import { hostname } from "node:os";
import type { Logger } from "pino";
import { serveCoordinator } from "../adapters/nats-service/coordinator-service.ts";
import type { JournalVerifier } from "../audit/verifying/audit-check.ts";
import { ThreadVerifier } from "../audit/verifying/thread-verifier.ts";
import { keepBroker } from "../broker/broker-keeper.ts";
import { journalFolder } from "../broker/data-folder.ts";
import { type FoundBroker, findBroker, type LocalBroker } from "../broker/find-broker.ts";
import { stopBroker } from "../broker/stop-broker.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { basePace } from "../config/base-pace.ts";
import type { Settings } from "../config/settings.ts";
import { wantedRoom } from "../coordinator/compacting/kept-room.ts";
import type { BaseMaker } from "../coordinator/compacting/make-next-segment.ts";
import { ThreadBaseMaker } from "../coordinator/compacting/thread-base-maker.ts";
import { type Coordinator, startCoordinator } from "../coordinator/coordinator.ts";
import { InvalidConfigError } from "../errors.ts";
import { growHeapAfterPauses } from "../heap-growth.ts";
import { swarmId } from "../ids.ts";
import { type CutTail, openFileJournal } from "../journal/file.ts";
import type { Journal } from "../journal/journal.ts";
import { openNatsJournal } from "../journal/nats.ts";
import type { CoordinatorMetrics } from "../metrics/coordinator-metrics.ts";
import { ProcessWatch } from "../process-watch.ts";
import { connectNats, type NatsOptions, type NatsTransport } from "../transport/nats.ts";
import { logStatus } from "../transport/status-log.ts";
import { connectionOf } from "./connection.ts";
import { requireNoReplicas } from "./replicas.ts";
import { packageVersion } from "./version.ts";

export interface RunningCoordinator {
  readonly id: string;
  readonly broker: FoundBroker;
  readonly journal: Journal;
  /** What a crash left behind and opening the journal cut off, for people; undefined when nothing was. */
  readonly recovery: string | undefined;
  readonly transport: NatsTransport;
  readonly coordinator: Coordinator;
  /** Hands over, then closes journal and connections; the broker stays. Idempotent. */
  stop(): Promise<void>;
}

export interface RunCoordinatorDeps {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Key of the attempts' tokens. Absent: tokens follow from the journal. */
  readonly tokenKey?: Uint8Array;
  /** Counts what the coordinator does. Absent: nothing is counted. */
  readonly metrics?: CoordinatorMetrics;
  /** Called as soon as the broker is known, before any later step can fail. */
  readonly onBroker?: (broker: FoundBroker) => void;
}

/** @throws BrokerError, UnreachableError, JournalDamagedError, InvalidConfigError
 *  @throws WaggleError WAGGLE_JOURNAL_LOCKED, WAGGLE_JOURNAL_SETTINGS */
export async function runCoordinator(deps: RunCoordinatorDeps): Promise<RunningCoordinator> {
  const { settings, logger, env, signal } = deps;
  const pace = basePace(env);
  growHeapAfterPauses();
  const { dataFolder, nats, natsContext, credentials, inboxPrefix, insecure } = settings;
  const broker = await findBroker({
    mode: "find-or-start",
    dataFolder,
    nats,
    natsContext,
    credentials,
    inboxPrefix,
    insecure,
    env,
  });
  deps.onBroker?.(broker);

  const id = coordinatorId(settings.name ?? hostName());
  const connection = connectionOf(broker, { signal, logger }, `waggle coordinator ${id}`);
  const transport = await connectNats(connection);
  logStatus(transport, { address: broker.address, log: logger });
  const closing: (() => Promise<void>)[] = [() => transport.close()];
  if (broker.local !== undefined) closing.unshift(keepLocalBroker(deps, broker.local, transport));
  try {
    const { journal, recovery, maker, verifier } = await openJournal(deps, broker, {
      ...connection,
      name: `waggle journal ${id}`,
    });
    closing.unshift(() => journal.close());
    const watch = new ProcessWatch(systemClock);
    closing.unshift(async () => watch.stop());
    const swarm = swarmId(settings.swarm);
    const service = serveCoordinator({ transport, clock: systemClock, swarm, id, version: packageVersion() });
    closing.unshift(async () => service.stop());
    const coordinator = await startCoordinator({
      id,
      swarm,
      transport: service.transport,
      journal,
      clock: systemClock,
      random: systemRandom,
      logger,
      compaction: { maker, retention: settings.retention, ...pace },
      verifier,
      processFigures: () => watch.figures,
      ...(settings.leaderTimeoutMs === undefined ? {} : { leaderTimeoutMs: settings.leaderTimeoutMs }),
      ...(deps.tokenKey === undefined ? {} : { tokenKey: deps.tokenKey }),
      ...(deps.metrics === undefined ? {} : { metrics: deps.metrics }),
    });
    closing.unshift(() => coordinator.stop());
    let stopping: Promise<void> | undefined;
    const stop = () => {
      stopping ??= closeAll(closing);
      return stopping;
    };
    return { id, broker, journal, recovery, transport, coordinator, stop };
  } catch (error) {
    await closeAll(closing);
    // The broker started above cannot meet the settings, and no coordinator will use the broker.
    if (error instanceof InvalidConfigError && broker.local?.wasStarted === true)
      await stopBroker(settings.dataFolder);
    throw error;
  }
}

/** @returns a function that ends the watch. The signal ends the watch, too: at a common stop the broker may end first
 */
function keepLocalBroker(
  { settings: { dataFolder }, env, logger, signal }: RunCoordinatorDeps,
  { url }: LocalBroker,
  transport: NatsTransport,
): () => Promise<void> {
  const stop = keepBroker({ dataFolder, url, env, transport, log: logger });
  signal.addEventListener("abort", stop, { once: true });
  return async () => {
    signal.removeEventListener("abort", stop);
    stop();
  };
}

async function closeAll(closing: readonly (() => Promise<void>)[]): Promise<void> {
  for (const close of closing) await close();
}

/** `<name>-<four random characters>`: coordinators of one name differ, and so do two starts of one coordinator. */
function coordinatorId(name: string): string {
  return `${name}-${systemRandom.id(4)}`;
}

function hostName(): string {
  return hostname()
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .slice(0, 40);
}

interface OpenedJournal {
  readonly journal: Journal;
  readonly maker: BaseMaker;
  readonly verifier: JournalVerifier;
  readonly recovery: string | undefined;
}

async function openJournal(
  { settings, signal }: RunCoordinatorDeps,
  broker: FoundBroker,
  connection: NatsOptions,
): Promise<OpenedJournal> {
  const { replicas, retention } = settings;
  const bytesMax = wantedRoom(retention.bytes);
  if (broker.kind !== "development") {
    const wanted = { swarm: swarmId(settings.swarm), replicas, bytesMax };
    const journal = await openNatsJournal({ ...wanted, connection, signal });
    const { signal: _, onError: __, ...plainConnection } = connection;
    const place = { ...wanted, kind: "stream", connection: plainConnection } as const;
    const maker = new ThreadBaseMaker(place, journal);
    return { journal, maker, verifier: new ThreadVerifier(place), recovery: undefined };
  }
  requireNoReplicas(replicas);
  const folder = journalFolder(settings);
  const journal = await openFileJournal({ folder, bytesMax });
  const place = { kind: "file", folder } as const;
  const maker = new ThreadBaseMaker(place, journal);
  const verifier = new ThreadVerifier(place);
  return { journal, maker, verifier, recovery: recoveryText(journal.recovered) };
}

function recoveryText(recovered: readonly CutTail[]): string | undefined {
  if (recovered.length === 0) return undefined;
  const cutBytes = recovered.reduce((sum, { cutBytes }) => sum + cutBytes, 0);
  return (
    `the journal ended with an incomplete record: ${cutBytes} bytes were cut off. A crash leaves such a record, ` +
    "which was never acknowledged; if nothing crashed, the disk is damaged and the last accepted tasks may be lost"
  );
}
