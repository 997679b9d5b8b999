// Questions and changes over HTTP. Every failure is an `ApiFailure` with a sentence for people.

import type {
  ActionAnswer,
  ActionBodies,
  ActionVerb,
  ApiError,
  EventPage,
  FairnessPast,
  History,
  HistoryWindow,
  Session,
  TaskContents,
  TaskPage,
} from "../wire.ts";
import type { Filters } from "./router.ts";

export class ApiFailure extends Error {
  readonly code: string;
  readonly field: string | undefined;
  /** With `WAGGLE_CONFLICT` of an action on all matching tasks: the present number. */
  readonly matching: number | undefined;

  constructor({ code, message, field, count }: ApiError["error"], options: ErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.field = field;
    this.matching = count;
  }
}

export class Api {
  readonly #token: string | undefined;

  constructor({ changeToken }: Pick<Session, "changeToken">) {
    this.#token = changeToken;
  }

  async history(window: HistoryWindow, signal: AbortSignal): Promise<History> {
    return await asked(`/api/history?window=${window}`, { signal });
  }

  async tasks(query: Filters, signal: AbortSignal): Promise<TaskPage> {
    return await asked(`/api/tasks?${queryText(query)}`, { signal });
  }

  async contents(task: string, project: string): Promise<TaskContents> {
    return await asked(`/api/tasks/${encodeURIComponent(task)}/contents?${queryText({ project })}`);
  }

  async past(query: Filters, signal: AbortSignal): Promise<FairnessPast> {
    return await asked(`/api/fairness/past?${queryText(query)}`, { signal });
  }

  async events(query: Filters, signal: AbortSignal): Promise<EventPage> {
    return await asked(`/api/events?${queryText(query)}`, { signal });
  }

  /** @throws ApiFailure: nothing was changed, unless the code says "outcome unknown" */
  async act<Verb extends ActionVerb>(verb: Verb, body: ActionBodies[Verb]): Promise<ActionAnswer> {
    return await asked(`/api/actions/${verb}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(this.#token === undefined ? {} : { "x-waggle-token": this.#token }),
      },
      body: JSON.stringify(body),
    });
  }
}

/** Read before the first drawing. @throws ApiFailure */
export async function readSession(): Promise<Session> {
  return await asked("/api/session");
}

export interface Refusal {
  readonly status: number;
  readonly error: ApiError["error"];
}

/** Why a live view was refused, which EventSource does not tell; undefined if it is answered now. */
export async function refusalOf(address: string): Promise<Refusal | undefined> {
  const ended = new AbortController();
  try {
    const response = await fetch(address, { credentials: "same-origin", signal: ended.signal });
    if (response.ok) return undefined;
    const error = errorIn(await response.json());
    return error && { status: response.status, error };
  } catch {
    return undefined; // the server is gone again: the next try says so
  } finally {
    ended.abort();
  }
}

/** Without absent and empty values. */
export function queryText(query: Filters): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  return new URLSearchParams(given as [string, string][]).toString();
}

async function asked<Answer>(path: string, options: RequestInit = {}): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin" });
  } catch (error) {
    options.signal?.throwIfAborted();
    throw new ApiFailure(
      {
        code: "WAGGLE_UNREACHABLE",
        message: "The dashboard's server does not answer. Is `waggle up` running?",
      },
      { cause: error },
    );
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer as Answer;
  throw new ApiFailure(
    errorIn(answer) ?? { code: "WAGGLE_ERROR", message: `HTTP status ${response.status}` },
  );
}

function errorIn(answer: unknown): ApiError["error"] | undefined {
  const error = (answer as ApiError | undefined)?.error;
  return typeof error?.message === "string" ? error : undefined;
}

/** A sentence for people about anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
