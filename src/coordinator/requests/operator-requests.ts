// From a message on `operator.<verb>` to a command, and from what was decided of it to the answer. One request a
// setting; nothing here knows what a setting means. Not here: the other requests (requests.ts).

import type { z } from "zod";
import type { Command, Reply } from "../../core/command.ts";
import type { RatePatch } from "../../core/settings-patch.ts";
import { type Decoded, decode, encode, invalid } from "../../protocol/codec.ts";
import { agentRequestSchema, transferRequestSchema } from "../../protocol/schemas.ts";
import {
  kindRequestSchema,
  pauseRequestSchema,
  policyRequestSchema,
  projectRequestSchema,
  rateRequestSchema,
  resourceRequestSchema,
} from "../../protocol/settings-schemas.ts";
import { isOperatorVerb, type OperatorVerb } from "../../protocol/subjects.ts";
import { codedError, unknownProject } from "./answers.ts";
import type { Commit } from "./inbox.ts";
import type { RequestEdge } from "./request-edge.ts";

/** Takes one message of `verb`, to be answered on `reply`. */
export function takeOperator(verb: string, data: Uint8Array, reply: string, edge: RequestEdge): void {
  if (!isOperatorVerb(verb)) return edge.refuse(reply, invalid(`operator: there is no verb ${verb}`));
  if (verb === "transfer") return takeTransfer(data, reply, edge);
  const command = commandOf[verb](data);
  if (!command.ok) return edge.refuse(reply, command);
  edge.enqueue(reply, {
    commands: [command.value],
    replies: [],
    finish(commit) {
      edge.target.send(reply, encode(operatorAnswer(this.replies.at(-1), commit)));
    },
  });
}

function takeTransfer(data: Uint8Array, reply: string, edge: RequestEdge): void {
  const request = decode(data, transferRequestSchema);
  if (!request.ok) return edge.refuse(reply, request);
  const { of, to } = request.value;
  const answer = (message: object) => edge.target.send(reply, encode(message));
  if (!edge.target.transfer({ of, to, answer })) edge.refuseFull(reply);
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
      const patch = { window, ...rest } as RatePatch; // without a window it is refused by name (next-settings.ts)
      return { type: "SetRate", agentType, patch };
    }),
    pause: reading(pauseRequestSchema, ({ project }) => ({
      type: "Pause",
      ...(project === undefined ? {} : { project }),
    })),
    resume: reading(pauseRequestSchema, ({ project }) => ({
      type: "Resume",
      ...(project === undefined ? {} : { project }),
    })),
  };

function reading<Schema extends z.ZodType>(schema: Schema, toCommand: (request: z.infer<Schema>) => Command) {
  return (data: Uint8Array): Decoded<Command> => {
    const request = decode(data, schema);
    return request.ok ? { ok: true, value: toCommand(request.value) } : request;
  };
}

function operatorAnswer(reply: Reply | undefined, { term, idx }: Commit): object {
  switch (reply?.kind) {
    case "unknown-agent": {
      const sentence = `agent ${reply.agent} is not online here: see \`waggle status\``;
      return codedError("WAGGLE_UNKNOWN_AGENT", sentence, { field: "agent" });
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
