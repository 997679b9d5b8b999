// The answer of an A2A agent so far: the remote task, the artifacts, and the end.

import { Buffer } from "node:buffer";
import { type Message, Part, type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import type { HandlerContext } from "../../agent/handler.ts";
import { headOf } from "../../cut-text.ts";
import { limits } from "../../limits.ts";

export type RemoteEnd =
  | { readonly kind: "completed"; readonly value: unknown }
  | { readonly kind: "failed"; readonly says: string }
  | { readonly kind: "input-required"; readonly says: string };

type Reporting = Pick<HandlerContext, "progress" | "emit">;

/** Each `take` returns the end, or undefined while the task goes on. */
export class RemoteResult {
  /** Id of the remote task; undefined until the agent named the task. */
  taskId: string | undefined;
  isTooLarge = false;
  readonly #context: Reporting;
  readonly #isStreamed: boolean;
  readonly #partsByArtifact = new Map<string, Part[]>();

  constructor(context: Reporting, isStreamed: boolean) {
    this.#context = context;
    this.#isStreamed = isStreamed;
  }

  /** @throws Error when the answer is too large */
  take({ payload }: StreamResponse): RemoteEnd | undefined {
    switch (payload?.$case) {
      case "message":
        return this.takeMessage(payload.value);
      case "task":
        return this.takeTask(payload.value);
      case "statusUpdate":
        this.taskId ??= payload.value.taskId;
        return this.#endOf(payload.value.status);
      case "artifactUpdate": {
        const { taskId, artifact, append } = payload.value;
        this.taskId ??= taskId;
        if (artifact !== undefined) this.#keep(artifact.artifactId, artifact.parts, append);
        return undefined;
      }
      default:
        return undefined; // of a later version
    }
  }

  takeMessage({ parts }: Message): RemoteEnd {
    this.#keep("message", parts, false);
    return { kind: "completed", value: this.#value() };
  }

  takeTask({ id, status, artifacts }: Task): RemoteEnd | undefined {
    this.taskId ??= id;
    for (const { artifactId, parts } of artifacts) this.#keep(artifactId, parts, false);
    return this.#endOf(status);
  }

  #endOf(status: Task["status"]): RemoteEnd | undefined {
    const says = textOf(status?.message);
    switch (status?.state) {
      case TaskState.TASK_STATE_COMPLETED:
        if (this.#partsByArtifact.size === 0 && status.message !== undefined)
          this.#keep("message", status.message.parts, false);
        return { kind: "completed", value: this.#value() };
      case TaskState.TASK_STATE_FAILED:
        return { kind: "failed", says: `the agent failed: ${says || "no reason given"}` };
      case TaskState.TASK_STATE_REJECTED:
        return { kind: "failed", says: `the agent rejected the task: ${says || "no reason given"}` };
      case TaskState.TASK_STATE_CANCELED:
        return { kind: "failed", says: "the task was cancelled at the agent" };
      case TaskState.TASK_STATE_INPUT_REQUIRED:
        return { kind: "input-required", says: says || "no question given" };
      case TaskState.TASK_STATE_AUTH_REQUIRED:
        return { kind: "failed", says: `the agent asks for a sign-in: ${says || "no details given"}` };
      default:
        if (says !== "") this.#context.progress(undefined, says);
        return undefined;
    }
  }

  /** @throws Error */
  #keep(artifactId: string, parts: readonly Part[], append: boolean): void {
    const known = this.#partsByArtifact.get(artifactId);
    this.#partsByArtifact.set(artifactId, append && known !== undefined ? [...known, ...parts] : [...parts]);
    const all = [...this.#partsByArtifact.values()].flat();
    if (all.reduce((sum, part) => sum + bytesOf(part), 0) > limits.payloadBytesMax) {
      this.isTooLarge = true;
      throw new Error(`the agent's answer has more than ${limits.payloadBytesMax / 1024} KiB`);
    }
    if (known === undefined || append) for (const part of parts) this.#emit(part);
  }

  #emit({ content }: Part): void {
    if (!this.#isStreamed || content?.$case !== "text") return;
    for (let rest = content.value; rest !== ""; ) {
      const piece = headOf(rest, PIECE_CHARACTERS);
      this.#context.emit(piece);
      rest = rest.slice(piece.length);
    }
  }

  /** Text as text, a single other part as its value, and anything else as JSON. */
  #value(): unknown {
    const artifacts = [...this.#partsByArtifact];
    const parts = artifacts.flatMap(([, of]) => of);
    const [only] = parts;
    if (only === undefined) return undefined;
    if (parts.every(({ content }) => content?.$case === "text"))
      return artifacts.map(([, of]) => of.map(textIn).join("")).join("\n");
    if (parts.length === 1 && only.content?.$case === "raw") return new Uint8Array(only.content.value);
    if (parts.length === 1 && only.content?.$case === "data") return only.content.value;
    return artifacts.map(([artifactId, of]) => ({ artifactId, parts: of.map((part) => Part.toJSON(part)) }));
  }
}

/** A UTF-16 unit has at most 3 bytes. */
const PIECE_CHARACTERS = Math.floor(limits.chunkBytesMax / 3);

function textIn({ content }: Part): string {
  return content?.$case === "text" ? content.value : "";
}

function textOf(message: Message | undefined): string {
  return (message?.parts ?? []).map(textIn).join(" ").trim();
}

function bytesOf({ content }: Part): number {
  switch (content?.$case) {
    case "text":
    case "url":
      return Buffer.byteLength(content.value);
    case "raw":
      return content.value.length;
    case "data":
      return Buffer.byteLength(JSON.stringify(content.value) ?? "");
    default:
      return 0;
  }
}
