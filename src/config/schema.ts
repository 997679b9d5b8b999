// What `waggle.config.json` may hold. waggle.schema.json at the top of the tree is generated from here
// (scripts/config-schema.ts), so that editors complete and check the file.
// Not here: where else a setting may come from (settings.ts).

import { z } from "zod";
import { NAME_PATTERN, SUBJECT_TOKEN_PATTERN } from "../ids.ts";
import { limits } from "../limits.ts";
import { durationIn } from "./duration.ts";
import { retentionIn } from "./retention.ts";

const subjectToken = z.string().regex(SUBJECT_TOKEN_PATTERN, "must be 1–64 characters of A–Z a–z 0–9 _ -");

export const logLevels = ["silent", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

function isLeaderTimeout(text: string): boolean {
  const ms = durationIn(text) ?? 0;
  return ms >= limits.leaderTimeoutMsMin && ms <= limits.leaderTimeoutMsMax;
}

/** What JetStream takes. */
const replicasChoices: ReadonlySet<string> = new Set(["1", "2", "3", "4", "5"]);
const replicasSentence = "must be a whole number from 1 to 5: on how many servers the journal is kept";

/** Sets of an unknown name are refused: a misspelt setting must not pass for one that is in force. */
export const configSchema = z
  .strictObject({
    $schema: z.string().optional().describe("Where editors find the schema of this file."),
    nats: z
      .string()
      .min(1)
      .optional()
      .describe(
        "URL of the NATS server, or several with commas between. Without it: the broker of the data folder.",
      ),
    natsContext: z.string().min(1).optional().describe("Name of a context of the nats command-line tool."),
    credentials: z
      .strictObject({
        creds: z.string().min(1).optional().describe("Path of a .creds file."),
        nkey: z.string().min(1).optional().describe("Path of a file with an nkey seed."),
        tls: z
          .strictObject({
            ca: z.string().min(1).optional().describe("Path of the certificate authority's certificate."),
            cert: z.string().min(1).optional().describe("Path of the client's certificate."),
            key: z.string().min(1).optional().describe("Path of the client's key."),
          })
          .optional(),
      })
      .optional()
      .describe("Paths are relative to this file."),
    swarm: subjectToken.optional().describe("Name of the swarm. Default: default."),
    project: subjectToken.optional().describe("Project of what is submitted. Default: default."),
    user: z
      .string()
      .regex(NAME_PATTERN, "must be 1–128 printable characters without spaces")
      .optional()
      .describe("Who submits. Default: the name of the account."),
    dataFolder: z
      .string()
      .min(1)
      .optional()
      .describe("Where the local broker and its journal live, relative to this file. Default: .waggle."),
    leaderTimeout: z
      .string()
      .refine(
        isLeaderTimeout,
        `must be a duration from ${limits.leaderTimeoutMsMin} ms to ${limits.leaderTimeoutMsMax / 1000} s, like 1s`,
      )
      .optional()
      .describe(
        "How long a leader may be silent until another coordinator takes over; of the terms that this coordinator leads. Default: 3s.",
      ),
    replicas: z
      .union([z.int(), z.string()], { error: replicasSentence })
      .refine((replicas) => replicasChoices.has(String(replicas)), replicasSentence)
      .optional()
      .describe("On how many servers JetStream keeps the journal, when up creates it: 1 to 5. Default: 1."),
    retain: z
      .string()
      .refine(
        (text) => retentionIn(text) !== undefined,
        "must be one duration, one size, or one of each with a comma: 7d, 10GiB, 7d,10GiB",
      )
      .optional()
      .describe(
        "How much of the journal is kept to be read: so long, so much, or the less of both. Default: 7d,7GiB.",
      ),
    logLevel: z
      .enum(logLevels)
      .optional()
      .describe("Default: info for up and agent, silent for everything else."),
  })
  .meta({ title: "waggle.config.json", description: "Settings of the waggle command in this folder." });
export type Config = z.infer<typeof configSchema>;
