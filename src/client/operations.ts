// Requests of operators: settings, pauses, drains, transfer of the lead. A request carries only the fields to
// change. Messages are checked before they are sent: JSON turns NaN into null, and null removes a limit.

import type { z } from "zod";
import { argument, instant, judged, objectOf, readerOf } from "../agent/options.ts";
import type { Clock } from "../clock.ts";
import type {
  BudgetPatch,
  KindPatch as CheckedKindPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "../core/settings-patch.ts";
import { InvalidMessageError, NoLeaderError, UnreachableError, WaggleError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { limits } from "../limits.ts";
import {
  agentIdSchema,
  okResponseSchema,
  statusResponseSchema,
  transferRequestSchema,
} from "../protocol/schemas.ts";
import { shown } from "../protocol/sentence.ts";
import {
  budgetSchema,
  type GrantSettings,
  grantRequestSchema,
  grantSchema,
  grantSetAnswerSchema,
  holdAnswerSchema,
  holdRequestSchema,
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
import { holdScopes } from "../state/hold.ts";
import { type Asker, type AskOptions, askRules, readAskOptions } from "./asker.ts";
import { errorFrom } from "./coded-error.ts";
import { projectName } from "./task-request.ts";

/** Fields to change in a kind's settings. Absent fields stay. */
export interface KindPatch extends Omit<CheckedKindPatch, "cheaper"> {
  /** Name of the kind that replaces the kind when a budget in mode `downgrade` is used up. Null: no
   *  replacement. */
  readonly cheaper?: string | null | undefined;
}

/** The settings after a change. */
export interface Setting<Settings> {
  /** Complete, including fields that the patch did not name. */
  readonly settings: Settings;
  /** False when the settings held before: nothing was journaled. */
  readonly changed: boolean;
  /** Effects that the change does not have although users may expect them, as sentences. Absent when empty. */
  readonly warnings?: readonly string[] | undefined;
  readonly term: number;
  readonly idx: number;
}

type ProjectSettings = SettingsResponse["defaults"]["project"];
type KindSettings = SettingsResponse["defaults"]["kind"];
type ResourceSettings = SettingsResponse["resources"][number]["settings"];
type RateSettings = SettingsResponse["rates"][number]["settings"];

export interface SettingsOptions extends AskOptions {
  /** Return only the settings of this project, and the policy. Default: the whole swarm's. */
  readonly project?: string;
  /** Return only the project, kind, resource and agent type with this name. */
  readonly name?: string;
}

/** Each `set…` changes the given fields, keeps the rest, and resolves when the complete result is journaled. A
 *  limit below present use revokes nothing: assignments pause until use fits the limit. Unknown fields are
 *  refused. Empty patches are refused, except a project's.
 *  @throws InvalidMessageError, InvalidValueError naming the field: nothing was changed; NoLeaderError;
 *    OutcomeUnknownError: set again, which is harmless */
export interface SwarmOperations {
  /** The present settings. @throws NoLeaderError, UnreachableError */
  settings(options?: SettingsOptions): Promise<SettingsResponse>;

  /** Rules, α, starvation limits, and limits of the swarm as a whole. */
  setPolicy(patch: PolicyPatch, options?: AskOptions): Promise<Setting<PolicySettings>>;
  /** Creates the project where projects must be declared, even with an empty patch. A user whom the server does not
   *  permit an operator's subjects asks as the project's owner: without the share and the limits. */
  setProject(project: string, patch: ProjectPatch, options?: AskOptions): Promise<Setting<ProjectSettings>>;
  /** Removes all settings of the project. Where projects must be declared, the project ceases to exist.
   *  `changed` is false when nothing was set. @throws WaggleError `WAGGLE_CONFLICT` while tasks of the project
   *  have not ended */
  removeProject(project: string, options?: AskOptions): Promise<Setting<null>>;
  setKind(kind: string, patch: KindPatch, options?: AskOptions): Promise<Setting<KindSettings>>;
  /** `slots` is required in the first patch of a resource. Waiting slot leases above the new number of slots
   *  are refused (`WAGGLE_ABOVE_CAPACITY`). */
  setResource(
    resource: string,
    patch: ResourcePatch,
    options?: AskOptions,
  ): Promise<Setting<ResourceSettings>>;
  /** `changed` is false when the resource did not exist. @throws WaggleError `WAGGLE_CONFLICT` while its slots
   *  are held or waited for; nothing is revoked */
  removeResource(resource: string, options?: AskOptions): Promise<Setting<null>>;
  /** Limits the tokens of agents of one type per window. A type may have a rate for each window, and all rates
   *  apply. `tokensMax` is required in the first patch of a window. */
  setRate(agentType: string, patch: RatePatch, options?: AskOptions): Promise<Setting<RateSettings>>;
  /** Removes the rate of one window, or all rates of the type. `changed` is false when no rate was set. */
  removeRate(agentType: string, options?: RemoveRateOptions): Promise<Setting<null>>;

  /** Replaces the grant of a group of agents: what they may declare, be assigned, hold and charge. `_`: agents
   *  without a group. Sessions beyond the new grant end at once, and their attempts and slots are taken back. */
  setGrant(group: string, grant: Grant, options?: AskOptions): Promise<Setting<GrantSettings>>;
  /** Removes the grant of a group. Its agents are unbounded then; where agents must be declared, their sessions
   *  end. `changed` is false when the group had no grant. */
  removeGrant(group: string, options?: AskOptions): Promise<Setting<null>>;

  /** Stops assignments of one project, or of the whole swarm. Running tasks go on, and new tasks are accepted.
   *  @throws WaggleError `WAGGLE_UNKNOWN_PROJECT` where projects must be declared */
  pause(project?: string, options?: AskOptions): Promise<Setting<Pause>>;
  /** Ends a pause. The swarm's pause and a project's pause are independent. */
  resume(project?: string, options?: AskOptions): Promise<Setting<Pause>>;

  /** Keeps an agent, all agents of a type, or a resource from new work. At the end of the time one probe runs,
   *  and the rest when it is not refused. A second hold on the same target changes its time.
   *  @throws WaggleError `WAGGLE_UNKNOWN_AGENT`
   *  @throws InvalidValueError naming the field: an unknown resource, a time that is over or beyond 7 days */
  hold(target: HoldTargetOption, options: HoldOptions): Promise<Setting<Hold>>;
  /** Ends a hold at once, without a probe. `changed` is false when there was none.
   *  @throws WaggleError `WAGGLE_UNKNOWN_AGENT` · @throws InvalidValueError naming the field: an unknown resource */
  unhold(target: HoldTargetOption, options?: AskOptions): Promise<Setting<null>>;

  /** The agent finishes its running tasks and gets no new task. @throws WaggleError `WAGGLE_UNKNOWN_AGENT` */
  drain(agent: string, options?: AskOptions): Promise<void>;
  undrain(agent: string, options?: AskOptions): Promise<void>;

  /** Transfers the lead to the standby `to`, or to any standby. Earlier requests are finished first, and
   *  nothing is lost. Resolves when the next leader leads.
   *  @throws NoLeaderError when no coordinator began to lead in time
   *  @throws WaggleError `WAGGLE_NO_STANDBY` when no standby, or not the named standby, can lead: nothing was
   *    changed */
  transferLead(options?: TransferOptions): Promise<Lead>;
}

export interface RemoveRateOptions extends AskOptions {
  /** Default: every window of the type. */
  readonly window?: RatePatch["window"];
}

/** What a group of agents may do. An absent field is unbounded, an empty list permits nothing. */
export interface Grant {
  /** Kinds that its agents may serve. */
  readonly kinds?: readonly string[] | undefined;
  /** Roles that its agents may have. An agent without a role is permitted. */
  readonly roles?: readonly string[] | undefined;
  /** Types that its agents may have. An agent without a type is refused. */
  readonly types?: readonly string[] | undefined;
  /** Labels that its agents may have: `gpu=a100`, or `gpu` for any value. */
  readonly labels?: readonly string[] | undefined;
  /** Projects of the tasks that agents may get, and of the budgets that slots may charge. */
  readonly projects?: readonly string[] | undefined;
  /** Resources whose slots its agents may hold. */
  readonly resources?: readonly string[] | undefined;
  /** Of each of its agents, ≥ 0. 0: none may join. */
  readonly maxConcurrent?: number | undefined;
  /** Tokens that one attempt or one slot lease may charge, ≥ 0. A report of more counts as this many. */
  readonly tokens?: number | undefined;
}

/** The target of a hold: an agent, all agents of a type, or the grants of a resource. Exactly one field is given. */
export type HoldTargetOption =
  | { readonly agent: string }
  /** All agents of this type. */
  | { readonly type: string }
  /** New grants of slots. */
  | { readonly resource: string };

/** The end of a hold: one of `forMs` and `until`. */
export interface HoldOptions extends AskOptions {
  /** Time from now, ms, 100 to 604,800,000 (7 days). */
  readonly forMs?: number;
  readonly until?: Date | number;
  /** Keeps a hold in force that ends later, as after a refusal by a provider. Default false: the new time counts. */
  readonly lengthen?: boolean;
}

/** A hold as placed. */
export interface Hold {
  readonly on: "agent" | "type" | "resource";
  readonly name: string;
  /** ms since the Unix epoch, by the leader's clock. */
  readonly until: number;
}

export interface TransferOptions extends AskOptions {
  /** Id of the next leader. Default: any standby. */
  readonly to?: string;
}

/** The leader and its term. */
export interface Lead {
  readonly leader: string;
  readonly term: number;
}

/** The pause of a project, or of the swarm when `project` is absent. */
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
    const { name, project = NO_PROJECT, ...options } = readSettingsOptions("settings", given);
    const subject = this.#subjects.query(project, "settings");
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
    const given = readProjectPatch("", patch);
    const message = { ...given, v: 1, project: projectOf(project) };
    const asOwner = { project, verb: "set", message: { ...given, v: 1 } } as const;
    const asked = readAskOptions("setProject", options);
    return await this.#set("project", message, projectSetAnswerSchema, asked, asOwner);
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

  async setGrant(group: string, grant: Grant, options?: AskOptions): Promise<Setting<GrantSettings>> {
    const message = { v: 1, group: groupOf(group), grant: readGrant("", grant) };
    return await this.#set("grant", message, grantSetAnswerSchema, readAskOptions("setGrant", options));
  }

  async removeGrant(group: string, options?: AskOptions): Promise<Setting<null>> {
    const message = { v: 1, group: groupOf(group), grant: null };
    return await this.#set("grant", message, removedAnswerSchema, readAskOptions("removeGrant", options));
  }

  async pause(project?: string, options?: AskOptions): Promise<Setting<Pause>> {
    const message = {
      v: 1,
      project: argument(["pause", "project"], project, projectName.optional()),
    };
    const asked = readAskOptions("pause", options);
    return await this.#set("pause", message, pauseAnswerSchema, asked, ownersPause("pause", project));
  }

  async resume(project?: string, options?: AskOptions): Promise<Setting<Pause>> {
    const message = {
      v: 1,
      project: argument(["resume", "project"], project, projectName.optional()),
    };
    const asked = readAskOptions("resume", options);
    return await this.#set("resume", message, pauseAnswerSchema, asked, ownersPause("resume", project));
  }

  async hold(target: HoldTargetOption, given: HoldOptions): Promise<Setting<Hold>> {
    const { forMs, until, lengthen, ...options } = readHoldOptions("hold", given);
    if ((forMs === undefined) === (until === undefined))
      throw new InvalidMessageError("hold: name either forMs or until", { field: "forMs" });
    const message = { v: 1, ...holdTargetOf("hold", target), forMs, until, lengthen };
    return await this.#set("hold", message, holdAnswerSchema, options);
  }

  async unhold(target: HoldTargetOption, options?: AskOptions): Promise<Setting<null>> {
    const message = { v: 1, ...holdTargetOf("unhold", target) };
    return await this.#set("unhold", message, removedAnswerSchema, readAskOptions("unhold", options));
  }

  async drain(agent: string, options?: AskOptions): Promise<void> {
    await this.#changeDrain("drain", agent, options);
  }

  async undrain(agent: string, options?: AskOptions): Promise<void> {
    await this.#changeDrain("undrain", agent, options);
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
        if (isOver() && error instanceof UnreachableError) return before; // the deadline cut the last query short
        throw error;
      });
      if (now.term > before.term) return now;
    }
    throw new NoLeaderError(
      `${before.leader} gave up the lead, and no coordinator took it over within ${timeoutMs / 1_000} s. ` +
        "A standby may still do so: `waggle status` shows the leader",
    );
  }

  /** The leader, as any coordinator reports it. Standbys answer late, so a loop of such queries is not busy. */
  async #lead(options: AskOptions): Promise<Lead> {
    const subject = this.#subjects.query(NO_PROJECT, "status");
    const schema = statusResponseSchema;
    const answer = await this.#asker.ask({ kind: "query", subject, schema, message: { v: 1 } }, options);
    return { leader: answer.leader, term: answer.term };
  }

  async #changeDrain(verb: "drain" | "undrain", given: string, options?: AskOptions): Promise<void> {
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

  /** @param asOwner the same request by the owner of a project, for a user who may not ask as an operator */
  async #set<Settings>(
    verb: OperatorVerb,
    message: object,
    schema: z.ZodType<SetAnswer<Settings>>,
    options: AskOptions,
    asOwner?: OwnersRequest,
  ): Promise<Setting<Settings>> {
    const question = { kind: "command", subject: this.#subjects.operator(verb), schema } as const;
    const answer = await this.#asker.ask({ ...question, message }, options).catch((error: unknown) => {
      if (asOwner === undefined || !isForbiddenByServer(error)) throw error;
      const subject = this.#subjects.project(asOwner.project, asOwner.verb);
      return this.#asker.ask({ ...question, subject, message: asOwner.message }, options);
    });
    if (!answer.ok) throw errorFrom(answer);
    const { settings, changed, term, idx, warnings } = answer;
    return { settings, changed, term, idx, ...(warnings === undefined ? {} : { warnings }) };
  }
}

