// The dashboard as a whole: a connection that reads a swarm, one for changes (changes.ts), one HTTP server, and the
// parts between them. It is a client and runs beside the leader, never within it. Requests: who may ask (gate.ts),
// which answer (router.ts), changes (actions.ts), live streams (live-views.ts). The swarm: present (swarm-watch.ts),
// events (event-tap.ts), past (history.ts, activity-book.ts).

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { PastMoment, PastTurns } from "../audit/past-turns.ts";
import type { Swarm } from "../client/swarm.ts";
import type { Clock, Random } from "../clock.ts";
import { defined } from "../defined.ts";
import { BrokerError, InvalidConfigError, messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import { ProcessWatch } from "../process-watch.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Transport } from "../transport/transport.ts";
import { Actions } from "./actions.ts";
import { ActivityBook } from "./activity-book.ts";
import { Assets } from "./assets.ts";
import type { Changes } from "./changes.ts";
import { EventTap } from "./event-tap.ts";
import { Gate } from "./gate.ts";
import { HistoryRing } from "./history.ts";
import { sendError } from "./http-answer.ts";
import { LiveViews } from "./live-views.ts";
import { Router } from "./router.ts";
import { type Look, SwarmWatch } from "./swarm-watch.ts";
import { capacityOf } from "./views/overview.ts";
import { Views } from "./views/sources.ts";
import type { Session, System } from "./wire.ts";

export interface DashboardDeps {
  /** Reads. */
  readonly swarm: Swarm;
  /** The connection of `swarm`. */
  readonly transport: Transport;
  readonly changes: Changes;
  readonly subjects: Subjects;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Folder of the built page. */
  readonly assetsFolder: string;
  readonly version: string;
  /** Project and user of submitted tasks that name none. */
  readonly project: string;
  readonly user?: string | undefined;
  /** Replays the swarm's journal, away from the leader. */
  readonly pastTurns: (moment: PastMoment) => Promise<PastTurns>;
  /** The server, without credentials. */
  readonly broker: Pick<System["broker"], "url" | "name" | "version">;
}

export interface DashboardOptions {
  /** Address to listen at. Default 127.0.0.1. */
  readonly host: string;
  /** First port to try; 0: any free port. */
  readonly port: number;
  /** Try the next ports when the port is taken. */
  readonly mayMove: boolean;
  /** Names by which the server is called, besides the loopback names. */
  readonly names: readonly string[];
  readonly token?: string | undefined;
  readonly isReadOnly: boolean;
}

export interface RunningDashboard {
  /** With the token: the URL to open. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** @throws BrokerError when no port is free; InvalidConfigError when the address cannot be listened at */
export async function startDashboard(
  deps: DashboardDeps,
  options: DashboardOptions,
): Promise<RunningDashboard> {
  const { swarm, transport, subjects, clock, random, logger } = deps;
  const gate = new Gate({
    ...{ hosts: options.names.map((name) => name.toLowerCase()), isReadOnly: options.isReadOnly, random },
    token: options.token,
  });
  const startedAt = clock.now();
  const history = new HistoryRing();
  const book = new ActivityBook();
  const tap = new EventTap({
    swarm,
    transport,
    subjects,
    clock,
    logger,
    book,
    onWait: (ms) => history.waited(ms),
  });
  let utilisation: number | undefined;
  let cancelRest: (() => void) | undefined;
  let isResting = true;
  const own = new ProcessWatch(clock);

  const onLook = (look: Look) => {
    const { at, totals } = look;
    if (watch.status !== undefined) utilisation = utilisationOf(watch.status, totals);
    live.look(look, history.add({ at, status: totals, utilisation: totals && utilisation }));
  };
  const watch = new SwarmWatch({
    ...{ swarm, clock, logger, onLook },
    isConnected: () => transport.status() === "connected",
    isWatched: () => live.count > 0,
  });
  const actions = new Actions({ swarm, changes: deps.changes });
  const views: Views = new Views({
    ...{ swarm, watch, book, tap, history },
    tasks: {
      ...{ swarm, transport, subjects, clock, verbs: actions.verbs },
      nowAt: () => watch.status?.at ?? 0,
    },
    broker: () => ({
      ...deps.broker,
      connection: transport.status(),
      ...defined({ answerMs: watch.answerMs }),
    }),
    dashboard: () => ({
      ...{ version: deps.version, node: process.version, startedAt, liveViews: live.count },
      process: own.figures,
      eventsPerSecond: tap.eventsPerSecond,
    }),
  });
  const live: LiveViews = new LiveViews({
    ...{ clock, random, logger },
    sourceOf: (query) => views.sourceOf(query),
    onWatched: (isWatched) => {
      cancelRest?.();
      cancelRest = undefined;
      if (!isWatched) {
        cancelRest = clock.after(limits.dashboardFollowMs, () => rest(), { unref: true });
        return;
      }
      if (!isResting) return;
      isResting = false;
      // Without an answer the tap begins at the newest batch that comes.
      watch.whole({ mayBeOld: true }).then(
        ({ idx }) => tap.follow(idx),
        () => tap.follow(undefined),
      );
    },
  });
  const rest = () => {
    isResting = true;
    tap.rest();
  };
  const session = (): Session => ({
    ...{ swarm: swarm.id, version: deps.version, isReadOnly: options.isReadOnly, project: deps.project },
    ...(options.isReadOnly ? {} : { changeToken: gate.changeToken }),
    refusals: options.isReadOnly ? {} : actions.refusals,
    ...defined({ user: deps.user }),
    nowAt: clock.now(),
    limits: {
      updatesPerSecond: Math.round(1_000 / limits.dashboardUpdateMs),
      liveViewsMax: limits.dashboardLiveViewsMax,
      tasksPageMax: limits.tasksPageMax,
      actionTasksMax: limits.dashboardActionTasksMax,
      bodyBytesMax: limits.dashboardBodyBytesMax,
    },
    verbs: options.isReadOnly ? [] : actions.verbs,
  });
  const router = new Router({
    ...{
      clock,
      gate,
      assets: new Assets(deps.assetsFolder),
      swarm,
      watch,
      history,
      views,
      live,
      actions,
      session,
      pastTurns: deps.pastTurns,
    },
  });
  const server = createServer((request, response) => {
    router.answer(request, response).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy();
      if (!request.complete) discard(request);
      const status = sendError(response, error);
      const path = loggedPath(request.url);
      if (status === UNEXPECTED) logger.error({ err: error, path }, "a request failed");
      else logger.debug({ path, status, reason: messageOf(error) }, "a request was refused");
    });
  });
  server.requestTimeout = limits.dashboardRequestMs;
  server.maxConnections = limits.dashboardConnectionsMax;
  const port = await listening(server, options);
  gate.port = port;
  watch.start();
  return {
    url: `http://${urlHost(options.host)}:${port}/enter/${gate.token}`,
    port,
    close: async () => {
      cancelRest?.();
      own.stop();
      live.close();
      tap.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await Promise.all([closed, watch.close()]);
    },
  };
}

