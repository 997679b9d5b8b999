// Fills the tables of docs/protocol.md, and writes docs/asyncapi.json, from the zod schemas; with --check the
// script compares, and exits 1 if either is stale. The prose of the page is written by hand, between the tables.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import * as explain from "../src/protocol/explain-schemas.ts";
import * as logs from "../src/protocol/log-schemas.ts";
import * as schemas from "../src/protocol/schemas.ts";
import * as settings from "../src/protocol/settings-schemas.ts";
import * as slots from "../src/protocol/slot-schemas.ts";
import * as lists from "../src/protocol/task-list-schemas.ts";

/** A message of the wire: subject, direction, and shape. */
interface WireMessage {
  readonly name: string;
  readonly subject: string;
  readonly direction: "send" | "receive";
  readonly summary: string;
  readonly schema: z.ZodType;
  readonly answer?: z.ZodType;
}

/** As seen by the coordinator, the receiver of requests and sender of pushes. */
const messages: readonly WireMessage[] = [
  {
    name: "submit",
    subject: "project.{project}.submit",
    direction: "receive",
    summary: "Submit tasks; answered after commit.",
    schema: schemas.submitRequestSchema,
    answer: schemas.submitResponseSchema,
  },
  {
    name: "cancel",
    subject: "project.{project}.cancel",
    direction: "receive",
    summary: "End the present rounds of tasks.",
    schema: schemas.cancelRequestSchema,
    answer: schemas.cancelResponseSchema,
  },
  {
    name: "retry",
    subject: "project.{project}.retry",
    direction: "receive",
    summary: "Open the next rounds of ended tasks.",
    schema: schemas.retryRequestSchema,
    answer: schemas.retryResponseSchema,
  },
  {
    name: "revoke",
    subject: "project.{project}.revoke",
    direction: "receive",
    summary: "Take running attempts from their agents.",
    schema: schemas.revokeRequestSchema,
    answer: schemas.revokeResponseSchema,
  },
  {
    name: "reschedule",
    subject: "project.{project}.reschedule",
    direction: "receive",
    summary: "Change the earliest start of waiting tasks.",
    schema: schemas.rescheduleRequestSchema,
    answer: schemas.rescheduleResponseSchema,
  },
  {
    name: "await",
    subject: "project.{project}.await",
    direction: "receive",
    summary: "Ask how tasks ended, now or later.",
    schema: schemas.awaitRequestSchema,
    answer: schemas.awaitResponseSchema,
  },
  {
    name: "query-status",
    subject: "project.{project}.query.status",
    direction: "receive",
    summary: "The swarm at a glance.",
    schema: schemas.statusQuerySchema,
    answer: schemas.statusResponseSchema,
  },
  {
    name: "query-task",
    subject: "project.{project}.query.task",
    direction: "receive",
    summary: "Where one task stands.",
    schema: schemas.taskQuerySchema,
    answer: schemas.taskStatusSchema,
  },
  {
    name: "query-tasks",
    subject: "project.{project}.query.tasks",
    direction: "receive",
    summary: "A page of the tasks that a filter takes.",
    schema: lists.tasksQuerySchema,
    answer: lists.tasksResponseSchema,
  },
  {
    name: "query-explain",
    subject: "project.{project}.query.explain",
    direction: "receive",
    summary: "Why one task waits.",
    schema: explain.explainQuerySchema,
    answer: explain.explainResponseSchema,
  },
  {
    name: "query-slots",
    subject: "project._.query.slots",
    direction: "receive",
    summary: "The requests that wait for slots of one resource, ranked.",
    schema: explain.slotWaitsQuerySchema,
    answer: explain.slotWaitsResponseSchema,
  },
  {
    name: "query-log",
    subject: "project.{project}.query.log",
    direction: "receive",
    summary: "What attempts of one task wrote, asked of their agent.",
    schema: logs.logQuerySchema,
    answer: logs.logResponseSchema,
  },
  {
    name: "query-journal",
    subject: "project.{project}.query.journal",
    direction: "receive",
    summary: "A page of the journal.",
    schema: schemas.journalQuerySchema,
    answer: schemas.journalPageSchema,
  },
  {
    name: "query-records",
    subject: "project._.query.records",
    direction: "receive",
    summary: "Stored records of the journal, byte by byte.",
    schema: schemas.recordsQuerySchema,
    answer: schemas.recordsPageSchema,
  },
  {
    name: "query-events",
    subject: "project.{project}.query.events",
    direction: "receive",
    summary: "A page of a project's events.",
    schema: schemas.eventsQuerySchema,
    answer: schemas.journalPageSchema,
  },
  {
    name: "query-settings",
    subject: "project.{project}.query.settings",
    direction: "receive",
    summary: "What operators have set.",
    schema: settings.settingsQuerySchema,
    answer: settings.settingsResponseSchema,
  },
  {
    name: "operator",
    subject: "operator.{verb}",
    direction: "receive",
    summary: "`drain` or `undrain` an agent.",
    schema: schemas.agentRequestSchema,
    answer: schemas.okResponseSchema,
  },
  {
    name: "transfer",
    subject: "operator.transfer",
    direction: "receive",
    summary: "Let another coordinator lead.",
    schema: schemas.transferRequestSchema,
    answer: schemas.okResponseSchema,
  },
  {
    name: "policy",
    subject: "operator.policy",
    direction: "receive",
    summary: "Set rules and limits of the swarm.",
    schema: settings.policyRequestSchema,
    answer: settings.policyAnswerSchema,
  },
  {
    name: "project",
    subject: "operator.project",
    direction: "receive",
    summary: "Set a project, and bring it into being, or remove it.",
    schema: settings.projectRequestSchema,
    answer: settings.projectAnswerSchema,
  },
  {
    name: "kind",
    subject: "operator.kind",
    direction: "receive",
    summary: "Set a kind.",
    schema: settings.kindRequestSchema,
    answer: settings.kindAnswerSchema,
  },
  {
    name: "resource",
    subject: "operator.resource",
    direction: "receive",
    summary: "Set, or remove, a resource.",
    schema: settings.resourceRequestSchema,
    answer: settings.resourceAnswerSchema,
  },
  {
    name: "rate",
    subject: "operator.rate",
    direction: "receive",
    summary: "Set, or remove, the rate of agents of one type.",
    schema: settings.rateRequestSchema,
    answer: settings.rateAnswerSchema,
  },
  {
    name: "grant",
    subject: "operator.grant",
    direction: "receive",
    summary: "Set, or remove, what a group of agents may do.",
    schema: settings.grantRequestSchema,
    answer: settings.grantAnswerSchema,
  },
  {
    name: "pause",
    subject: "operator.pause",
    direction: "receive",
    summary: "Assign nothing, of a project or at all; what runs goes on.",
    schema: settings.pauseRequestSchema,
    answer: settings.pauseAnswerSchema,
  },
  {
    name: "resume",
    subject: "operator.resume",
    direction: "receive",
    summary: "End a pause.",
    schema: settings.pauseRequestSchema,
    answer: settings.pauseAnswerSchema,
  },
  {
    name: "hold",
    subject: "operator.hold",
    direction: "receive",
    summary: "Put an agent, all agents of a type, or a resource on hold.",
    schema: settings.holdRequestSchema,
    answer: settings.holdAnswerSchema,
  },
  {
    name: "unhold",
    subject: "operator.unhold",
    direction: "receive",
    summary: "End a hold.",
    schema: settings.unholdRequestSchema,
    answer: settings.removedAnswerSchema,
  },
  {
    name: "owner-set",
    subject: "project.{project}.set",
    direction: "receive",
    summary: "Set a project, as its owner.",
    schema: settings.ownerSetRequestSchema,
    answer: settings.projectSetAnswerSchema,
  },
  {
    name: "owner-pause",
    subject: "project.{project}.pause",
    direction: "receive",
    summary: "Assign nothing of the project, as its owner.",
    schema: settings.ownerPauseRequestSchema,
    answer: settings.pauseAnswerSchema,
  },
  {
    name: "owner-resume",
    subject: "project.{project}.resume",
    direction: "receive",
    summary: "End a pause of the project, as its owner.",
    schema: settings.ownerPauseRequestSchema,
    answer: settings.pauseAnswerSchema,
  },
  {
    name: "join",
    subject: "agent.{group}.{agent}.join",
    direction: "receive",
    summary: "Begin a life, or resume one.",
    schema: schemas.joinRequestSchema,
    answer: schemas.joinResponseSchema,
  },
  {
    name: "leave",
    subject: "agent.{group}.{agent}.leave",
    direction: "receive",
    summary: "End a life; what is open runs elsewhere.",
    schema: schemas.leaveRequestSchema,
    answer: schemas.okResponseSchema,
  },
  {
    name: "heartbeat",
    subject: "agent.{group}.{agent}.heartbeat",
    direction: "receive",
    summary: "Each second. With a reply subject, the answer renews the leases it listed.",
    schema: schemas.heartbeatSchema,
    answer: schemas.heartbeatResponseSchema,
  },
  {
    name: "progress",
    subject: "agent.{group}.{agent}.progress",
    direction: "receive",
    summary: "Published; resets the stall limit.",
    schema: schemas.progressSchema,
  },
  {
    name: "chunk",
    subject: "agent.{group}.{agent}.chunk",
    direction: "receive",
    summary: "Published; parts of a result, for a task with `stream`.",
    schema: schemas.chunksSchema,
  },
  {
    name: "result",
    subject: "agent.{group}.{agent}.result",
    direction: "receive",
    summary: "How attempts ended; repeated until answered.",
    schema: schemas.resultRequestSchema,
    answer: schemas.resultResponseSchema,
  },
  {
    name: "acquire",
    subject: "agent.{group}.{agent}.acquire",
    direction: "receive",
    summary: "Acquire slots of resources; a wait ends with a push.",
    schema: slots.acquireRequestSchema,
    answer: slots.acquireResponseSchema,
  },
  {
    name: "touch",
    subject: "agent.{group}.{agent}.touch",
    direction: "receive",
    summary: "Start the idle time of held slots anew.",
    schema: slots.touchRequestSchema,
    answer: slots.touchResponseSchema,
  },
  {
    name: "release",
    subject: "agent.{group}.{agent}.release",
    direction: "receive",
    summary: "Give slots back, or give up waiting for them.",
    schema: slots.releaseRequestSchema,
    answer: slots.releaseResponseSchema,
  },
  {
    name: "assign",
    subject: "agent.{group}.{agent}.assign",
    direction: "send",
    summary: "What the leader tells an agent.",
    schema: schemas.agentPushSchema,
  },
  {
    name: "log",
    subject: "agent.{group}.{agent}.log",
    direction: "send",
    summary: "The leader asks for what attempts wrote. Optional for an agent.",
    schema: logs.logRequestSchema,
    answer: logs.heldLogsSchema,
  },
  {
    name: "done",
    subject: "{notify}.done",
    direction: "send",
    summary: "How awaited tasks ended.",
    schema: schemas.donePushSchema,
  },
  {
    name: "client-progress",
    subject: "{notify}.progress",
    direction: "send",
    summary: "Progress of awaited tasks.",
    schema: schemas.progressPushSchema,
  },
  {
    name: "client-chunk",
    subject: "{notify}.chunk",
    direction: "send",
    summary: "Parts of the results of awaited tasks.",
    schema: schemas.chunksPushSchema,
  },
  {
    name: "event",
    subject: "event.{project}.{noun}.{verb}",
    direction: "send",
    summary: "The live audit stream.",
    schema: schemas.eventPushSchema,
  },
  {
    name: "coordinator",
    subject: "coordinator",
    direction: "send",
    summary: "Coordinators say that they are here.",
    schema: schemas.coordinatorHeartbeatSchema,
  },
];