/** Without a field the server refused the subject, and no coordinator got the request. */
function isForbiddenByServer(error: unknown): boolean {
  return error instanceof WaggleError && error.code === "WAGGLE_FORBIDDEN" && error.field === undefined;
}

interface OwnersRequest {
  readonly project: string;
  readonly verb: "set" | "pause" | "resume";
  readonly message: object;
}

function ownersPause(verb: "pause" | "resume", project: string | undefined): OwnersRequest | undefined {
  return project === undefined ? undefined : { project, verb, message: { v: 1 } };
}

type SetAnswer<Settings> =
  | ({ readonly ok: true } & Setting<Settings>)
  | (Parameters<typeof errorFrom>[0] & { readonly ok: false });

const readSettingsOptions = readerOf<SettingsOptions>({
  ...askRules,
  each: { ...askRules.each, name: settingsQuerySchema.shape.name, project: projectName },
});

const readRemoveRateOptions = readerOf<RemoveRateOptions>({
  ...askRules,
  each: { ...askRules.each, window: ratePatchSchema.shape.window },
});

const readHoldOptions = readerOf<HoldOptions>({
  ...askRules,
  each: {
    ...askRules.each,
    forMs: holdRequestSchema.shape.forMs,
    until: instant,
    lengthen: holdRequestSchema.shape.lengthen,
  },
  otherwise: { for: "forMs", retryAfterMs: "forMs" },
  example: "{ forMs: 600_000 }",
});

