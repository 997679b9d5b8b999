// The agent card of a swarm: its served kinds as skills.

import type { AgentCard } from "@a2a-js/sdk";

export interface CardOptions {
  /** At least one. */
  readonly kinds: readonly string[];
  readonly swarm: string;
  /** Where clients send requests. */
  readonly url: string;
  readonly version: string;
  /** Requests need a token. */
  readonly isGuarded: boolean;
}

const modes = ["text/plain", "application/json", "application/octet-stream"];

export function cardOf({ kinds, swarm, url, version, isGuarded }: CardOptions): AgentCard {
  const requirement = { schemes: { bearer: { list: [] } } };
  return {
    name: `waggle-${swarm}`,
    description: `Tasks of the swarm ${swarm}: a message becomes a task, and its result an artifact.`,
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
    provider: undefined,
    version,
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: isGuarded
      ? {
          bearer: {
            scheme: {
              $case: "httpAuthSecurityScheme",
              value: { description: "", scheme: "Bearer", bearerFormat: "" },
            },
          },
        }
      : {},
    securityRequirements: isGuarded ? [requirement] : [],
    ...{ defaultInputModes: modes, defaultOutputModes: modes },
    skills: kinds.map((kind) => ({
      ...{ id: kind, name: kind, tags: ["waggle"], examples: [], inputModes: [], outputModes: [] },
      description: `Runs a task of kind ${kind}. With several skills, name the skill in the request: metadata.skill.`,
      securityRequirements: [],
    })),
    signatures: [],
  };
}