/** Shapes inside messages, documented separately. */
const parts: Readonly<Record<string, z.ZodType>> = {
  task: schemas.taskInputSchema,
  "cancel-item": schemas.cancelItemSchema,
  "retry-item": schemas.retryItemSchema,
  "revoke-item": schemas.revokeItemSchema,
  "reschedule-item": schemas.rescheduleItemSchema,
  result: schemas.resultSchema,
  "swarm-metrics": schemas.swarmMetricsSchema,
  observed: schemas.observedSchema,
  "resource-status": slots.resourceStatusSchema,
  "listed-slots": slots.listedSlotsSchema,
  "attempt-text": logs.attemptTextSchema,
  "listed-task": lists.listedTaskSchema,
  assignment: schemas.assignmentSchema,
  outcome: schemas.outcomeSchema,
  obstacle: explain.obstacleSchema,
  "slot-standing": explain.slotStandingSchema,
  "agent-standing": explain.agentStandingSchema,
  error: schemas.codedErrorSchema,
};

type JsonSchema = Record<string, unknown> & {
  readonly properties?: Record<string, JsonSchema>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
};

function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { unrepresentable: "any", io: "input" });
  return rest as JsonSchema;
}

function table(schema: z.ZodType): string {
  const root = jsonSchema(schema);
  const variants = root.anyOf ?? root.oneOf ?? [root];
  if (variants.length > 1 && variants.every(({ properties }) => properties?.["reason"]?.const !== undefined))
    return reasonTable(variants);
  const isRefusal = (variant: JsonSchema) =>
    variants.length > 1 && variant.properties?.["ok"]?.const === false;
  const shown = variants.filter((variant) => !isRefusal(variant)).map(variantTable);
  return [...shown, ...(shown.length < variants.length ? ["Or an error."] : [])].join("\n\n");
}

