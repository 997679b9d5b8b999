// What an operator asks of a swarm: settings, pauses, drains. One request a setting; each says only what changes.
// The one thing to know: a message is checked here before it is sent, because JSON turns NaN into null, which on the
// wire takes a limit away.

import type { z } from "zod";
import { isObject, type OptionNames, unknownOption } from "../agent/option-names.ts";
import type { Clock } from "../clock.ts";
import type {
  KindPatch as CheckedKindPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "../core/settings-patch.ts";
import { InvalidMessageError, NoLeaderError, UnreachableError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { limits } from "../limits.ts";
import { check } from "../protocol/codec.ts";
import { okResponseSchema, statusResponseSchema, transferRequestSchema } from "../protocol/schemas.ts";
import {
  budgetSchema,
  kindAnswerSchema,
  kindPatchSchema,
  kindRequestSchema,
  type PolicySettings,
  pauseAnswerSchema,
  pauseRequestSchema,
  policyAnswerSchema,
  policyPatchSchema,
  policyRequestSchema,
  projectPatchSchema,
  projectRequestSchema,
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
import type { Asker, AskOptions } from "./asker.ts";
import { errorFrom } from "./coded-error.ts";

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

  /** Rules, α, ceilings, the limits of the swarm as a whole. */
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

  async settings({ name, ...options }: SettingsOptions = {}): Promise<SettingsResponse> {
    const subject = this.#subjects.query(NO_PROJECT, "settings");
    const message = checked({ v: 1, name }, settingsQuerySchema);
    return await this.#asker.ask(
      { kind: "query", subject, message, schema: settingsResponseSchema },
      options,
    );
  }

  async setPolicy(patch: PolicyPatch, options?: AskOptions): Promise<Setting<PolicySettings>> {
    const message = checked({ ...somePatchOf(patch, policyNames), v: 1 }, policyRequestSchema);
    return await this.#set("policy", message, policyAnswerSchema, options);
  }

  async setProject(
    project: string,
    patch: ProjectPatch,
    options?: AskOptions,
  ): Promise<Setting<ProjectSettings>> {
    const message = checked({ ...patchOf(patch, projectNames), v: 1, project }, projectRequestSchema);
    return await this.#set("project", message, projectSetAnswerSchema, options);
  }

  async removeProject(project: string, options?: AskOptions): Promise<Setting<null>> {
    const message = checked({ v: 1, project, remove: true }, projectRequestSchema);
    return await this.#set("project", message, removedAnswerSchema, options);
  }

  async setKind(kind: string, patch: KindPatch, options?: AskOptions): Promise<Setting<KindSettings>> {
    const message = checked({ ...somePatchOf(patch, kindNames), v: 1, kind }, kindRequestSchema);
    return await this.#set("kind", message, kindAnswerSchema, options);
  }

  async setResource(
    resource: string,
    patch: ResourcePatch,
    options?: AskOptions,
  ): Promise<Setting<ResourceSettings>> {
    const message = checked({ ...somePatchOf(patch, resourceNames), v: 1, resource }, resourceRequestSchema);
    return await this.#set("resource", message, resourceSetAnswerSchema, options);
  }

  async removeResource(resource: string, options?: AskOptions): Promise<Setting<null>> {
    const message = checked({ v: 1, resource, remove: true }, resourceRequestSchema);
    return await this.#set("resource", message, removedAnswerSchema, options);
  }

  async setRate(type: string, patch: RatePatch, options?: AskOptions): Promise<Setting<RateSettings>> {
    const message = checked({ ...somePatchOf(patch, rateNames), v: 1, type }, rateRequestSchema);
    return await this.#set("rate", message, rateSetAnswerSchema, options);
  }

  async removeRate(type: string, { window, ...options }: RemoveRateOptions = {}): Promise<Setting<null>> {
    const message = checked({ v: 1, type, window, remove: true }, rateRequestSchema);
    return await this.#set("rate", message, removedAnswerSchema, options);
  }

  async pause(project?: string, options?: AskOptions): Promise<Setting<Pause>> {
    const message = checked({ v: 1, project }, pauseRequestSchema);
    return await this.#set("pause", message, pauseAnswerSchema, options);
  }

  async resume(project?: string, options?: AskOptions): Promise<Setting<Pause>> {
    const message = checked({ v: 1, project }, pauseRequestSchema);
    return await this.#set("resume", message, pauseAnswerSchema, options);
  }

  async drain(agent: string, options?: AskOptions): Promise<void> {
    await this.#tellAgent("drain", agent, options);
  }

  async undrain(agent: string, options?: AskOptions): Promise<void> {
    await this.#tellAgent("undrain", agent, options);
  }

  async transferLead({ to, timeoutMs = limits.askTimeoutMs, signal }: TransferOptions = {}): Promise<Lead> {
    const giveUpAtMs = this.#clock.monotonicMs() + timeoutMs;
    const rest = (): AskOptions => ({
      timeoutMs: Math.max(1, giveUpAtMs - this.#clock.monotonicMs()),
      ...(signal === undefined ? {} : { signal }),
    });
    const before = await this.#lead(rest());
    if (before.leader === to) return before;
    const message = checked({ v: 1, of: before.term, to }, transferRequestSchema);
    const subject = this.#subjects.operator("transfer");
    const question = { kind: "deed", subject, schema: okResponseSchema, message } as const;
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

  async #tellAgent(verb: "drain" | "undrain", agent: string, options?: AskOptions): Promise<void> {
    const question = {
      kind: "deed",
      subject: this.#subjects.operator(verb),
      schema: okResponseSchema,
    } as const;
    const answer = await this.#asker.ask({ ...question, message: { v: 1, agent } }, options);
    if (!answer.ok) throw errorFrom(answer);
  }

  async #set<Settings>(
    verb: OperatorVerb,
    message: object,
    schema: z.ZodType<SetAnswer<Settings>>,
    options?: AskOptions,
  ): Promise<Setting<Settings>> {
    const question = { kind: "deed", subject: this.#subjects.operator(verb), schema } as const;
    const answer = await this.#asker.ask({ ...question, message }, options);
    if (!answer.ok) throw errorFrom(answer);
    const { settings, changed, term, idx, warnings } = answer;
    return { settings, changed, term, idx, ...(warnings === undefined ? {} : { warnings }) };
  }
}

type SetAnswer<Settings> =
  | ({ readonly ok: true } & Setting<Settings>)
  | (Parameters<typeof errorFrom>[0] & { readonly ok: false });

const policyNames: OptionNames = { known: Object.keys(policyPatchSchema.shape) };
const projectNames: OptionNames = { known: Object.keys(projectPatchSchema.shape) };
const kindNames: OptionNames = { known: Object.keys(kindPatchSchema.shape) };
const resourceNames: OptionNames = { known: Object.keys(resourcePatchSchema.shape) };
const rateNames: OptionNames = {
  known: Object.keys(ratePatchSchema.shape),
  otherwise: { tokens: "tokensMax" },
};
const budgetNames: OptionNames = {
  known: Object.keys(budgetSchema.shape),
  otherwise: { limit: "tokens", tokensMax: "tokens", window: "windowMs" },
};

/** @throws InvalidMessageError as `patchOf`, and where nothing is said */
function somePatchOf<Patch extends object>(patch: Patch, names: OptionNames): Patch {
  const given = patchOf(patch, names);
  if (Object.values(given).some((value) => value !== undefined)) return given;
  throw new InvalidMessageError(`the settings: say what to set; there are ${names.known.join(", ")}`);
}

/** What types say and plain JavaScript does not: it spreads anything, `null` into nothing, and the wire passes over
 *  what it does not know. @throws InvalidMessageError naming the field, of the budget too */
function patchOf<Patch extends object>(patch: Patch, names: OptionNames): Patch {
  if (!isObject(patch) || Array.isArray(patch))
    throw new InvalidMessageError("the settings: must be an object of what is to change");
  refuseUnknown(patch, names);
  if ("budget" in patch && isObject(patch.budget)) refuseUnknown(patch.budget, budgetNames, "budget.");
  return patch;
}

/** @throws InvalidMessageError naming the field */
function refuseUnknown(given: object, names: OptionNames, prefix = ""): void {
  const unknown = unknownOption(given, names);
  if (unknown === undefined) return;
  throw new InvalidMessageError(`${prefix}${unknown.message}`, { field: `${prefix}${unknown.name}` });
}

/** @throws InvalidMessageError naming the field */
function checked<Schema extends z.ZodType>(message: object, schema: Schema): z.infer<Schema> & object {
  const found = check(message, schema);
  if (!found.ok) throw errorFrom(found);
  return message as z.infer<Schema> & object;
}
