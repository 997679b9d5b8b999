// What an operator asks of a swarm: settings, pauses, drains. One request a setting; each says only what changes.
// The one thing to know: a message is checked here before it is sent, because JSON turns NaN into null, which on the
// wire takes a limit away.

import type { z } from "zod";
import { argument, objectOf, readerOf } from "../agent/options.ts";
import type { Clock } from "../clock.ts";
import type {
  BudgetPatch,
  KindPatch as CheckedKindPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "../core/settings-patch.ts";
import { InvalidMessageError, NoLeaderError, UnreachableError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { limits } from "../limits.ts";
import {
  agentIdSchema,
  okResponseSchema,
  statusResponseSchema,
  transferRequestSchema,
} from "../protocol/schemas.ts";
import {
  budgetSchema,
  kindAnswerSchema,
  kindPatchSchema,
  kindRequestSchema,
  type PolicySettings,
  pauseAnswerSchema,
  policyAnswerSchema,
  policyPatchSchema,
  projectPatchSchema,
  projectSetAnswerSchema,
  ratePatchSchema,
  rateRequestSchema,
  rateSetAnswerSchema,
  removedAnswerSchema,
  resourcePatchSchema,
  resourceRequestSchema,
  resourceSetAnswerSchema,
  type SettingsResponse,
  settingsQuerySchema,
  settingsResponseSchema,
} from "../protocol/settings-schemas.ts";
import type { OperatorVerb, Subjects } from "../protocol/subjects.ts";
import { type Asker, type AskOptions, askRules, readAskOptions } from "./asker.ts";
import { errorFrom } from "./coded-error.ts";
import { projectName } from "./task-request.ts";

/** What to change of a kind's settings; what is absent stays. */
export interface KindPatch extends Omit<CheckedKindPatch, "cheaper"> {
  /** The name of the kind that runs in its place where a budget in mode `downgrade` is used up; null: nothing does. */
  readonly cheaper?: string | null | undefined;
}

/** What holds after a setting was made. */
export interface Setting<Settings> {
  /** Complete, not only what was said. */
  readonly settings: Settings;
  /** False when it held before: nothing was journaled. */
  readonly changed: boolean;
  /** What it will not do, though one may think so: sentences; absent when there is nothing to say. */
  readonly warnings?: readonly string[] | undefined;
  readonly term: number;
  readonly idx: number;
}

type ProjectSettings = SettingsResponse["defaults"]["project"];
type KindSettings = SettingsResponse["defaults"]["kind"];
type ResourceSettings = SettingsResponse["resources"][number]["settings"];
type RateSettings = SettingsResponse["rates"][number]["settings"];

export interface SettingsOptions extends AskOptions {
  /** Only the project, kind, resource and agent type of this name. */
  readonly name?: string;
}

/** Each `set…` changes what it is given, leaves the rest, and resolves when the complete result is journaled. A
 *  limit set below what is in use takes nothing from anybody: nothing is assigned until it fits. A field that there is
 *  not is refused, and so is a patch that says nothing, but a project's.
 *  @throws InvalidMessageError, InvalidValueError naming the field: nothing was changed; NoLeaderError;
 *    OutcomeUnknownError: set it again, which is harmless */
export interface SwarmOperations {
  /** What is set now. @throws NoLeaderError, UnreachableError */
  settings(options?: SettingsOptions): Promise<SettingsResponse>;

  /** Rules, α, starvation limits, the limits of the swarm as a whole. */
  setPolicy(patch: PolicyPatch, options?: AskOptions): Promise<Setting<PolicySettings>>;
  /** Brings the project into being where projects must be declared, even with an empty patch. */
  setProject(project: string, patch: ProjectPatch, options?: AskOptions): Promise<Setting<ProjectSettings>>;
  /** Sets nothing for it any more: where projects must be declared it exists no longer. `changed` is false when nothing
   *  was set. @throws WaggleError `WAGGLE_CONFLICT` while it has tasks that have not ended */
  removeProject(project: string, options?: AskOptions): Promise<Setting<null>>;
  setKind(kind: string, patch: KindPatch, options?: AskOptions): Promise<Setting<KindSettings>>;
  /** `slots` must be said at first. Who waits for more than it leaves is refused (`WAGGLE_ABOVE_CAPACITY`). */
  setResource(
    resource: string,
    patch: ResourcePatch,
    options?: AskOptions,
  ): Promise<Setting<ResourceSettings>>;
  /** `changed` is false when there was none. @throws WaggleError `WAGGLE_CONFLICT` while slots of it are held or
   *  waited for: nothing is taken from anybody */
  removeResource(resource: string, options?: AskOptions): Promise<Setting<null>>;
  /** Limits the tokens of agents of one type in one window. A type may have a rate for each window, and all of them
   *  hold. `tokensMax` is required with the first patch of a window. */
  setRate(agentType: string, patch: RatePatch, options?: AskOptions): Promise<Setting<RateSettings>>;
  /** Removes the rate of one window, or all rates of the type. `changed` is false when there was none. */
  removeRate(agentType: string, options?: RemoveRateOptions): Promise<Setting<null>>;

  /** Assigns nothing, of one project or at all; what runs goes on, and tasks are accepted as before.
   *  @throws WaggleError `WAGGLE_UNKNOWN_PROJECT` where projects must be declared */
  pause(project?: string, options?: AskOptions): Promise<Setting<Pause>>;
  /** Of the same: the swarm's pause and a project's are two. */
  resume(project?: string, options?: AskOptions): Promise<Setting<Pause>>;

  /** The agent finishes what it runs and is given nothing new. @throws WaggleError `WAGGLE_UNKNOWN_AGENT` */
  drain(agent: string, options?: AskOptions): Promise<void>;
  undrain(agent: string, options?: AskOptions): Promise<void>;

  /** Lets another coordinator lead: the one named, or any that stands by. What was asked before is finished first, and
   *  nothing is lost. Resolves when the next one leads.
   *  @throws NoLeaderError when none began to in time
   *  @throws WaggleError `WAGGLE_NO_STANDBY` when nobody could, or not the one named: nothing was changed */
  transferLead(options?: TransferOptions): Promise<Lead>;
}

export interface RemoveRateOptions extends AskOptions {
  /** Default: every window of the type. */
  readonly window?: RatePatch["window"];
}

export interface TransferOptions extends AskOptions {
  /** Id of the coordinator that is to lead. */
  readonly to?: string;
}

/** Who leads since when. */
export interface Lead {
  readonly leader: string;
  readonly term: number;
}

/** Of the swarm where no project is named. */
export interface Pause {
  readonly project?: string | undefined;
  readonly paused: boolean;
}

export class Operations implements SwarmOperations {
  readonly #asker: Asker;
  readonly #subjects: Subjects;
  readonly #clock: Clock;

  constructor(asker: Asker, subjects: Subjects, clock: Clock) {
    this.#asker = asker;
    this.#subjects = subjects;
    this.#clock = clock;
  }

  async settings(given?: SettingsOptions): Promise<SettingsResponse> {
    const { name, ...options } = readSettingsOptions("settings", given);
    const subject = this.#subjects.query(NO_PROJECT, "settings");
    const message = { v: 1, name };
    return await this.#asker.ask(
      { kind: "query", subject, message, schema: settingsResponseSchema },
      options,
    );
  }

  async setPolicy(patch: PolicyPatch, options?: AskOptions): Promise<Setting<PolicySettings>> {
    const message = { ...somePatchOf(readPolicyPatch, patch, policyPatchSchema), v: 1 };
    return await this.#set("policy", message, policyAnswerSchema, readAskOptions("setPolicy", options));
  }

  async setProject(
    project: string,
    patch: ProjectPatch,
    options?: AskOptions,
  ): Promise<Setting<ProjectSettings>> {
    const message = { ...readProjectPatch("", patch), v: 1, project: projectOf(project) };
    return await this.#set("project", message, projectSetAnswerSchema, readAskOptions("setProject", options));
  }

  async removeProject(project: string, options?: AskOptions): Promise<Setting<null>> {
    const message = { v: 1, project: projectOf(project), remove: true };
    return await this.#set("project", message, removedAnswerSchema, readAskOptions("removeProject", options));
  }

  async setKind(kind: string, patch: KindPatch, options?: AskOptions): Promise<Setting<KindSettings>> {
    const message = { ...somePatchOf(readKindPatch, patch, kindPatchSchema), v: 1, kind: kindOf(kind) };
    return await this.#set("kind", message, kindAnswerSchema, readAskOptions("setKind", options));
  }

  async setResource(
    resource: string,
    patch: ResourcePatch,
    options?: AskOptions,
  ): Promise<Setting<ResourceSettings>> {
    const message = {
      ...somePatchOf(readResourcePatch, patch, resourcePatchSchema),
      v: 1,
      resource: resourceOf(resource),
    };
    return await this.#set(
      "resource",
      message,
      resourceSetAnswerSchema,
      readAskOptions("setResource", options),
    );
  }

  async removeResource(resource: string, options?: AskOptions): Promise<Setting<null>> {
    const message = { v: 1, resource: resourceOf(resource), remove: true };
    return await this.#set(
      "resource",
      message,
      removedAnswerSchema,
      readAskOptions("removeResource", options),
    );
  }

  async setRate(type: string, patch: RatePatch, options?: AskOptions): Promise<Setting<RateSettings>> {
    const message = { ...somePatchOf(readRatePatch, patch, ratePatchSchema), v: 1, type: typeOf(type) };
    return await this.#set("rate", message, rateSetAnswerSchema, readAskOptions("setRate", options));
  }

  async removeRate(type: string, given?: RemoveRateOptions): Promise<Setting<null>> {
    const { window, ...options } = readRemoveRateOptions("removeRate", given);
    const message = { v: 1, type: typeOf(type), window, remove: true };
    return await this.#set("rate", message, removedAnswerSchema, options);
  }

  async pause(project?: string, options?: AskOptions): Promise<Setting<Pause>> {
    const message = {
      v: 1,
      project: argument(["pause", "project"], project, projectName.optional()),
    };
    return await this.#set("pause", message, pauseAnswerSchema, readAskOptions("pause", options));
  }

  async resume(project?: string, options?: AskOptions): Promise<Setting<Pause>> {
    const message = {
      v: 1,
      project: argument(["resume", "project"], project, projectName.optional()),
    };
    return await this.#set("resume", message, pauseAnswerSchema, readAskOptions("resume", options));
  }

  async drain(agent: string, options?: AskOptions): Promise<void> {
    await this.#tellAgent("drain", agent, options);
  }

  async undrain(agent: string, options?: AskOptions): Promise<void> {
    await this.#tellAgent("undrain", agent, options);
  }

  async transferLead(given?: TransferOptions): Promise<Lead> {
    const { to, timeoutMs = limits.askTimeoutMs, signal } = readTransferOptions("transferLead", given);
    const giveUpAtMs = this.#clock.monotonicMs() + timeoutMs;
    const rest = (): AskOptions => ({
      timeoutMs: Math.max(1, giveUpAtMs - this.#clock.monotonicMs()),
      ...(signal === undefined ? {} : { signal }),
    });
    const before = await this.#lead(rest());
    if (before.leader === to) return before;
    const message = { v: 1, of: before.term, to };
    const subject = this.#subjects.operator("transfer");
    const question = { kind: "command", subject, schema: okResponseSchema, message } as const;
    const answer = await this.#asker.ask(question, rest());
    if (!answer.ok) throw errorFrom(answer);
    const isOver = () => this.#clock.monotonicMs() >= giveUpAtMs;
    while (!isOver()) {
      const now = await this.#lead(rest()).catch((error: unknown) => {
        if (isOver() && error instanceof UnreachableError) return before; // the last look was cut short
        throw error;
      });
      if (now.term > before.term) return now;
    }
    throw new NoLeaderError(
      `${before.leader} let another lead, and none has begun to within ${timeoutMs / 1_000} s. ` +
        "One may yet: `waggle status` shows who leads",
    );
  }

  /** Who leads, by whoever answers: standbys take their time, so this is no busy loop. */
  async #lead(options: AskOptions): Promise<Lead> {
    const subject = this.#subjects.query(NO_PROJECT, "status");
    const schema = statusResponseSchema;
    const answer = await this.#asker.ask({ kind: "query", subject, schema, message: { v: 1 } }, options);
    return { leader: answer.leader, term: answer.term };
  }

  async #tellAgent(verb: "drain" | "undrain", given: string, options?: AskOptions): Promise<void> {
    const agent = argument([verb, "agent"], given, agentIdSchema);
    const question = {
      kind: "command",
      subject: this.#subjects.operator(verb),
      schema: okResponseSchema,
    } as const;
    const answer = await this.#asker.ask(
      { ...question, message: { v: 1, agent } },
      readAskOptions(verb, options),
    );
    if (!answer.ok) throw errorFrom(answer);
  }

  async #set<Settings>(
    verb: OperatorVerb,
    message: object,
    schema: z.ZodType<SetAnswer<Settings>>,
    options: AskOptions,
  ): Promise<Setting<Settings>> {
    const question = { kind: "command", subject: this.#subjects.operator(verb), schema } as const;
    const answer = await this.#asker.ask({ ...question, message }, options);
    if (!answer.ok) throw errorFrom(answer);
    const { settings, changed, term, idx, warnings } = answer;
    return { settings, changed, term, idx, ...(warnings === undefined ? {} : { warnings }) };
  }
}

