// What the page may send: queries and bodies, checked. Every refusal names the field and says what is right.

import * as z from "zod";
import { unknownEventType } from "../audit/event-types.ts";
import type { Widened } from "../defined.ts";
import { InvalidMessageError } from "../errors.ts";
import { limits } from "../limits.ts";
import { check } from "../protocol/codec.ts";
import {
  agentIdSchema,
  BASE64_PATTERN,
  instantSchema,
  kindSchema,
  projectIdSchema,
  taskIdSchema,
  taskInputSchema,
  userIdSchema,
} from "../protocol/schemas.ts";
import { taskFilterShape, taskSorts, taskStates } from "../protocol/task-list-schemas.ts";
import { nearMisses } from "../state/near-miss.ts";
import type { ActionVerb, EventQuery, LiveView } from "./wire.ts";

const plain = <Value extends string>(schema: z.ZodType<Value>) =>
  schema as unknown as z.ZodType<string, string>;
const agent = plain(agentIdSchema);
const kind = plain(kindSchema);
const project = plain(projectIdSchema);
const task = plain(taskIdSchema);
const user = plain(userIdSchema);

// --- queries ------------------------------------------------------------------------------------------

/** Names separated by commas. */
const listOf = <Item extends string>(item: z.ZodType<Item, string>) =>
  z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(item).min(1).max(limits.filterNamesMax))
    .optional();

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,16}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .optional();

const search = z
  .string()
  .min(1)
  .max(
    limits.dashboardSearchCharactersMax,
    `must have at most ${limits.dashboardSearchCharactersMax} characters`,
  )
  .optional();

export const taskQuerySchema = z.strictObject({
  state: listOf(z.enum(taskStates)),
  kind: listOf(kind),
  project: project.optional(),
  user: listOf(user),
  agent: listOf(agent),
  attribute: z
    .string()
    .max(limits.attributesBytesMax)
    .regex(/^[A-Za-z0-9_./-]{1,64}=/, "must be name=value")
    .optional(),
  olderThanMs: wholeNumber(0, limits.rememberMsMax),
  text: search,
  sort: z.enum(taskSorts).optional(),
  limit: wholeNumber(1, limits.tasksPageMax),
  after: z.string().max(limits.cursorCharactersMax).optional(),
});

const eventType = z.string().superRefine((type, context) => {
  const message = unknownEventType(type);
  if (message !== undefined) context.issues.push({ code: "custom", input: type, message });
});

const eventFilterShape = {
  types: listOf(eventType),
  task: task.optional(),
  agent: agent.optional(),
  project: project.optional(),
  kind: kind.optional(),
  text: search,
};
export type EventFilter = Widened<Omit<EventQuery, "before" | "limit">>;

export const eventQuerySchema = z.strictObject({
  ...eventFilterShape,
  before: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  limit: wholeNumber(1, limits.dashboardEventsShown),
});

/** Either `idx`, a task or a time. */
export const pastQuerySchema = z
  .strictObject({
    idx: wholeNumber(1, Number.MAX_SAFE_INTEGER),
    task: task.optional(),
    project: project.optional(),
    attempt: wholeNumber(1, Number.MAX_SAFE_INTEGER),
    at: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  })
  .refine(
    ({ idx, task: named, at }) => [idx ?? named, at].filter((each) => each !== undefined).length === 1,
    {
      path: ["idx"],
      message: "name one moment: a batch with idx, a task, or a time with at",
    },
  );

export const historyQuerySchema = z.strictObject({ window: z.enum(["15m", "6h"]).default("15m") });
export const noQuerySchema = z.strictObject({});
export const projectQuerySchema = z.strictObject({ project: project.optional() });

/** Names of a path: the id of an agent or a task. */
export const pathSchemas = { agent, task } as const;

const viewNames = [
  "overview",
  "agents",
  "agent",
  "tasks",
  "task",
  "fairness",
  "resources",
  "budgets",
  "events",
  "system",
] as const satisfies readonly LiveView[];

const subjectShapes = {
  overview: {},
  agents: {},
  agent: { id: agent },
  tasks: {},
  task: { id: task, project },
  fairness: {},
  resources: {},
  budgets: {},
  events: eventFilterShape,
  system: {},
} as const satisfies Record<LiveView, object>;

export interface LiveQuery {
  readonly view: LiveView;
  /** What the view shows: `{ id, project }`, or the filter of events. */
  readonly subject: Readonly<Record<string, unknown>>;
  /** SSE id of the last message, if the viewer comes back. */
  readonly last: string | undefined;
}

/** @throws InvalidMessageError naming the parameter */
export function readLiveQuery(params: URLSearchParams): LiveQuery {
  const given = recordOf(params);
  const { view, last, ...rest } = given;
  const known = checked({ view: view ?? "overview" }, z.strictObject({ view: z.enum(viewNames) }));
  const subject = checked(rest, z.strictObject(subjectShapes[known.view])) as LiveQuery["subject"];
  return { view: known.view, subject, last };
}