/** Attempts in flight over the capacity of online agents. The newest totals count, with the last known capacity. */
function utilisationOf(status: Parameters<typeof capacityOf>[0], totals: Look["totals"]): number | undefined {
  const { used, total } = capacityOf(status);
  if (total === 0) return undefined;
  return Math.min(1, (totals?.metrics?.totalInFlight ?? used) / total);
}

/** Without the token of the printed URL, and without filters. */
function loggedPath(url = "/"): string {
  return url.replace(/[?#].*$/s, "").replace(/^(\/+enter\/).*$/s, "$1***");
}

/** HTTP status of an error without a code of its own. */
const UNEXPECTED = 500;

/** Reads what is left of a refused request, within a bound: else the connection breaks before the answer arrives. */
function discard(request: IncomingMessage): void {
  let size = 0;
  request.on("data", (part: Buffer) => {
    size += part.length;
    if (size > limits.dashboardUnreadBytesMax) request.destroy();
  });
}

/** Host of the URL to open: a wildcard address is no destination. */
function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}

async function listening(server: Server, { host, port, mayMove }: DashboardOptions): Promise<number> {
  const tries = mayMove && port !== 0 ? limits.dashboardPortsTried : 1;
  for (let at = 0; at < tries; at += 1) {
    const tried = port + at;
    const error = await tryPort(server, host, tried);
    if (error === undefined) return (server.address() as AddressInfo).port;
    if (error.code !== "EADDRINUSE" && error.code !== "EACCES")
      throw new InvalidConfigError(`--host: cannot listen at ${host}: ${error.message}`, { field: "--host" });
  }
  const which = tries === 1 ? `port ${port} is` : `ports ${port} to ${port + tries - 1} are`;
  throw new BrokerError(`the dashboard's ${which} taken or not permitted: name another with --port`);
}

async function tryPort(
  server: Server,
  host: string,
  port: number,
): Promise<NodeJS.ErrnoException | undefined> {
  return await new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException) => {
      server.off("listening", listened);
      resolve(error);
    };
    const listened = () => {
      server.off("error", failed);
      resolve(undefined);
    };
    server.once("error", failed);
    server.once("listening", listened);
    server.listen({ host, port });
  });
}
