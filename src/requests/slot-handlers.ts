// Handlers of `agent.<g>.<a>.acquire`, `.touch` and `.release`: from a message to a command, and from a reply to an
// answer. Not here: decisions (core/decide-slot.ts), and pushes (outbox.ts).

import type { Command, CommandOf, Reply, ReportedSlotRefusal } from "../core/command.ts";
import { counted, formatCount } from "../count-text.ts";
import { headOf } from "../cut-text.ts";
import type { AgentId, Incarnation } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode } from "../protocol/codec.ts";
import type { CodedError } from "../protocol/schemas.ts";
import {
  type AcquireResponse,
  acquireRequestSchema,
  releaseRequestSchema,
  type SlotRefusalClaim,
  touchRequestSchema,
} from "../protocol/slot-schemas.ts";
import { thousandthsPerWeight } from "../state/weight.ts";
import type { Message } from "../transport/transport.ts";
import {
  beyondGrant,
  budgetExceeded,
  budgetOwners,
  codedError,
  suggestion,
  unexpected,
  unknownProject,
} from "./answers.ts";
import type { Commit } from "./inbox.ts";
import type { Intake } from "./intake.ts";

type AcquireSlots = CommandOf<"AcquireSlots">;

export class SlotHandlers {
  readonly #intake: Intake;
  readonly #heard: (agent: AgentId, incarnation: Incarnation) => void;

  /** @param heard notes a living agent */
  constructor(intake: Intake, heard: (agent: AgentId, incarnation: Incarnation) => void) {
    this.#intake = intake;
    this.#heard = heard;
  }

  acquire(agent: AgentId, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, acquireRequestSchema));
    if (request === undefined) return;
    const { v: _, weight = 1, timeoutMs, ...asked } = request.body;
    const command: AcquireSlots = {
      type: "AcquireSlots",
      agent,
      ...present(asked),
      weightThousandths: Math.round(weight * thousandthsPerWeight),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    this.#decide(request.reply, command, acquireAnswer);
  }

  release(agent: AgentId, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, releaseRequestSchema));
    if (request === undefined) return;
    const { incarnation, handle, usage, refused, unanswered } = request.body;
    const command: CommandOf<"ReleaseSlots"> = {
      type: "ReleaseSlots",
      agent,
      incarnation,
      handle,
      ...(usage === undefined ? {} : { usage: present(usage) }),
      ...(refused === undefined ? {} : { refusal: refusalIn(refused) }),
      ...(unanswered === undefined ? {} : { unanswered }),
    };
    this.#decide(request.reply, command, releaseAnswer);
  }

  touch(agent: AgentId, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, touchRequestSchema));
    if (request === undefined) return;
    const { incarnation, handle } = request.body;
    this.#decide(request.reply, { type: "TouchSlots", agent, incarnation, handle }, touchAnswer);
  }

  #decide(
    reply: string,
    command: Extract<Command, { type: "AcquireSlots" | "ReleaseSlots" | "TouchSlots" }>,
    answerOf: (reply: Reply, commit: Commit) => object,
  ): void {
    this.#heard(command.agent, command.incarnation);
    this.#intake.decide({
      reply,
      commands: [command],
      answer: ([decided], commit) => answerOf(decided ?? { kind: "none" }, commit),
    });
  }
}

/** The type of an object as a schema reads it: absent fields are left out, never undefined. */
type Present<Value extends object> = { [Name in keyof Value]: Exclude<Value[Name], undefined> };

function present<Value extends object>(read: Value): Present<Value> {
  return read as Present<Value>;
}

function refusalIn(refused: SlotRefusalClaim): ReportedSlotRefusal {
  const { reason, ...rest } = present(refused);
  return { ...rest, ...(reason === undefined ? {} : { reason: headOf(reason, limits.errorCharactersMax) }) };
}

/** A message of an ended session is refused. Other answers concern the slot lease. */
function acquireAnswer(reply: Reply, { term, idx }: Commit): AcquireResponse {
  if (reply.kind === "session-over") return sessionOver(reply.agent);
  return { term, idx, answer: slotLeaseAnswer(reply) };
}

