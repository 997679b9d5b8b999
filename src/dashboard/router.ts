// Which answer a request gets. Every request passes the gate first; nothing is read before.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Swarm } from "../client/swarm.ts";
import type { Clock } from "../clock.ts";
import type { Widened } from "../defined.ts";
import { limits } from "../limits.ts";
import { parseJson } from "../protocol/codec.ts";
import type { Actions } from "./actions.ts";
import type { Assets } from "./assets.ts";
import { type Gate, SIGN_IN } from "./gate.ts";
import type { HistoryRing } from "./history.ts";
import { HttpRefusal, safeHeaders, sendJson, sendText } from "./http-answer.ts";
import type { LiveViews } from "./live-views.ts";
import {
  checked,
  eventQuerySchema,
  historyQuerySchema,
  isActionVerb,
  noQuerySchema,
  pastQuerySchema,
  pathSchemas,
  projectQuerySchema,
  readLiveQuery,
  readQuery,
  taskQuerySchema,
} from "./requests.ts";
import { SharedAnswers } from "./shared-answers.ts";
import type { SwarmWatch } from "./swarm-watch.ts";
import { contentsView } from "./views/contents.ts";
import { eventsPage } from "./views/events.ts";
import { fairnessPast, type PastDeps } from "./views/fairness-past.ts";
import type { Views } from "./views/sources.ts";
import { tasksView } from "./views/tasks.ts";
import type { FairnessPast, PastQuery, Session, TaskPage } from "./wire.ts";

export interface RouterDeps {
  readonly clock: Clock;
  readonly gate: Gate;
  readonly assets: Assets;
  readonly swarm: Swarm;
  readonly watch: SwarmWatch;
  readonly history: HistoryRing;
  readonly views: Views;
  readonly live: LiveViews;
  readonly actions: Actions;
  readonly session: () => Session;
  readonly pastTurns: PastDeps["pastTurns"];
}

const plainViews = ["overview", "agents", "fairness", "resources", "budgets", "system"] as const;

export class Router {
  readonly #deps: RouterDeps;
  readonly #lists: SharedAnswers<TaskPage>;
  readonly #past: SharedAnswers<FairnessPast>;
  #replaying: Promise<unknown> = Promise.resolve();

  constructor(deps: RouterDeps) {
    this.#deps = deps;
    this.#lists = new SharedAnswers(deps.clock);
    this.#past = new SharedAnswers(deps.clock);
  }

  /** @throws WaggleError: the refusal */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { gate, assets } = this.#deps;
    gate.requireOwnHost(request);
    const { path, params } = parsed(request);
    const [top = "", ...rest] = path;
    if (top === "enter") return this.#enter(rest.join("/"), request, response);
    if (top === "api") {
      gate.requireSignedIn(request);
      return await this.#api(rest, { request, response, params });
    }
    requireMethod(request, "GET");
    if (!gate.isSignedIn(request)) return sendText(response, SIGN_IN, 401);
    return top === "assets" ? assets.send(response, rest.join("/")) : assets.sendPage(response);
  }

  /** The printed URL: a cookie, and a URL without the token. */
  #enter(token: string, request: IncomingMessage, response: ServerResponse): void {
    const { gate } = this.#deps;
    requireMethod(request, "GET");
    if (!gate.isToken(token)) throw new HttpRefusal(401, "WAGGLE_FORBIDDEN", SIGN_IN);
    response.writeHead(303, { ...safeHeaders, "set-cookie": gate.setCookie, location: "/" });
    response.end();
  }

  async #api(path: readonly string[], exchange: Exchange): Promise<void> {
    const { request, response, params } = exchange;
    const [name = "", id, part] = path;
    if (name === "actions") return await this.#act(path, exchange);
    requireMethod(request, "GET");
    const { swarm, watch, history, views, live, session } = this.#deps;
    const isAlone = path.length === 1;
    const plain = plainViews.find((view) => view === name);
    if (isAlone && plain !== undefined) {
      readQuery(params, noQuerySchema);
      return sendJson(response, await views.now(plain));
    }
    if (isAlone && name === "session") return sendJson(response, session());
    if (isAlone && name === "live") return await live.open(request, response, readLiveQuery(params));
    if (isAlone && name === "history")
      return sendJson(response, history.history(readQuery(params, historyQuerySchema).window));
    if (isAlone && name === "events") {
      const query = readQuery(params, eventQuerySchema);
      return sendJson(response, await eventsPage(swarm, await watch.whole({ mayBeOld: false }), query));
    }
    if (name === "fairness" && id === "past" && path.length === 2) {
      const query = readQuery(params, pastQuerySchema);
      const replay = async () => await this.#replayed(query);
      return sendJson(response, await this.#past.get(JSON.stringify(query), limits.dashboardPastMs, replay));
    }
    if (isAlone && name === "tasks") {
      const query = readQuery(params, taskQuerySchema);
      const ageMs = query.text === undefined ? limits.dashboardListMs : limits.dashboardSearchMs;
      const ask = async () => await tasksView(swarm, query);
      return sendJson(response, await this.#lists.get(JSON.stringify(query), ageMs, ask));
    }
    if (name === "agents" && id !== undefined && path.length === 2) {
      readQuery(params, noQuerySchema);
      return sendJson(response, await views.now("agent", { id: checked(id, pathSchemas.agent) }));
    }
    if (name === "tasks" && id !== undefined) {
      const task = checked(id, pathSchemas.task);
      const { project } = readQuery(params, projectQuerySchema);
      if (path.length === 2) return sendJson(response, await views.task(task, project));
      if (path.length === 3 && part === "contents")
        return sendJson(response, await contentsView(swarm, { task, project }));
    }
    throw unknownPath(path);
  }

  /** One after another: a replay takes processor time and memory. */
  async #replayed(query: Widened<PastQuery>): Promise<FairnessPast> {
    const before = this.#replaying;
    const replay = before.then(() => fairnessPast(this.#deps, query));
    this.#replaying = replay.catch(() => undefined);
    return await replay;
  }

  async #act([, verb = "", ...rest]: readonly string[], { request, response }: Exchange): Promise<void> {
    const { gate, actions, watch } = this.#deps;
    requireMethod(request, "POST");
    gate.requireChange(request);
    if (!isActionVerb(verb) || rest.length > 0) throw unknownPath(["actions", verb, ...rest]);
    const body = await bodyOf(request);
    const answer = await actions.perform(verb, body);
    watch.forgetSettings();
    this.#lists.clear();
    sendJson(response, answer);
  }
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: URLSearchParams;
}