/** @throws InvalidMessageError naming the parameter */
export function readQuery<Schema extends z.ZodType>(
  params: URLSearchParams,
  schema: Schema,
): z.infer<Schema> {
  return checked(recordOf(params), schema);
}

/** Empty parameters count as absent: a form sends them. */
function recordOf(params: URLSearchParams): Record<string, string> {
  const record: Record<string, string> = {};
  for (const [name, value] of params) {
    if (value === "") continue;
    if (Object.hasOwn(record, name))
      throw new InvalidMessageError(`${name}: is given twice; separate several values with commas`, {
        field: name,
      });
    record[name] = value;
  }
  return record;
}

// --- bodies -------------------------------------------------------------------------------------------

const dryRun = z.boolean().optional();

const filterSchema = z
  .strictObject({
    state: taskFilterShape.states,
    kind: taskFilterShape.kinds,
    project: project.optional(),
    user: taskFilterShape.users,
    agent: taskFilterShape.agents,
    attributes: taskFilterShape.attributes,
    olderThanMs: taskFilterShape.olderThanMs,
  })
  .refine(
    (filter) => Object.values(filter).some((condition) => condition !== undefined),
    "needs at least one condition, such as a state: without any, every task of the swarm would match",
  );
export type ActionFilter = z.infer<typeof filterSchema>;

const namedTasks = z.strictObject({
  tasks: z
    .array(z.strictObject({ task, project, round: z.int().min(1).optional() }))
    .min(1)
    .max(limits.itemsPerMessageMax),
  dryRun,
});
const allTasks = z
  .strictObject({ filter: filterSchema, dryRun, expected: z.int().min(0).optional() })
  .refine(
    (body) => body.dryRun === true || body.expected !== undefined,
    "needs dryRun: true, or expected: the number of tasks that the user confirmed",
  );

const { deadline: _deadline, notBefore: _notBefore, ...submitShape } = taskInputSchema.shape;

const onAgent = z.strictObject({ agent, dryRun });
const onProject = z.strictObject({ project: project.optional(), dryRun });

export const actionSchemas = {
  submit: z.strictObject({
    task: z
      .strictObject({
        ...submitShape,
        project: project.optional(),
        deadlineAt: instantSchema.optional(),
        notBeforeAt: instantSchema.optional(),
      })
      .refine(({ encoding, payload = "" }) => encoding === undefined || BASE64_PATTERN.test(payload), {
        path: ["payload"],
        error: "is not base64 though encoding says so",
      }),
    dryRun,
  }),
  drain: onAgent,
  undrain: onAgent,
  pause: onProject,
  resume: onProject,
  revoke: z.strictObject({ task, project, attempt: z.int().min(1).optional(), dryRun }),
  reschedule: z.strictObject({ task, project, notBeforeAt: instantSchema, dryRun }),
} as const;

export type NamedTasks = z.infer<typeof namedTasks>;
export type AllTasks = z.infer<typeof allTasks>;

/** The tasks of `cancel` or `retry`. @throws InvalidMessageError naming the field */
export function readTasksAction(body: unknown): NamedTasks | AllTasks {
  const hasFilter = typeof body === "object" && body !== null && "filter" in body;
  return hasFilter ? checked(body, allTasks) : checked(body, namedTasks);
}

const verbs: ReadonlySet<string> = new Set<ActionVerb>([
  "submit",
  "cancel",
  "retry",
  "drain",
  "undrain",
  "pause",
  "resume",
  "revoke",
  "reschedule",
]);

export function isActionVerb(text: string): text is ActionVerb {
  return verbs.has(text);
}

export const actionVerbs = [...verbs] as readonly ActionVerb[];

/** @throws InvalidMessageError naming the field, also for a field that is unknown */
export function checked<Schema extends z.ZodType>(value: unknown, schema: Schema): z.infer<Schema> {
  const found = check(value, schema);
  if (found.ok) return found.value;
  const unknown = unknownName(value, schema);
  if (unknown !== undefined) throw unknown;
  throw new InvalidMessageError(found.message, found.field === undefined ? {} : { field: found.field });
}

function unknownName(value: unknown, schema: z.ZodType): InvalidMessageError | undefined {
  if (!(schema instanceof z.ZodObject) || typeof value !== "object" || value === null) return undefined;
  const known = Object.keys(schema.shape);
  const name = Object.keys(value).find((each) => !known.includes(each));
  if (name === undefined) return undefined;
  const near = nearMisses(name, known);
  const are = known.length === 0 ? "nothing is known here" : `there are ${known.join(", ")}`;
  const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : are;
  return new InvalidMessageError(`${name}: is unknown; ${hint}`, { field: name });
}
