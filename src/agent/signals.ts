// Where the signals of an agent's chart come from, and what they mean.

import type { Observable } from "rxjs";
import { type EventObject, fromCallback } from "xstate";
import type { AgentSignal } from "../../machines/agent.ts";
import { WaggleError, type WaggleErrorCode } from "../errors.ts";
import type { CodedError } from "../protocol/schemas.ts";
import type { AbortReason } from "./link.ts";

/** An actor of the chart that sends the signals of an observable, and FAILED when the observable fails. */
export function signalling<Input>(signals$: (input: Input) => Observable<AgentSignal>) {
  return fromCallback<EventObject, Input>(({ input, sendBack }) => {
    const running = signals$(input).subscribe({
      next: sendBack,
      error: (error: unknown) => sendBack({ type: "FAILED", error }),
    });
    return () => running.unsubscribe();
  });
}

/** The signal for a refusal of the agent. Codes of a later version pass through unchanged. */
export function signalOfRefusal({ code, message, field, newest }: CodedError): AgentSignal {
  if (code === "WAGGLE_FENCED") return { type: "FENCED" };
  if (code === "WAGGLE_UNKNOWN_AGENT")
    return { type: "LAPSED", why: newest === undefined ? "the leader does not know the agent" : message };
  const sentence = code === "WAGGLE_FORBIDDEN" ? message : `the leader refuses this agent: ${message}`;
  const error = new WaggleError(code as WaggleErrorCode, sentence, field === undefined ? {} : { field });
  return { type: "FAILED", error };
}

/** Reason for aborting the running attempts on a signal. */
export function abortReasonOf({ type }: AgentSignal): AbortReason {
  if (type === "LAPSED") return "lapsed";
  return type === "FENCED" ? "fenced" : "stopping";
}
