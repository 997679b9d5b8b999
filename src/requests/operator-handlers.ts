// Handlers of `operator.<verb>`: from a message to a command, and from a reply to an answer. One request changes one
// setting. Not here: the meaning of settings (core/).

import type { z } from "zod";
import type { Command, Reply } from "../core/command.ts";
import type { RatePatch } from "../core/settings-patch.ts";
import { type Decoded, decode, invalid } from "../protocol/codec.ts";
import { agentRequestSchema, transferRequestSchema } from "../protocol/schemas.ts";
import {
  grantRequestSchema,
  holdRequestSchema,
  kindRequestSchema,
  pauseRequestSchema,
  policyRequestSchema,
  projectRequestSchema,
  rateRequestSchema,
  resourceRequestSchema,
  unholdRequestSchema,
} from "../protocol/settings-schemas.ts";
import { isOperatorVerb, type OperatorVerb } from "../protocol/subjects.ts";
import type { Grant } from "../state/grant.ts";
import type { Message } from "../transport/transport.ts";
import { codedError, suggestion, unknownProject } from "./answers.ts";
import type { Commit } from "./inbox.ts";
import type { Intake, LeaderParts } from "./intake.ts";

export class OperatorHandlers {
  readonly #intake: Intake;
  readonly #transfer: LeaderParts["transfer"];

  constructor(intake: Intake, { transfer }: LeaderParts) {
    this.#intake = intake;
    this.#transfer = transfer;
  }

  take([verb = ""]: readonly string[], message: Message): void {
    const { reply } = message;
    if (reply === undefined) return this.#intake.count("no-reply");
    if (!isOperatorVerb(verb))
      return this.#intake.refuse(reply, invalid(`operator: there is no verb ${verb}`));
    if (verb === "transfer") return this.#takeTransfer(message);
    const request = this.#intake.read(message, commandOf[verb]);
    if (request === undefined) return;
    this.#intake.decide({
      reply: request.reply,
      commands: [request.body],
      answer: ([decided], commit) => operatorAnswer(decided, commit),
    });
  }

  #takeTransfer(message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, transferRequestSchema));
    if (request === undefined) return;
    const { reply } = request;
    const { of, to } = request.body;
    const isQueued = this.#transfer({ of, to, answer: (answer) => this.#intake.send(reply, answer) });
    if (!isQueued) this.#intake.refuseFull(reply);
  }
}

const commandOf: Readonly<Record<Exclude<OperatorVerb, "transfer">, (data: Uint8Array) => Decoded<Command>>> =
  {
    drain: reading(agentRequestSchema, ({ agent }) => ({ type: "DrainAgent", agent })),
    undrain: reading(agentRequestSchema, ({ agent }) => ({ type: "UndrainAgent", agent })),
    policy: reading(policyRequestSchema, ({ v: _, ...patch }) => ({ type: "SetPolicy", patch })),
    project: reading(projectRequestSchema, ({ v: _, project, remove, ...patch }) =>
      remove === true ? { type: "RemoveProject", project } : { type: "SetProject", project, patch },
    ),
    kind: reading(kindRequestSchema, ({ v: _, kind, ...patch }) => ({ type: "SetKind", kind, patch })),
    resource: reading(resourceRequestSchema, ({ v: _, resource, remove, ...patch }) =>
      remove === true ? { type: "RemoveResource", resource } : { type: "SetResource", resource, patch },
    ),
    rate: reading(rateRequestSchema, ({ v: _, type: agentType, remove, window, ...rest }) => {
      if (remove === true)
        return { type: "RemoveRate", agentType, ...(window === undefined ? {} : { window }) };
      const patch = { window, ...rest } as RatePatch; // refused by name without a window (next-settings.ts)
      return { type: "SetRate", agentType, patch };
    }),
    grant: reading(
      grantRequestSchema,
      ({ group, grant }) =>
        grant === null ? { type: "RemoveGrant", group } : { type: "SetGrant", group, grant: grant as Grant }, // optional fields are absent, never undefined
    ),
    pause: reading(pauseRequestSchema, ({ project }) => ({
      type: "Pause",
      ...(project === undefined ? {} : { project }),
    })),
    resume: reading(pauseRequestSchema, ({ project }) => ({
      type: "Resume",
      ...(project === undefined ? {} : { project }),
    })),
    hold: reading(holdRequestSchema, ({ on, name, forMs, until, lengthen }) => ({
      type: "PlaceHold",
      on,
      name,
      ...(forMs === undefined ? {} : { forMs }),
      ...(until === undefined ? {} : { until }),
      ...(lengthen === undefined ? {} : { lengthen }),
    })),
    unhold: reading(unholdRequestSchema, ({ on, name }) => ({ type: "EndHold", on, name })),
  };

function reading<Schema extends z.ZodType>(schema: Schema, toCommand: (request: z.infer<Schema>) => Command) {
  return (data: Uint8Array): Decoded<Command> => {
    const request = decode(data, schema);
    return request.ok ? { ok: true, value: toCommand(request.value) } : request;
  };
}

export function operatorAnswer(reply: Reply | undefined, { term, idx }: Commit): object {
  switch (reply?.kind) {
    case "agent-not-online": {
      const sentence = `agent ${reply.agent} is not online here: see \`waggle status\``;
      return codedError("WAGGLE_UNKNOWN_AGENT", sentence, { field: "agent" });
    }
    case "unknown-agent": {
      const sentence = `there is no agent ${reply.agent}${suggestion(reply.nearMisses)}`;
      return codedError("WAGGLE_UNKNOWN_AGENT", sentence, { field: "name" });
    }
    case "invalid-setting":
      return codedError("WAGGLE_INVALID_VALUE", reply.sentence, { field: reply.field });
    case "project-in-use": {
      const tasks = reply.live === 1 ? "1 task that has" : `${reply.live} tasks that have`;
      const sentence = `project ${reply.project} has ${tasks} not ended, and stays: wait until all have ended, or cancel them, and remove it then`;
      return codedError("WAGGLE_CONFLICT", sentence, { field: "project" });
    }
    case "resource-in-use":
      return codedError("WAGGLE_CONFLICT", inUseText(reply), { field: "resource" });
    case "unknown-project":
      return unknownProject(reply.project);
    case "set": {
      const { kind: _, ...setting } = reply;
      return { ok: true, term, idx, ...setting };
    }
    default:
      return { ok: true, term, idx };
  }
}

function inUseText({ resource, inUse, waiting }: Extract<Reply, { kind: "resource-in-use" }>): string {
  const held = `${inUse} ${inUse === 1 ? "slot is" : "slots are"} held`;
  const awaited = `${waiting} ${waiting === 1 ? "request waits" : "requests wait"}`;
  return (
    `resource ${resource} is in use, and stays: ${held}, ${awaited}. Stop what acquires it (\`waggle status\` ` +
    "names the agents), or wait until nothing does, and remove it then"
  );
}