/** Of a union by `reason`: a row each. */
function reasonTable(variants: readonly JsonSchema[]): string {
  const rows = variants.map(({ properties = {}, required = [] }) => {
    const { reason, ...facts } = properties;
    const named = Object.entries(facts).map(
      ([name, field]) => `\`${name}\`${required.includes(name) ? "" : "?"} ${typeOf(field)}`,
    );
    return `| \`${reason?.const as string}\` | ${named.join(", ")} |`;
  });
  return ["| reason | with |", "|---|---|", ...rows].join("\n");
}

function variantTable({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties)
    .filter(([name]) => name !== "v")
    .map(
      ([name, field]) =>
        `| \`${name}\` | ${required.includes(name) ? "yes" : ""} | ${typeOf(field)} | ${notes(field)} |`,
    );
  return ["| field | required | type | |", "|---|---|---|---|", ...rows].join("\n");
}

function typeOf(field: JsonSchema): string {
  if (field.const !== undefined) return `\`${JSON.stringify(field.const)}\``;
  if (field.enum !== undefined) return field.enum.map((value) => `\`${JSON.stringify(value)}\``).join(", ");
  const variants = field.anyOf ?? field.oneOf;
  if (variants !== undefined) return [...new Set(variants.map(typeOf))].join(" or ");
  if (field.type === "array") return `array of ${field.items === undefined ? "any" : typeOf(field.items)}`;
  if (field.type === "object" && field.properties !== undefined)
    return `{${Object.keys(field.properties).join(", ")}}`;
  return field.type ?? "any";
}

