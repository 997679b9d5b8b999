// The health of a swarm that may not answer: an error of the question is a finding too.

import { type Health, type HealthFinding, healthOf, healthWithoutAnswer } from "../audit/health.ts";
import { NoBrokerError, WaggleError } from "../errors.ts";
import type { StatusResponse } from "../protocol/schemas.ts";

/** A missing leader and an unreachable server are findings. @throws all other errors of `ask` */
export async function healthFrom(ask: () => Promise<StatusResponse>): Promise<Health> {
  try {
    return healthOf(await ask());
  } catch (error) {
    const finding = absence(error);
    if (finding === undefined) throw error;
    return healthWithoutAnswer(finding);
  }
}

/** The finding for a missing leader or an unreachable server; undefined for other errors. */
function absence(error: unknown): HealthFinding | undefined {
  if (!(error instanceof WaggleError)) return undefined;
  if (error.code === "WAGGLE_NO_LEADER")
    return {
      ...{ area: "liveness", rule: "no-leader", level: "critical", evidence: {} },
      text: "no coordinator leads: nothing is accepted, and no task is assigned",
      next: "waggle up",
    };
  if (error.code === "WAGGLE_UNREACHABLE" || error.code === "WAGGLE_BROKER")
    return {
      ...{ area: "liveness", rule: "unreachable", level: "critical" },
      text: error.message,
      evidence: {},
      next: error instanceof NoBrokerError ? "waggle up" : "waggle doctor",
    };
  return undefined;
}