type SetAnswer<Settings> =
  | ({ readonly ok: true } & Setting<Settings>)
  | (Parameters<typeof errorFrom>[0] & { readonly ok: false });

const readSettingsOptions = readerOf<SettingsOptions>({
  ...askRules,
  each: { ...askRules.each, name: settingsQuerySchema.shape.name },
});

const readRemoveRateOptions = readerOf<RemoveRateOptions>({
  ...askRules,
  each: { ...askRules.each, window: ratePatchSchema.shape.window },
});

const readTransferOptions = readerOf<TransferOptions>({
  ...askRules,
  each: { ...askRules.each, to: transferRequestSchema.shape.to },
});

const budgetPatch = objectOf<BudgetPatch>({
  each: budgetSchema.shape,
  otherwise: { limit: "tokens", tokensMax: "tokens", window: "windowMs" },
  example: "{ tokens: 1000000, windowMs: 3600000 }",
}).nullable();

const subject = "the settings:";

const readPolicyPatch = readerOf<PolicyPatch>({
  each: { ...policyPatchSchema.shape, budget: budgetPatch },
  example: "{ alpha: 0.25 }",
  subject,
});
const readProjectPatch = readerOf<ProjectPatch>({
  each: { ...projectPatchSchema.shape, budget: budgetPatch },
  example: "{ creditWeight: 2 }",
  subject,
});
const readKindPatch = readerOf<KindPatch>({
  each: kindPatchSchema.shape,
  example: "{ importance: 2 }",
  subject,
});
const readResourcePatch = readerOf<ResourcePatch>({
  each: resourcePatchSchema.shape,
  example: "{ slots: 4 }",
  subject,
});
const readRatePatch = readerOf<RatePatch>({
  each: { ...ratePatchSchema.shape, window: ratePatchSchema.shape.window.unwrap() },
  otherwise: { tokens: "tokensMax" },
  example: '{ window: "per_minute", tokensMax: 90000 }',
  subject,
});

/** @throws InvalidMessageError naming the field, and where nothing is set */
function somePatchOf<Patch extends object>(
  read: (call: string, given: unknown) => Patch,
  given: unknown,
  { shape }: z.ZodObject,
): Patch {
  const patch = read("", given);
  if (Object.keys(patch).length > 0) return patch;
  throw new InvalidMessageError(`the settings: say what to set; there are ${Object.keys(shape).join(", ")}`);
}

const projectOf = (given: string) => argument(["", "project"], given, projectName);
const kindOf = (given: string) => argument(["", "kind"], given, kindRequestSchema.shape.kind);
const resourceOf = (given: string) => argument(["", "resource"], given, resourceRequestSchema.shape.resource);
const typeOf = (given: string) => argument(["", "type"], given, rateRequestSchema.shape.type);