function slotLeaseAnswer(reply: Reply): { ok: true; state: "granted" | "waiting" } | CodedError {
  switch (reply.kind) {
    case "slot-granted":
      return { ok: true, state: "granted" };
    case "slot-awaited":
      return { ok: true, state: "waiting" };
    case "slot-ended":
      return endedAnswer(reply);
    case "slot-on-hold":
      return onHold(reply);
    case "beyond-grant":
      return beyondGrant(reply);
    case "handle-in-use":
      return codedError(
        "WAGGLE_CONFLICT",
        `handle ${reply.handle} was used before for another request (resources, weight, holder or terms): use another`,
        { field: "handle" },
      );
    case "unknown-resource":
      return codedError(
        "WAGGLE_UNKNOWN_RESOURCE",
        `there is no resource ${reply.resource}${suggestion(reply.nearMisses)}; an operator sets one with ` +
          `\`waggle resource set ${reply.resource} --slots N\`, or opens all with \`waggle policy set --resources open\``,
        { field: "resources" },
      );
    case "above-capacity":
      return codedError(
        "WAGGLE_ABOVE_CAPACITY",
        `${reply.resource} has ${counted(reply.slots, "slot")}, and ${counted(reply.wanted, "slot")} of it could never be granted: ask for fewer, or have an operator add some`,
        { field: "resources" },
      );
    case "out-of-order":
      return codedError(
        "WAGGLE_ACQUIRE_ORDER",
        `${reply.resource} cannot be acquired while ${reply.held} is held: two who wait for each other would wait for ever. Acquire both at once, or in name order, or say with \`holder\` which line of work each is for`,
        { field: "resources" },
      );
    case "too-many-waiters":
      return codedError(
        "WAGGLE_BACKPRESSURE",
        `${reply.resource} has ${counted(reply.maxWaiters, "request")} waiting, the maximum: try again later, or allow more with ` +
          `\`waggle resource set ${reply.resource} --max-waiters N\``,
        { field: "resources", retryAfterMs: reply.retryAfterMs },
      );
    case "too-many-slot-leases":
      return codedError(
        "WAGGLE_BACKPRESSURE",
        `the agent holds or waits for ${limits.slotLeasesPerAgentMax} slot leases, and may not more: release some`,
        { retryAfterMs: reply.retryAfterMs },
      );
    case "unknown-project":
      return unknownProject(reply.project);
    case "over-budget":
      return codedError(
        "WAGGLE_OVER_BUDGET",
        `tokens: ${formatCount(reply.tokens)} tokens are asked for, and the ${budgetOwners[reply.reason]}'s budget holds ` +
          `${formatCount(reply.tokensMax)} in a window: the slot could never be granted. Ask for fewer, or raise the budget`,
        { field: "tokens" },
      );
    case "over-rate":
      return codedError(
        "WAGGLE_OVER_BUDGET",
        `tokens: ${formatCount(reply.tokens)} tokens are asked for, and the rate of type ${reply.agentType} permits ` +
          `${formatCount(reply.tokensMax)} ${reply.window.replace("_", " ")}: the slot could never be granted. Ask for fewer, or raise ` +
          `the rate with \`waggle rate set ${reply.agentType} --window ${reply.window} --tokens N\``,
        { field: "tokens" },
      );
    case "budget-exceeded":
      return budgetExceeded(reply, "this request");
    case "table-full":
      return codedError(
        "WAGGLE_BACKPRESSURE",
        `${reply.name} would be new, and there are ${formatCount(reply.max)} ${reply.of}, the maximum: ` +
          (reply.of === "resources"
            ? "remove some with `waggle resource remove`"
            : "name an existing set, or try again when some sets have no work"),
        { field: reply.of === "resources" ? "resources" : "project", retryAfterMs: limits.retryAfterMs },
      );
    default:
      return unexpected(reply);
  }
}

function onHold({ resource, until }: Extract<Reply, { kind: "slot-on-hold" }>): CodedError {
  return codedError(
    "WAGGLE_ON_HOLD",
    `${resource} is on hold until ${new Date(until).toISOString()}, and the request may not wait for so long: ` +
      `do without, or try again then; \`waggle unhold resource ${resource}\` ends the hold now`,
    { field: "resources", hold: { resource, until } },
  );
}

function endedAnswer({ handle, reason }: Extract<Reply, { kind: "slot-ended" }>): CodedError {
  switch (reason) {
    case "timed-out":
      return codedError("WAGGLE_ACQUIRE_TIMED_OUT", "the time to wait for the slot is over: nothing is held");
    case "above-capacity":
      return codedError(
        "WAGGLE_ABOVE_CAPACITY",
        "an operator left fewer slots than it asked for: ask for fewer, or have some added, under another handle",
        { field: "resources" },
      );
    default:
      return codedError(
        "WAGGLE_HANDLE_ENDED",
        `handle ${handle} has ended before (${reason}): acquire under another`,
        { field: "handle" },
      );
  }
}

function releaseAnswer(reply: Reply, { term, idx }: Commit): object {
  switch (reply.kind) {
    case "slot-released":
      return { ok: true, term, idx, was: reply.was };
    case "slot-ended":
      return { ok: true, term, idx, was: "ended", reason: reply.reason };
    default:
      return refusedHandle(reply);
  }
}

function touchAnswer(reply: Reply, { term, idx }: Commit): object {
  switch (reply.kind) {
    case "slot-granted":
      return { ok: true, term, idx, state: "held" };
    case "slot-awaited":
      return { ok: true, term, idx, state: "waiting" };
    case "slot-ended":
      return { ok: true, term, idx, state: "ended", reason: reply.reason };
    default:
      return refusedHandle(reply);
  }
}

function refusedHandle(reply: Reply): CodedError {
  switch (reply.kind) {
    case "unknown-handle":
      return unknownHandle(reply.handle);
    case "session-over":
      return sessionOver(reply.agent);
    default:
      return unexpected(reply);
  }
}

function unknownHandle(handle: string): CodedError {
  return codedError(
    "WAGGLE_UNKNOWN_HANDLE",
    `handle ${handle} is not known here: nothing was ever acquired under it, or it ended very long ago`,
    { field: "handle" },
  );
}

function sessionOver(agent: AgentId): CodedError {
  return codedError(
    "WAGGLE_UNKNOWN_AGENT",
    `this session of agent ${agent} is over, or never began: join, and acquire again`,
    { field: "incarnation" },
  );
}