const { name: holdName } = holdRequestSchema.shape;

/** `{ on, name }` of a target; undefined unless it names one agent, type or resource. */
function namedTarget(given: unknown): { readonly on: string; readonly name: string } | undefined {
  const entries = typeof given === "object" && given !== null ? Object.entries(given) : [];
  const [first, ...others] = entries.filter(([, value]) => value !== undefined);
  if (first === undefined || others.length > 0) return undefined;
  const [on, name] = first;
  const isRight = holdScopes.some((scope) => scope === on) && holdName.safeParse(name).success;
  return isRight ? { on, name: String(name) } : undefined;
}

const holdTarget = judged<HoldTargetOption>((input) =>
  namedTarget(input) === undefined
    ? `must name one agent, type or resource, such as { type: "claude" }, not ${shown(input)}`
    : undefined,
);

/** @throws InvalidMessageError */
function holdTargetOf(call: string, given: HoldTargetOption): object {
  return namedTarget(argument([call, "target"], given, holdTarget)) ?? {};
}

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

const readGrant = readerOf<Grant>({
  each: grantSchema.shape,
  otherwise: { kind: "kinds", role: "roles", type: "types", label: "labels", project: "projects" },
  example: '{ kinds: ["review"], projects: ["acme"] }',
  subject: "the grant:",
});

/** @throws InvalidMessageError naming the field, and when the patch is empty */
function somePatchOf<Patch extends object>(
  read: (call: string, given: unknown) => Patch,
  given: unknown,
  { shape }: z.ZodObject,
): Patch {
  const patch = read("", given);
  if (Object.keys(patch).length > 0) return patch;
  throw new InvalidMessageError(`the settings: name at least one setting: ${Object.keys(shape).join(", ")}`);
}

const projectOf = (given: string) => argument(["", "project"], given, projectName);
const kindOf = (given: string) => argument(["", "kind"], given, kindRequestSchema.shape.kind);
const resourceOf = (given: string) => argument(["", "resource"], given, resourceRequestSchema.shape.resource);
const groupOf = (given: string) => argument(["", "group"], given, grantRequestSchema.shape.group);
const typeOf = (given: string) => argument(["", "type"], given, rateRequestSchema.shape.type);
