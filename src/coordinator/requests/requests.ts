// From a message on the wire to an entry of the inbox, or straight to a refusal: the edge of the coordinator.
// Whatever does not parse is answered with a coded error that names the field, counted, and changes nothing;
// where no reply is due, or the reply subject is not an inbox, it is dropped and counted.
//
// Here it is only seen whose request it is: a project's, an agent's or an operator's (project-requests.ts,
// agent-requests.ts, operator-requests.ts).

import type { Random } from "../../clock.ts";
import { encode } from "../../protocol/codec.ts";
import { isInbox, type Subjects } from "../../protocol/subjects.ts";
import type { Message } from "../../transport/transport.ts";
import { AgentRequests } from "./agent-requests.ts";
import { codedError } from "./answers.ts";
import { takeOperator } from "./operator-requests.ts";
import { ProjectRequests } from "./project-requests.ts";
import { RequestEdge } from "./request-edge.ts";
import type { RequestTarget } from "./request-target.ts";

export class Requests {
  readonly #prefix: string;
  readonly #target: RequestTarget;
  readonly #edge: RequestEdge;
  readonly #projects: ProjectRequests;
  readonly #agents: AgentRequests;

  constructor(subjects: Subjects, random: Random, target: RequestTarget) {
    this.#prefix = `${subjects.prefix}.`;
    this.#target = target;
    this.#edge = new RequestEdge(target);
    this.#projects = new ProjectRequests(this.#edge, random);
    this.#agents = new AgentRequests(this.#edge, random);
  }

  /** Takes one message from a subject that only a leader serves. Never throws. */
  take(message: Message): void {
    const [party, ...rest] = message.subject.slice(this.#prefix.length).split(".");
    const [id = "", verb = ""] = rest;
    if (message.reply !== undefined && !isInbox(message.reply))
      return this.#target.count("reply-not-an-inbox");
    if (party === "agent") return this.#agents.take(rest, message);
    if (this.#leavesOpen(message.reply)) return;
    if (party === "project") return this.#projects.take(id, verb, message);
    if (party === "operator") return this.#takeOperator(id, message);
    this.#target.count("unknown-subject");
  }

  /** Who asks while nothing can be decided is told why, and asks again; agents ask on by themselves. */
  #leavesOpen(reply: string | undefined): boolean {
    const why = this.#target.stuckReason();
    if (why === undefined || reply === undefined) return false;
    this.#target.count("unanswered");
    this.#target.send(reply, encode(codedError("WAGGLE_UNREACHABLE", why)));
    return true;
  }

  #takeOperator(verb: string, message: Message): void {
    const reply = this.#edge.replyOf(message);
    if (reply !== undefined) takeOperator(verb, message.data, reply, this.#edge);
  }
}