/** The parts of the path, decoded one by one: an id may contain a slash as %2F. @throws HttpRefusal 400 */
function parsed({ url = "/" }: IncomingMessage): {
  readonly path: readonly string[];
  readonly params: URLSearchParams;
} {
  const base = "http://dashboard";
  const { pathname, searchParams } = URL.canParse(url, base) ? new URL(url, base) : new URL("/%", base);
  const path = decodedParts(pathname);
  if (path !== undefined) return { path, params: searchParams };
  throw new HttpRefusal(
    400,
    "WAGGLE_INVALID_MESSAGE",
    "the request's path cannot be read: encode it as UTF-8 with %",
  );
}

/** Undefined for a path that is not UTF-8. */
function decodedParts(pathname: string): readonly string[] | undefined {
  try {
    return pathname
      .split("/")
      .filter((part) => part !== "")
      .map((part) => decodeURIComponent(part));
  } catch {
    return undefined; // a wrong %: refused by the caller
  }
}

function requireMethod({ method }: IncomingMessage, wanted: "GET" | "POST"): void {
  if (method === wanted || (wanted === "GET" && method === "HEAD")) return;
  throw new HttpRefusal(405, "WAGGLE_INVALID_MESSAGE", `use ${wanted} here, not ${method ?? "nothing"}`);
}

function unknownPath(path: readonly string[]): HttpRefusal {
  const named = `/api/${path.map(encodeURIComponent).join("/")}`;
  return new HttpRefusal(
    404,
    "WAGGLE_INVALID_MESSAGE",
    `there is no ${named}; docs/dashboard.md lists the paths`,
  );
}

/** Reads a body that is too large to its end, within a bound: a browser shows no answer before it has sent the request.
 *  @throws HttpRefusal 413, 400 */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= limits.dashboardBodyBytesMax) parts.push(part);
    else if (size > limits.dashboardUnreadBytesMax) break;
  }
  if (size > limits.dashboardBodyBytesMax)
    throw new HttpRefusal(
      413,
      "WAGGLE_INVALID_MESSAGE",
      `the body may have ${limits.dashboardBodyBytesMax / 1024 / 1024} MiB: store a larger payload elsewhere and submit a reference`,
    );
  const body = parseJson(Buffer.concat(parts));
  if (body.ok) return body.value;
  throw new HttpRefusal(400, "WAGGLE_INVALID_MESSAGE", body.message.replace("the message: ", "the body "));
}