function notes(field: JsonSchema): string {
  const facts: string[] = [];
  if (typeof field["description"] === "string") facts.push(field["description"]);
  const bounded = field.anyOf?.find(({ type }) => type !== "null") ?? field;
  const { minimum, maximum, maxLength, maxItems } = bounded as Record<string, number | undefined>;
  if (minimum !== undefined && minimum > -1e15) facts.push(`≥ ${minimum}`);
  if (maximum !== undefined && maximum < 1e15) facts.push(`≤ ${maximum}`);
  if (maxLength !== undefined) facts.push(`at most ${maxLength} characters`);
  if (maxItems !== undefined) facts.push(`at most ${maxItems}`);
  return facts.join("; ").replaceAll("|", "\\|");
}

/** The page with every `<!-- table NAME -->…<!-- end -->` filled anew. */
function filledPage(page: string): string {
  return page.replace(/<!-- table ([a-z-]+) -->[\s\S]*?<!-- end -->/g, (_, name: string) => {
    const message = messages.find((each) => each.name === name.replace(/-answer$/, ""));
    const schema = parts[name] ?? (name.endsWith("-answer") ? message?.answer : message?.schema);
    if (schema === undefined)
      throw new Error(`docs/protocol.md asks for a table of ${name}, which is no message`);
    return `<!-- table ${name} -->\n\n${table(schema)}\n\n<!-- end -->`;
  });
}

function asyncApi(): string {
  const channels: Record<string, unknown> = {};
  const operations: Record<string, unknown> = {};
  const componentMessages: Record<string, unknown> = {};
  for (const { name, subject, direction, summary, schema, answer } of messages) {
    // Pushes to a client go below the client's inbox, outside of the swarm's subjects.
    const address = subject.startsWith("{notify}") ? subject : `waggle.v1.{swarm}.${subject}`;
    const parameters = [...address.matchAll(/\{([a-z]+)\}/g)].map(([, parameter]) => parameter as string);
    channels[name] = {
      address,
      parameters: Object.fromEntries(parameters.map((parameter) => [parameter, {}])),
      messages: { [name]: { $ref: `#/components/messages/${name}` } },
    };
    componentMessages[name] = { summary, contentType: "application/json", payload: jsonSchema(schema) };
    if (answer !== undefined)
      componentMessages[`${name}-answer`] = { contentType: "application/json", payload: jsonSchema(answer) };
    operations[name] = {
      action: direction,
      summary,
      channel: { $ref: `#/channels/${name}` },
      ...(answer === undefined ? {} : { "x-answer": { $ref: `#/components/messages/${name}-answer` } }),
    };
  }
  for (const [name, schema] of Object.entries(parts))
    componentMessages[`part-${name}`] = { payload: jsonSchema(schema) };
  const document = {
    asyncapi: "3.0.0",
    info: { title: "Waggle wire protocol", version: "1.0.0", description: "See protocol.md for the rules." },
    defaultContentType: "application/json",
    channels,
    operations,
    components: { messages: componentMessages },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function settle(path: string, wanted: string, isCheck: boolean): boolean {
  let present = "";
  try {
    present = readFileSync(path, "utf8");
  } catch {
    present = ""; // not written yet: stale
  }
  if (present === wanted) return true;
  if (isCheck) console.error(`${path} is stale: run \`npm run docs:protocol\``);
  else writeFileSync(path, wanted);
  return !isCheck;
}

const page = fileURLToPath(new URL("../docs/protocol.md", import.meta.url));
const document = fileURLToPath(new URL("../docs/asyncapi.json", import.meta.url));
const isCheck = process.argv.includes("--check");
const settled = [
  settle(page, filledPage(readFileSync(page, "utf8")), isCheck),
  settle(document, asyncApi(), isCheck),
];
process.exitCode = settled.every(Boolean) ? 0 : 1;
